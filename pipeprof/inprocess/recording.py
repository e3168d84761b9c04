"""One run recorded by the program itself: its folder and spool, samples of the machine, and its tables."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeprof import escape
from pipeprof.collect.host import HostSampler
from pipeprof.collect.probe import inprocess
from pipeprof.collect.probe.redact import redacted
from pipeprof.collect.session import RESERVE_BYTES
from pipeprof.errors import PipeprofError, RunError, is_interruption
from pipeprof.inprocess.place import further_place, new_place
from pipeprof.record import lock
from pipeprof.record.run import MANIFEST

probe: Any = inprocess  # it runs in foreign processes, too, so nothing there has types
HOST_INTERVAL_S = 5.0  # inside the process a look at all processes is not free


@dataclass(frozen=True)
class Plan:
    """What a profile records: `probe` are the probe's options, `manifest` those that the run keeps."""

    probe: dict[str, Any]
    manifest: dict[str, Any]
    host: bool = True
    notes: list[str] = field(default_factory=list)


class Recording:
    """Begins when it is made. `end` closes the spool, `finish` makes the tables of it; both may be called again."""

    def __init__(
        self, path: Path, plan: Plan, about: dict[str, Any], *, force: bool, add: bool = False, warming: bool = False
    ) -> None:
        self.path = path
        self.steps = 0  # active steps that are over
        self._plan = plan
        self._about = about
        self._ended = self._finished = False
        options = {**plan.manifest, "profile": about}
        further = add and path.joinpath(MANIFEST).is_file()
        self._run = further_place(path, options) if further else new_place(path, _command(), options, force=force)
        self._spool = self._run.spool / f"rep={max((one.rep for one in self._run.manifest.reps), default=-1) + 1}"
        with lock.released_if_it_fails(self._run.path, self._run.manifest.run_id):
            self._spool.mkdir(parents=True)
            self._run.reserve.write_bytes(bytes(RESERVE_BYTES))
            self._spool.joinpath("hello.jsonl").write_text(json.dumps({"pid": os.getpid()}) + "\n", encoding="utf-8")
            self._write("launch.json", {**_clocks(), "pid": os.getpid()})
        self._host = _Host(self._spool) if plan.host else None
        probe.begin(str(self._spool), {**plan.probe, "run_id": self._run.manifest.run_id, "warming": warming})
        for number, note in enumerate(plan.notes):
            probe.warn(f"profile_note_{number}", note)

    def warmed_up(self, step: int) -> None:
        """The warm-up is over: `step` is the first active one."""
        self._about["first_active"] = step
        probe.warm()

    def end(self, *, waiting: bool, status: int = 0, reason: str | None = None) -> None:
        """Close what is recorded. `waiting`: more will be recorded later. `reason` says what is wrong with it.

        Raises what the training's last operators raise: they are waited for.
        """
        if self._ended:
            return
        self._ended = True
        try:
            probe.end(self._plan.probe, waiting)
        except BaseException as error:
            status, reason = 1, reason or reason_of(error)
            raise
        finally:
            problem = self._host.close() if self._host is not None else None
            self._write("exit.json", {**_clocks(), "status": status, "reason": reason, "problem": problem})

    def finish(self) -> Path:
        """Make the run's tables, once. Raises RunError when they cannot be written; the spool is kept then."""
        from pipeprof.read.spool.finish import finish  # noqa: PLC0415 - Arrow only after the block

        if not self._finished:
            finish(self._run)
            self._finished = True
        return self.path

    def discard(self) -> None:
        """Close it and remove it: nothing of it is wanted, all of repetitions that were there before."""
        try:
            self.end(waiting=False)
        finally:
            self._remove()

    def _remove(self) -> None:
        before = self._run.manifest.earlier
        if before is None:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        shutil.rmtree(self._run.spool, ignore_errors=True)
        self._run.manifest.take_back(before)
        with contextlib.suppress(RunError):  # the next verb that opens the run does it again
            self._run.save()
        lock.release(self._run.path, self._run.manifest.run_id)

    def _write(self, name: str, facts: dict[str, Any]) -> None:
        try:
            text = json.dumps({**facts, "run_id": self._run.manifest.run_id})
            self._spool.joinpath(name).write_text(text, encoding="utf-8")
        except OSError as error:
            self._run.reserve.unlink(missing_ok=True)
            say(f"cannot write `{self._spool / name}`: {error.strerror}; the program goes on")


class _Host:
    """Samples at the begin, at the end, and now and then in between, in a thread of its own."""

    def __init__(self, spool: Path) -> None:
        self._sampler = HostSampler(os.getpid(), spool / "host.jsonl")
        self._over = threading.Event()
        self._sample()
        self._thread = threading.Thread(target=self._loop, name="pipeprof-host", daemon=True)
        self._thread.start()

    def close(self) -> str | None:
        """Take the last sample; returns why samples could not be written, if so."""
        self._over.set()
        self._thread.join()
        self._sample()
        self._sampler.__exit__(None, None, None)
        return self._sampler.problem

    def _loop(self) -> None:
        while not self._over.wait(HOST_INTERVAL_S):
            self._sample()

    def _sample(self) -> None:
        with contextlib.suppress(Exception):  # a machine that cannot be asked must not end the training
            self._sampler.sample()


def _clocks() -> dict[str, int]:
    return {"monotonic": time.monotonic_ns(), "realtime": time.time_ns()}


def _command() -> list[str]:
    from pipeprof.collect.probe.redact import without_secrets  # noqa: PLC0415 - only here

    return without_secrets(["python", *sys.argv] if sys.argv and sys.argv[0] else ["python"])


def ends_well(error: BaseException | None) -> bool:
    """Whether a block that this ended is over as it should be: a generator was closed, a program exits with 0."""
    return error is None or isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and not error.code)


def reason_of(error: BaseException) -> str:
    """What ended a block, for the run."""
    what = f"{type(error).__name__} in the profiled block"
    return redacted(f"{what}: {error}") if str(error) else what


def message_of(error: Exception) -> str:
    """What went wrong, in one line. Raises KeyboardInterrupt where that is behind it."""
    if is_interruption(error):
        raise KeyboardInterrupt from error
    return error.message if isinstance(error, PipeprofError) else str(error) or type(error).__name__


def say(text: str) -> None:
    """A line on stderr."""
    sys.stderr.write(escape.line(f"pipeprof: {text}") + "\n")
