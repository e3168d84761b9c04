"""How busy a device is, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeprof.units import format_count, format_ratio

Row = Mapping[str, Any]

HOSTS = ("", "CPU")  # where a training without an accelerator computes


def telling(rows: Sequence[Row]) -> list[Row]:
    """Rows of op/busy that say something: those of steps where there are any, else of all that was recorded."""
    stepped = [row for row in rows if row["steps"]]
    return stepped or list(rows)


def sentence(row: Row) -> str:
    """`GPU is busy 44.8 % of the time in 12 steps with recorded operators (least 30.1 %, in step 7; most 51.0 %)`."""
    who = title(row["device"]) + (" run" if row["device"] in HOSTS else " is busy")
    share = f"{who} {format_ratio(row['busy_share'])} of the time"
    if not row["steps"]:
        return f"{share} from the first operator to the last"
    least, most = format_ratio(row["least_share"]), format_ratio(row["most_share"])
    spread = "" if least == most else f" (least {least}, in step {row['least_step']}; most {most})"
    return f"{share} in {format_count(row['steps'], 'step')} with recorded operators{spread}"


def title(device: str) -> str:
    """What is busy: the device by its name; on a CPU its operators, for the cores do more than these."""
    return "Operators" if device in HOSTS else device
