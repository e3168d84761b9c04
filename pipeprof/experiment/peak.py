"""The most memory that the processes below this one held together while something ran."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from pipeprof.experiment.signals import signals_held

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY_S = 0.2


@dataclass
class Peak:
    """Bytes so far: of all processes together, pages that several of them share counted once (PSS)."""

    bytes: float = 0.0


@contextlib.contextmanager
def watched_memory() -> Iterator[Peak]:
    """What the descendants of this process hold is read five times a second, until the end of the block."""
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        own = psutil.Process()
        while not ended.wait(EVERY_S):
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
    """0 for a process that ends just now."""
    with contextlib.suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0
