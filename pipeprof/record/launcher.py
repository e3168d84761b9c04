"""Whether what records a run is still there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil

from pipeprof.record.machine import host_name

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.record.run import Run

QUIET_S = 60.0  # a recording writes twice a second: after this long without a word from another host it is over


def launcher_alive(run: Run) -> bool:
    """Whether the process that began the recording runs; another one with its number does not count.

    A process of another host (a run on shared storage, or of another container) cannot be looked for: it counts as
    alive as long as its spool is written to.
    """
    manifest = run.manifest
    recorded_on = manifest.fingerprint.get("host")
    if recorded_on is not None and recorded_on != host_name():
        return _last_change(run.spool) > time.time() - QUIET_S
    try:
        process = psutil.Process(manifest.launcher_pid or 0)
        return manifest.launcher_start is not None and abs(process.create_time() - manifest.launcher_start) < 1.0
    except psutil.Error:
        return False


def _last_change(spool: Path) -> float:
    """When a file of the spool was written last, in seconds since 1970; 0 without one."""
    last = 0.0
    for path in spool.rglob("*"):
        try:
            last = max(last, path.stat().st_mtime)
        except OSError:  # just removed
            continue
    return last
