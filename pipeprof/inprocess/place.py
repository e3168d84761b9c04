"""The folder of a run that the program records: a new one, or a further repetition of one that is there.

Who records in this process. There is one recorder: a profile inside another one only marks spans.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import psutil

from pipeprof.collect.probe import recorder
from pipeprof.collect.session import Surroundings, claim_folder, is_run, new_run, surroundings
from pipeprof.errors import RunError, UsageError
from pipeprof.escape import line
from pipeprof.record import lock
from pipeprof.record.lock import being_recorded
from pipeprof.record.own_files import refuse_foreign
from pipeprof.record.plain_file import remove

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeprof.record.run import Run


OTHER_PLACE = "give another out=, force=True to replace the run, or add=True"


def new_place(path: Path, command: Sequence[str], options: dict[str, Any], *, force: bool) -> Run:
    """A new run. Raises UsageError when the folder exists, and is no run that `force` may replace."""
    try:
        run_id = claim_folder(path, force=force)
    except UsageError as error:
        message = error.message.replace("--force", "force=True")
        raise UsageError(message, OTHER_PLACE if message.endswith("exists") else "give another out=") from error
    return new_run(path, run_id, command, options, _around(), "profile")


def check_cycles(folder: Path, *, force: bool, add: bool) -> None:
    """Make sure that runs `cycle-0`, `cycle-1`, ... can be made in a folder; with `force`, remove those that are there.

    Raises UsageError when one is there and neither `force` nor `add` says what to do, or the folder cannot be written.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise UsageError(f"cannot write `{folder}`: `{there}` is not a folder that can be written", "give another out=")
    held = [
        path
        for path in sorted(folder.glob("cycle-*"))
        if path.name.removeprefix("cycle-").isdecimal() and (not path.is_dir() or any(path.iterdir()))
    ]
    for path in held if not add else []:
        if not force:
            raise UsageError(f"`{path}` exists", OTHER_PLACE)
        if not is_run(path):
            raise UsageError(f"`{path}` is not a pipeprof run, so force=True does not replace it", "give another out=")
        if being_recorded(path):
            raise UsageError(f"`{path}` is being recorded", "give another out=")
        refuse_foreign(path, "give another out=")
    for path in held if force else []:
        remove(path)


def further_place(path: Path, options: dict[str, Any]) -> Run:
    """The run that is there, ready for one more repetition.

    Raises UsageError when it holds something else: another revision, machine or settings, or this very process.
    Repetitions are executions of the program, or their spread says nothing. Raises RunError when it cannot be read.
    """
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415 - Arrow before the block only in this case

    run, around = open_run(path), _around()
    manifest = run.manifest
    facts = [key for key, value in around.machine.items() if manifest.fingerprint.get(key) != value]
    mine: dict[str, Callable[[], bool]] = {
        "another revision": lambda: manifest.git == around.git,
        f"another machine ({', '.join(facts)})": lambda: not facts,
        "other settings": lambda: (
            {k: v for k, v in manifest.options.items() if k in options and k != "profile"}
            == {k: v for k, v in options.items() if k != "profile"}
        ),
    }
    for what, same in mine.items():
        if not same():
            raise UsageError(f"`{path}` was recorded with {what}, so no repetition can be added; give another out=")
    here = psutil.Process()
    if manifest.launcher_pid == here.pid and manifest.launcher_start == here.create_time():
        raise UsageError(f"`{path}` was recorded by this process: a repetition is a new execution of the program")
    _claim_again(run)
    manifest.launcher_pid, manifest.launcher_start = here.pid, here.create_time()
    manifest.begin_again()
    run.save()
    return run


def _claim_again(run: Run) -> None:
    """Raises RunError when another process is adding a repetition."""
    with lock.deciding(run.path):
        if being_recorded(run.path):
            raise RunError(f"`{run.path}` is being recorded", "wait until that has ended, or give another out=")
        lock.take(run.path, run.manifest.run_id)


@lru_cache(maxsize=1)
def _around() -> Surroundings:
    return surroundings()


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
