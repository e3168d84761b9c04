"""Waits until nobody else uses the machine, or makes it busy, and says which machine it is."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import psutil

MOST_LOAD = 2.5  # includes what the captures themselves add
MOST_BUSY = 0.25  # of all cores by others, just before a capture
PATIENCE_S = 180


class BusyError(Exception):
    """The machine is not quiet."""


def wait_until_quiet(most_load=MOST_LOAD):
    """Returns (load average, busy share); raises BusyError when the machine stays busy."""
    end = time.monotonic() + PATIENCE_S
    while True:
        busy = psutil.cpu_percent(0.4) / 100
        load_average = os.getloadavg()[0]
        if busy <= MOST_BUSY and load_average <= most_load:
            return load_average, busy
        if time.monotonic() > end:
            raise BusyError(
                f"load average {load_average:.1f}, {busy:.0%} of the cores busy (--any-load captures anyway)"
            )
        time.sleep(1)


class Neighbours:
    """How many cores programs other than this one and its ended children used, from the making of this on."""

    def __init__(self):
        self.start = self._now()

    def cores(self):
        """Mean number of cores so far."""
        at, everyone, ours = (after - before for after, before in zip(self._now(), self.start, strict=True))
        return max(0.0, everyone - ours) / at if at > 0 else 0.0

    @staticmethod
    def _now():
        times, own = psutil.cpu_times(), os.times()
        everyone = sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0)
        return time.monotonic(), everyone, sum(own[:4])


@contextlib.contextmanager
def busy_loops(count):
    """So many processes that do nothing but use a core."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def versions():
    from importlib.metadata import version

    return {"python": platform.python_version(), **{name: version(name) for name in ("mindspore", "numpy")}}


def machine():
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cores": os.cpu_count(), "memory_gib": round(psutil.virtual_memory().total / 2**30)}
