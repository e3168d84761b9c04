"""How much of its time the training waits for data: the share in the steady state, and that of all steps beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def of_the_time(found: Mapping[str, Any], shown: Callable[[float], str] = percent) -> str:
    """`32 % of the time in the steady state, 38 % in all steps`; `32 % of the time` where both are shown as one number.

    `found`: a diagnosis whose `data_wait_share` is known. Rules go by the steady state; steps that fill the queues of
    each epoch are in the other number, which is the one of collect's summary and of the section on steps.
    """
    steady, whole = shown(found["data_wait_share"]), found.get("data_wait_share_all_steps")
    if whole is None or shown(whole) == steady:
        return f"{steady} of the time"
    return f"{steady} of the time in the steady state, {shown(whole)} in all steps"
