"""What values of these files mean: ticks of the device's counter, and phases of operators."""

from __future__ import annotations

from pipeprof.read.mindspore_ops import graph_collective
from pipeprof.read.source.numbers import LARGEST, integer

NS_PER_TICK = 10  # of the device counter, 100 MHz


def ticks(text: str) -> int | None:
    """Ticks of the device counter as ns; None for anything that is not a whole number of them."""
    value = integer(text)
    return None if value is None or not 0 <= value < LARGEST // NS_PER_TICK else value * NS_PER_TICK


def phase_of(name: str, kind: str | None) -> str:
    """Phase of an operator of a graph by its full name, else `other`."""
    if name.startswith("hcom_") or (kind or "").startswith("hcom") or graph_collective(kind or name):
        return "communication"
    if "/optimizer" in name:
        return "optimizer"
    if name.startswith("Gradients/") or "/gradients/" in name:
        return "backward"
    return "forward" if name.startswith("Default/network") else "other"
