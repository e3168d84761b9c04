"""What to do first where other programs took the CPU: their part is in every number of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.report.answer.shape import Answer


def measure_first(given: Answer, run: dict[str, Any], doubts: Sequence[dict[str, Any]]) -> None:
    """Put a measurement without them before the change that was advised, if these doubts of the answer name them."""
    if given.action and any(doubt["code"] == "other_load" for doubt in doubts):
        action = given.action[:1].lower() + given.action[1:]
        given.action = f"Measure again while no other program runs. If it says the same: {action}"
        if command.is_repeatable(run):
            given.propose(*command.on_a_quiet_machine(run))
