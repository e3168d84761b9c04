"""Whether what records a run is still there."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import psutil

from pipeprof.errors import RunError
from pipeprof.record import lock
from pipeprof.record.machine import host_name
from pipeprof.record.plain_file import file_end
from pipeprof.record.run import load

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.record.run import Run

_ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)  # nobody has asked how: pid 1 of a container may never do so
_HELLO = re.compile(rb'\{"pid": (\d{1,9})\b')
_HELLO_BYTES = 1 << 18


def being_recorded(folder: Path) -> bool:
    """Whether something is recorded or recovered into a folder now; also by a process whose launcher is gone."""
    try:
        run = load(folder)
    except (RunError, OSError):
        return bool(lock.is_held(folder))  # a recording that has no manifest yet
    if run.manifest.state == "running":
        return is_running(run)
    return bool(lock.is_held(run.path) or _recorded_alive(run))


def is_running(run: Run) -> bool:
    """Whether a run that its manifest calls `running` is recorded now, also by a process whose launcher is gone."""
    return launcher_alive(run) or bool(_recorded_alive(run))


def launcher_alive(run: Run) -> bool:
    """Whether the process that writes the run is there; another one with its number does not count, nor does a zombie.

    By the run's lock; of a run without one (made by an older pipeprof) by its manifest.
    """
    held = lock.is_held(run.path)
    if held is not None:
        return held
    manifest = run.manifest
    recorded_on = manifest.fingerprint.get("host")
    if recorded_on is not None and recorded_on != host_name():
        return lock.last_change(run.spool) > time.time() - lock.QUIET_S
    try:
        process = psutil.Process(manifest.launcher_pid or 0)
        began = process.create_time()
        return (
            manifest.launcher_start is not None
            and abs(began - manifest.launcher_start) < 1.0
            and process.status() not in _ENDED
        )
    except psutil.Error:
        return False


def processes_alive(run: Run) -> list[int]:
    """Process ids of recorded processes that still run; of a repetition without any, those of watched Pythons.

    A training in the background has recorded nothing yet while it imports MindSpore.
    """
    reps = [rep for rep in run.spool.glob("rep=*") if not any(rep.glob("proc-*"))]
    watched = {int(pid) for rep in reps for pid in _watched(rep) if _runs(pid, rep)}
    return sorted(watched | _recorded_alive(run))


def _recorded_alive(run: Run) -> set[int]:
    """Those that have recorded something: another Python that the command left behind keeps no folder occupied."""
    pids = [(path.name.split("-")[1], path.parent) for path in run.spool.glob("rep=*/proc-*")]
    return {int(pid) for pid, rep in pids if _runs(pid, rep)}


def _watched(rep: Path) -> list[str]:
    """Process ids of the Pythons that the probe has entered, the newest of very many."""
    try:
        data, _ = file_end(rep / "hello.jsonl", _HELLO_BYTES, inside=rep)
    except OSError:
        return []
    return [pid.decode() for pid in _HELLO.findall(data)]


def _runs(pid: str, rep: Path) -> bool:
    """Whether a process runs, and is of this repetition."""
    try:
        process = psutil.Process(int(pid))
        mine = str(rep.resolve()) == process.environ().get("PIPEPROF_SPOOL")
        return mine and process.status() not in _ENDED
    except (psutil.Error, ValueError, OverflowError):
        return False
