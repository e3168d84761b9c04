"""Starts the command and stays out of its way: passes signals on, samples the host, waits.

The child inherits stdin, stdout, stderr, the working directory and every signal disposition as they are, but for an
ignored SIGCHLD, with which nobody could ask how it ended. Nothing is converted here: what the probe and this module
write is the spool.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pipeprof import escape
from pipeprof.collect import fingerprint
from pipeprof.collect.cgroup import kills_in, memory_events
from pipeprof.collect.host import HostSampler
from pipeprof.errors import UsageError
from pipeprof.record.plain_file import read_file
from pipeprof.record.text import shortened

PROBE = Path(__file__).parent / "probe" / "site"
FORWARDED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGALRM")
    if hasattr(signal, name)
)
RESTORED = tuple(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name))
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # after one of them no repetition begins
_VMSTAT = Path("/proc/vmstat")
POLL_S = 0.25  # SIGCHLD wakes us at once; this is for the case that another thread got it
_TIMING_BLOCK = re.compile(
    rb"\[V10900\][^\n]*\n\[PROF Dataset\]\n(?:worker_time:[^\n]*\n)?(?:-- [^\n]*\n)*\n?"
    rb"|\[WARNING\][^\n]*Dataset Profiling is already enabled for a different data pipeline[^\n]*\n"
)


@dataclass(frozen=True)
class ProbeOptions:
    """What the probe is told. `queue_interval_ms` 0 switches queue samples off; `schedule` None means automatic.

    `override`: settings of dataset operators (probe/override.py). `cached`: iterators that hand out one batch for
    ever (probe/cached.py). `slow_down`: every step takes that share longer (probe/slow.py). `stop_after`: it ends
    after so many training steps, and not before `stop_after_s` of them in seconds (probe/stop.py). `run_id`: whose
    record it is. `digest`: of so many first batches the fingerprints are kept, `digest_all`: of whole epochs,
    `other_seed`: with other random numbers (probe/digest.py). `graph_lines`: which lines operators of graphs come
    from (probe/graphs.py). `instructions`: those of Python are counted (probe/instructions.py). `patches`: values in
    MindSpore's own memory may be changed (recorder.may_patch).
    """

    queue_interval_ms: int = 100
    ops: str = "window"
    schedule: Mapping[str, int] | None = None
    service: bool = True
    memory: bool = True
    override: Mapping[str, Any] | None = None
    cached: Sequence[Mapping[str, Any]] | None = None
    slow_down: float | None = None
    stop_after: int | None = None
    stop_after_s: float | None = None
    run_id: str | None = None
    digest: int = 0
    digest_all: bool = False
    other_seed: bool = False
    graph_lines: bool = False
    instructions: bool = False
    patches: bool = True


@dataclass(frozen=True)
class Exit:
    """How the command ended: `status` as in `subprocess` (negative for a signal)."""

    status: int
    interrupted: bool


def command_path(command: Sequence[str]) -> str:
    """The file that will be run. Raises UsageError when there is none, or it cannot be executed."""
    name = command[0]
    path = shutil.which(name)
    if path is not None:
        return path
    if os.sep in name and os.path.exists(name):  # noqa: PTH110 - Path's raises for a name that is too long
        raise UsageError(
            f"cannot execute `{name}`: it is not an executable file", f"try `python {name}` or `chmod +x {name}`"
        )
    raise UsageError(
        f"command not found: `{shortened(name)}`", "put the command that you would type yourself after `--`"
    )


def not_started(command: Sequence[str], error: OSError) -> UsageError:
    """The error of a command that the system does not start."""
    script = error.errno in (errno.ENOEXEC, errno.ENOENT)  # the file itself was found
    hint = "its first line must name an interpreter that exists (#!/usr/bin/env python3)" if script else ""
    return UsageError(f"cannot start `{command[0]}`: {error.strerror}", hint)


def run_command(command: Sequence[str], spool: Path, options: ProbeOptions, host_interval_s: float) -> Exit:
    """Run the command once, recording into `spool` (which must exist), and wait for its end.

    Signals that were sent to this process alone are passed on; what the terminal sends to the whole group the child
    has already got. Raises UsageError when the command cannot be started.
    """
    path = command_path(command)
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # the kernel would throw away how the command ended
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    watched = {*FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        _write(spool / "launch.json", _launch_facts(options.run_id))
        kills = _Kills()
        try:
            pid = os.posix_spawn(
                path, list(command), _environment(spool, options), setsigmask=list(before), setsigdef=list(RESTORED)
            )
        except OSError as error:
            raise not_started(command, error) from error
        outcome, facts = _wait(pid, spool, host_interval_s, watched, kills)
        facts["oom_kills"] = kills.since()
        if not _is_anothers(spool, options.run_id):
            _write(spool / "exit.json", facts | {"run_id": options.run_id})
    finally:
        late = _drain_signals(watched)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if not _is_anothers(spool, options.run_id):
        _pass_on_leftovers(spool)
    return replace(outcome, interrupted=outcome.interrupted or late)


def die_like(status: int) -> None:
    """End this process by the signal that ended the command, so that the caller sees the same status."""
    import resource  # noqa: PLC0415 - does not exist on Windows

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with contextlib.suppress(OSError, ValueError):
        signal.signal(-status, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    os.kill(os.getpid(), -status)


def _wait(
    pid: int, spool: Path, interval_s: float, watched: set[signal.Signals], kills: _Kills
) -> tuple[Exit, dict[str, object]]:
    """How the command ended, and what the spool shall say about it."""
    interrupted = False
    launcher_cpu_s = time.process_time()
    with HostSampler(pid, spool / "host.jsonl") as sampler:
        due = time.monotonic()
        while True:
            if time.monotonic() >= due:
                sampler.sample()
                kills.look(pid)
                due = time.monotonic() + interval_s
            info = signal.sigtimedwait(watched, min(POLL_S, max(0.0, due - time.monotonic())))
            if info is not None and info.si_signo != signal.SIGCHLD:
                interrupted = interrupted or _asks_to_end(info.si_signo)
                if info.si_code <= 0:  # sent by a process; the kernel's (the terminal's) went to the whole group
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, info.si_signo)
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                limit_s = _cpu_limit_s(pid)  # which it may have set itself; until it is waited for, it has one
                _, status, usage = os.wait4(pid, 0)
                code = os.waitstatus_to_exitcode(status)
                facts: dict[str, object] = {
                    "status": code,
                    "monotonic": time.monotonic_ns(),
                    "realtime": time.time_ns(),
                }
                facts["problem"] = sampler.problem
                facts["launcher_cpu_s"] = time.process_time() - launcher_cpu_s
                facts |= {"cpu_s": usage.ru_utime + usage.ru_stime, "cpu_limit_s": limit_s}
                return Exit(code, interrupted), facts


class _Kills:
    """Processes that the kernel ends for lack of memory: in the launcher's group and the command's, else anywhere."""

    def __init__(self) -> None:
        self._groups: dict[Path, int] = {}
        self._anywhere = _kills_anywhere()
        self.look(os.getpid())

    def look(self, pid: int) -> None:
        """Count from now on in the group that the process is in, if that is a new one."""
        file = memory_events(pid)
        if file is not None and file not in self._groups and (count := kills_in(file)) is not None:
            self._groups[file] = count

    def since(self) -> int | None:
        """How many there were; None where that is not told. Groups may lie in each other: the largest number counts."""
        if not self._groups:
            now = _kills_anywhere()
            return None if now is None or self._anywhere is None else now - self._anywhere
        return max((kills_in(file) or count) - count for file, count in self._groups.items())


def _kills_anywhere() -> int | None:
    with contextlib.suppress(OSError, ValueError):
        lines = _VMSTAT.read_text(encoding="ascii").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
    return None


def _cpu_limit_s(pid: int) -> int | None:
    """CPU time after which the kernel ends the process (`ulimit -t`); None: there is no limit, or it is not told."""
    import resource  # noqa: PLC0415 - does not exist on Windows

    with contextlib.suppress(OSError, ValueError, AttributeError):
        return min(number for number in resource.prlimit(pid, resource.RLIMIT_CPU) if number >= 0)
    return None


def _asks_to_end(number: int) -> bool:
    """Whether a signal is to end the recording: not one that is ignored, under `nohup`, say, and comes all the same."""
    return number in _ENDING and signal.getsignal(number) is not signal.SIG_IGN


def _drain_signals(watched: set[signal.Signals]) -> bool:
    """Take those that came when the command had ended; returns whether one is to end the recording."""
    ends = False
    while (info := signal.sigtimedwait(watched, 0)) is not None:
        ends = ends or _asks_to_end(info.si_signo)
    return ends


def _launch_facts(run_id: str | None) -> dict[str, object]:
    calibration_ns = fingerprint.calibration_ns()  # before the repetition begins
    return {
        "monotonic": time.monotonic_ns(), "realtime": time.time_ns(), "pid": os.getpid(), "run_id": run_id,
        "calibration_ns": calibration_ns,
    }  # fmt: skip


def _is_anothers(spool: Path, run_id: str | None) -> bool:
    """Whether another run was put in the place of ours while the command ran."""
    try:
        return json.loads(read_file(spool / "launch.json", 1 << 16))["run_id"] not in (None, run_id)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _environment(spool: Path, options: ProbeOptions) -> dict[str, str]:
    environment = dict(os.environ)
    rest = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = str(PROBE) + (os.pathsep + rest if rest else "")
    environment["PIPEPROF_SPOOL"] = str(spool.resolve())
    environment["PIPEPROF_OPTIONS"] = json.dumps(asdict(options))
    return environment


def _write(path: Path, facts: Mapping[str, object]) -> None:
    """Write small facts whole; on a full disk from the space that was kept back for them."""
    temporary = path.with_name("." + path.name)
    for _ in range(2):
        try:
            temporary.unlink(missing_ok=True)  # what the command may have put there, a link, say
            temporary.write_text(json.dumps(facts), encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            problem = error.strerror
            (path.parent.parent / "reserve").unlink(missing_ok=True)  # Run.reserve
        else:
            return
    sys.stderr.write(escape.line(f"pipeprof: cannot write `{path}`: {problem}; the command is left alone") + "\n")


def _pass_on_leftovers(spool: Path) -> None:
    """What a process wrote to stderr in a sampled fetch, and could not pass on itself."""
    for path in sorted(spool.glob("proc-*/stderr.*")):
        if path.is_symlink():  # not the recorder's
            continue
        with contextlib.suppress(OSError):
            text = _TIMING_BLOCK.sub(b"", path.read_bytes())
            if text:
                sys.stderr.flush()
                os.write(2, text)
            path.write_bytes(b"")


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals back. Threads that are started meanwhile never take them, so they go on reaching the launcher."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
