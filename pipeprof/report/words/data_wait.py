"""How much of its time the training waits for data: the share in the steady state, and that of all steps beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pipeprof.units import percent
from pipeprof.verdict.rules import MODERATE_WAIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LEAST = 0.01  # a smaller share is said without its digits: nobody does anything about it
NEAR = 0.01  # apart by less, two shares are one piece of news
LITTLE = 0.05  # two shares below it are one bound: nobody acts on the difference
READY, AT_TIMES = "the data is ready in time", "the training waits for its data only now and then"
NEXT_TO_NOTHING = "less than 1 %"


def of_the_time(diagnosis: Mapping[str, Any], shown: Callable[[float], str] = percent) -> str:
    """`32 % of the time in the steady state, 38 % in all steps`; `82 to 83 % of the time` where both are nearly one.

    Two small ones are `less than 3 % of the time`, which is true of both; with the digits of a table, as others are.

    `diagnosis`: one whose `data_wait_share` is known. Rules go by the steady state; steps that fill the queues of
    each epoch are in the other number, which is the one of collect's summary and of the section on steps.
    """
    steady, overall = diagnosis["data_wait_share"], diagnosis.get("data_wait_share_all_steps")
    low, high = sorted((steady, steady if overall is None else overall))
    if worded(low, shown) == worded(high, shown):
        return f"{worded(low, shown)} of the time"
    if shown is percent and high < LITTLE:
        return f"less than {math.floor(high * 100) + 1} % of the time"
    if high - low < NEAR:
        return f"{shown(low).removesuffix(' %')} to {shown(high)} of the time"
    return f"{worded(steady, shown)} of the time in the steady state, {worded(overall or 0.0, shown)} in all steps"


def in_time(diagnosis: Mapping[str, Any]) -> str:
    """Of a training that its data does not hold up: that the data is ready in time, or at times is not."""
    share = diagnosis["data_wait_share"]
    return AT_TIMES if share is not None and share >= MODERATE_WAIT else READY


def worded(share: float, shown: Callable[[float], str] = percent) -> str:
    """A share in a sentence: `32 %`, or `less than 1 %`."""
    return NEXT_TO_NOTHING if share < LEAST else shown(share)
