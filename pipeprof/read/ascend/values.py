"""What values of these files mean: ticks of the device's counter, and names of operators."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.read.source.numbers import LARGEST, integer

if TYPE_CHECKING:
    from collections.abc import Mapping

NS_PER_TICK = 10  # of the device counter, 100 MHz

COLLECTIVES: Mapping[str, str] = {
    "allreduce": "all_reduce", "reducescatter": "reduce_scatter", "allgather": "all_gather", "alltoall": "all_to_all",
    "alltoallv": "all_to_all", "alltoallvc": "all_to_all", "broadcast": "broadcast", "send": "send",
    "receive": "receive", "recv": "receive", "batchsendrecv": "send_receive", "reduce": "reduce",
    "scatter": "scatter", "gather": "gather", "barrier": "barrier",
}  # fmt: skip
_COLLECTIVE_NAME = re.compile(r"(?:hcom_|.*/)?([A-Za-z]+)")


def ticks(text: str) -> int | None:
    """Ticks of the device counter as ns; None for anything that is not a whole number of them."""
    value = integer(text)
    return None if value is None or not 0 <= value < LARGEST // NS_PER_TICK else value * NS_PER_TICK


def collective_kind(name: str) -> str | None:
    """Kind of a communication operator by its name, such as `hcom_allReduce__586_0_1` or `AllReduce-op12`."""
    match = _COLLECTIVE_NAME.match(name)
    return COLLECTIVES.get(match[1].lower()) if match else None


def graph_collective(name: str) -> str | None:
    """Kind of a communication operator of a graph by its type or full name; `Gather` and `Scatter` compute."""
    match = _COLLECTIVE_NAME.match(name)
    word = match[1].lower() if match else ""
    return None if word in ("gather", "scatter") else COLLECTIVES.get(word.removeprefix("collective"))


def phase_of(name: str, kind: str | None) -> str:
    """Phase of an operator of a graph by its full name, else `other`."""
    if name.startswith("hcom_") or (kind or "").startswith("hcom") or graph_collective(kind or name):
        return "communication"
    if "/optimizer" in name:
        return "optimizer"
    if name.startswith("Gradients/") or "/gradients/" in name:
        return "backward"
    return "forward" if name.startswith("Default/network") else "other"
