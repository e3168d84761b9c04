"""Who records in this process. There is one recorder: a profile inside another one only marks spans."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from pipeprof.collect.probe import recorder
from pipeprof.escape import line

_COLLECT = "_pipeprof_probe.recorder"  # the name under which `pipeprof collect` loads the probe
_LOCK = threading.Lock()
_STATE: dict[str, Any] = {"owner": None, "pid": 0, "stacks": False, "told": set()}
DEPTH = 64  # frames of a stack
_HERE = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - its frames are none of the program's


def collector() -> Any:
    """The recorder of `pipeprof collect` when the process runs under it, else None."""
    return getattr(sys.modules.get(_COLLECT), "REC", None)


class Owner(Protocol):
    """What records: a profile."""

    def abandon(self) -> None:
        """The program ends inside the block: close the files."""


def claim(owner: Owner) -> bool:
    """Become the one that records; False when another one does, here or from outside."""
    with _LOCK:
        taken = _STATE["owner"] is not None and _STATE["pid"] == os.getpid()
        if collector() is not None or taken:
            return False
        _STATE.update(owner=owner, pid=os.getpid())
        atexit.unregister(_at_exit)
        atexit.register(_at_exit)
        return True


def release(owner: object) -> None:
    """Let others record."""
    with _LOCK:
        if _STATE["owner"] is owner:
            _STATE.update(owner=None, stacks=False)


def _at_exit() -> None:
    if _STATE["owner"] is not None and _STATE["pid"] == os.getpid():
        _STATE["owner"].abandon()


def want_stacks(*, wanted: bool) -> None:
    """Whether spans keep the Python stack they were opened in."""
    _STATE["stacks"] = wanted


def active() -> Any:
    """The recorder that writes now, or None."""
    rec = collector() or recorder.REC
    return None if rec is None or rec.off else rec


def span(name: str, begin_ns: int, end_ns: int, category: str, stack: Sequence[str] = ()) -> None:
    """Write an interval, if anything is recorded now."""
    rec = active()
    if rec is not None:
        track = threading.current_thread().name
        track = "main" if track == "MainThread" else track
        rec.line("span", label=name, begin=begin_ns, end=end_ns, track=track, category=category, stack=list(stack))


def stack(depth: int) -> list[str]:
    """Frames of the caller's stack, innermost first, from `depth` up, without ours; empty unless stacks are wanted."""
    if not _STATE["stacks"]:
        return []
    frames: list[str] = []
    frame = sys._getframe(depth + 1)  # noqa: SLF001 - the only way to a stack that costs little
    while frame is not None and len(frames) < DEPTH:
        code = frame.f_code
        if not code.co_filename.startswith(_HERE):
            frames.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return frames


def tell_once(code: str, text: str) -> None:
    """Say something on stderr once in a process, and in the run that is being recorded."""
    rec = active()
    if rec is not None:
        rec.warn(code, text)
    if code not in _STATE["told"]:
        _STATE["told"].add(code)
        sys.stderr.write(line(f"pipeprof: {text}") + "\n")
