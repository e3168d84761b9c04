"""Whether what records a run is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pipeprof.record.run import Manifest


def launcher_alive(manifest: Manifest) -> bool:
    """Whether the process that began the recording runs; another one with its number does not count."""
    try:
        process = psutil.Process(manifest.launcher_pid or 0)
        return manifest.launcher_start is not None and abs(process.create_time() - manifest.launcher_start) < 1.0
    except psutil.Error:
        return False
