"""One run of a command for an experiment: recorded into a folder of its own, what it says in a file beside it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from pipeprof.collect.launch import ProbeOptions, signals_held
from pipeprof.collect.probe.redact import redacted
from pipeprof.collect.session import create_run, record
from pipeprof.errors import UsageError, WorkloadError
from pipeprof.record.plain_file import file_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeprof.read.spool.process import Process
    from pipeprof.record.run import Run

HOST_INTERVAL_S = 1.0
GRACE_S = 10.0  # from the request to end to the end
MEMORY_EVERY_S = 0.2
# What files fill is left out: the kernel drops it when memory is short, and a library that other jobs on the machine
# have loaded as well would weigh less the more of them there are.
_OWN = re.compile(r"^(?:Pss_Anon|Pss_Shmem|SwapPss): +(\d+) kB$", re.MULTILINE)
_LAST_BYTES, _LAST_LINES = 1 << 16, 40
_ERROR = re.compile(r"[A-Za-z_][\w.]{0,80}(?:Error|Exception): .")
_REFERS = "Refer to 'Dataset Pipeline Error Message'"
_DATASET = re.compile(r"- Dataset Pipeline Error Message:\s*\n-+\s*\n(?:\[ERROR\] )?(\S.*)")
_IGNORED = re.compile(r"^Exception ignored in: .*\nTraceback .*\n(?:[ \t].*\n)*\S.*(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class Trial:
    """What is run once, and how: `probe` records what it records, `options` say so in the manifest.

    `longest_s`: seconds after which the command is ended; None for no limit.
    """

    path: Path
    command: Sequence[str]
    probe: ProbeOptions = field(default_factory=ProbeOptions)
    options: Mapping[str, Any] = field(default_factory=dict)
    workdir: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    host_interval_s: float = HOST_INTERVAL_S
    longest_s: float | None = None

    @property
    def log(self) -> Path:
        """What the command says."""
        return self.path.with_name(f"{self.path.name}.log")

    def failed(self, message: str) -> WorkloadError:
        """The error of a command that did not do what it should."""
        return WorkloadError(message, f"its output is in `{self.log}`")


class Ended(NamedTuple):
    """A run that is finished, what its processes wrote where that was asked for, and how its command failed, or ""."""

    run: Run
    processes: Sequence[Process]
    failure: str


def run_trial(trial: Trial, *, processes: bool = False) -> Ended:
    """Run the command and finish its run. `processes`: what they wrote is read, before it is made into tables.

    Raises UsageError when the folder is there or cannot be written, WorkloadError when the command took too long,
    KeyboardInterrupt when it was interrupted.
    """
    with working_in(trial.workdir, trial.env):
        run = create_run(trial.path, trial.command, dict(trial.options), force=False)
        with output_to(trial.log), time_limit(trial.longest_s) as expired:
            outcome = record(run, trial.command, trial.probe, reps=1, host_interval_s=trial.host_interval_s)[0]
    with signals_held():
        from pipeprof.read.spool.finish import finish  # noqa: PLC0415 - its libraries start threads
        from pipeprof.read.spool.lines import SpoolNotes  # noqa: PLC0415
        from pipeprof.read.spool.process import load_processes  # noqa: PLC0415

        wrote = load_processes(run.spool / "rep=0", SpoolNotes()) if processes else []
        if processes:
            run.manifest.options["override_applied"] = [event for one in wrote for event in one.all("override")]
            stopped = [event["steps"] for one in wrote for event in one.all("stopped")]
            run.manifest.options["stopped_after"] = min(stopped, default=None)
        finish(run)
    if expired.is_set():
        raise trial.failed(took_longer(trial.longest_s))
    if outcome.interrupted or outcome.status == -signal.SIGINT:
        raise KeyboardInterrupt
    return Ended(run, wrote, how_it_failed(outcome.status, trial.log))


def took_longer(seconds: float | None) -> str:
    """What is said of a command that was ended at its time limit."""
    return f"took longer than {seconds or 0:.3g} s and was ended"


def how_it_failed(status: int, log: Path) -> str:
    """`exit code 1; it said ...`; "" for a status of 0."""
    if status == 0:
        return ""
    return (f"exit code {status}" if status > 0 else f"signal {-status}") + last_words(log)


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Let what is started meanwhile write to a file: our stdout is for the result."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        for number, old in enumerate(saved, start=1):
            os.dup2(old, number)
            os.close(old)


def last_words(path: Path) -> str:
    """What a log ends with, without secrets, as the end of a sentence about a command that failed; "" for none.

    That is the last error in its last lines, for MindSpore writes its own C++ places behind it; else the last line.
    Where it refers to the message of the dataset further down, that one.
    What Python says that it ignores is none: MindSpore's cells have much of that when the process ends.
    """
    text = _IGNORED.sub("", file_end(path, _LAST_BYTES)[0].decode("utf-8", "replace"))
    lines = text.strip().splitlines()
    errors = [line for line in lines[-_LAST_LINES:] if _ERROR.match(line)]
    said = (errors or lines or [""])[-1].strip()
    message = _DATASET.search(text, text.rfind(said)) if _REFERS in said else None
    return f"; it said `{redacted(message[1] if message else said)[-200:]}`" if lines else ""


@contextlib.contextmanager
def working_in(workdir: Path | None, env: Mapping[str, str]) -> Iterator[None]:
    """Work in a folder with some variables set: the command inherits both. Raises UsageError when it is gone."""
    before, previous = os.getcwd(), {name: os.environ.get(name) for name in env}  # noqa: PTH109 - may be gone itself
    try:
        os.chdir(workdir or before)
    except OSError as error:
        raise UsageError(f"cannot go to `{workdir}`: {error.strerror}") from error
    os.environ.update(env)
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        os.chdir(before)


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[threading.Event]:
    """End what was started meanwhile when it takes longer; the event says whether that happened."""
    expired, over = threading.Event(), threading.Event()
    if seconds is None:
        yield expired
        return

    def watch() -> None:
        if not over.wait(seconds):
            expired.set()
            end_all(kill=False)
            if not over.wait(GRACE_S):
                end_all(kill=True)

    thread = threading.Thread(target=watch, daemon=True)
    with signals_held():  # or it would take the signals that are for the launcher
        thread.start()
    try:
        yield expired
    finally:
        over.set()
        thread.join()


def end_all(*, kill: bool) -> None:
    """End the processes that this one started, and theirs."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill() if kill else process.terminate()


@dataclass
class Peak:
    """Bytes so far: of all processes together, pages that several of them share counted once, without files (PSS)."""

    bytes: float = 0.0


@contextlib.contextmanager
def watched_memory() -> Iterator[Peak]:
    """What the descendants of this process hold is read five times a second, until the end of the block."""
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        own = psutil.Process()
        while not ended.wait(MEMORY_EVERY_S):
            peak.bytes = max(peak.bytes, sum(map(_held, own.children(recursive=True))))

    with signals_held():
        thread = threading.Thread(target=watch, name="peak memory", daemon=True)
        thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _held(process: psutil.Process) -> int:
    """Bytes that a process holds; 0 for one that ends just now."""
    with contextlib.suppress(psutil.Error, OSError):
        parts = _OWN.findall(Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii"))
        # Linux before 5.4 does not tell files from the rest
        return sum(map(int, parts)) * 1024 if len(parts) > 1 else int(process.memory_full_info().pss)
    return 0
