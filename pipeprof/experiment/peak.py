"""The most memory that the processes below this one held together while something ran."""

from __future__ import annotations

import contextlib
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from pipeprof.collect.launch import signals_held

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY_S = 0.2
# What files fill is left out: the kernel drops it when memory is short, and a library that other jobs on the machine
# have loaded as well would weigh less the more of them there are.
OWN = re.compile(r"^(?:Pss_Anon|Pss_Shmem|SwapPss): +(\d+) kB$", re.MULTILINE)


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
    """Bytes that a process holds; 0 for one that ends just now."""
    with contextlib.suppress(psutil.Error, OSError):
        parts = OWN.findall(Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii"))
        # Linux before 5.4 does not tell files from the rest
        return sum(map(int, parts)) * 1024 if len(parts) > 1 else int(process.memory_full_info().pss)
    return 0
