"""What the times of a run count from, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

ORIGINS = {"collect": "the launch"}
RECORDING = "the beginning of the recording"  # of another program, whose launch is not known
FROM_BOOT_NS = 86_400_000_000_000  # who begins later counts from when its machine started


def origin_of(content: Mapping[str, Any]) -> str:
    """What the times of a run count from."""
    return ORIGINS.get(content["run"]["source"], RECORDING)


def at(content: Mapping[str, Any], time_ns: float) -> str:
    """`, 3.20 s after the launch`; empty where times count from another moment than this run's."""
    return "" if time_ns > FROM_BOOT_NS else f", {format_ns(time_ns)} after {origin_of(content)}"
