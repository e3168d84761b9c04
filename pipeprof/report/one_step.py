"""One training step of a run: the steps that there are, and operators of one step alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.report.words import ranges

if TYPE_CHECKING:
    from pipeprof.query.engine import Engine

MOST_RANGES = 4


def take_operators(engine: Engine, step: int) -> None:
    """Let `engine` know the operators of one training step alone, counted from 0 with warm-up.

    Raises UsageError, which says which steps have operators, when none was recorded in it.
    """
    steps = engine.rows("step/with_operators")
    if all(row["kind_step"] != step for row in steps):
        raise UsageError(f"no operator was recorded in training step {step}", _there(steps))
    engine.restrict_ops(step)


def operators_of(engine: Engine, step: int, top: int) -> dict[str, Any]:
    """The parts of a report that are about operators, of one step; sums that a source gives are of no step."""
    take_operators(engine, step)
    return {
        "ops": engine.rows("op/by_type"),
        "op_instances": engine.rows("op/by_instance", top=top),
        "op_devices": engine.rows("op/by_device"),
        "op_streams": engine.rows("op/by_stream"),
        "op_busy": engine.rows("op/busy"),
        "op_totals": [],
        "op_total_instances": [],
    }


def _there(rows: list[dict[str, Any]]) -> str:
    """`they were recorded in steps 10 to 14, 100 to 104`."""
    windows = ranges(row["kind_step"] for row in rows)
    if not windows:
        return "the run has no operators whose step is known: leave --step out"
    shown = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in windows[:MOST_RANGES])
    more = f" and {len(windows) - MOST_RANGES} more windows" if len(windows) > MOST_RANGES else ""
    return f"they were recorded in steps {shown}{more}"
