"""What pairs of runs gave, as the JSON of `headspace` and `whatif` has it. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pipeprof.collect.probe.redact import without_secrets
from pipeprof.experiment.pairs.series import ratio_of
from pipeprof.verdict.speedup import two_speeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.experiment.pairs.series import Side
    from pipeprof.experiment.runs import Measured, Series
    from pipeprof.verdict.speedup import Speed

EACH_PARTS = 3  # parts of a run that a speed is seen in


def measured_facts(series: Series, *, command: Sequence[str]) -> dict[str, Any]:
    """The part of the JSON that says what was run and what came out, without a verdict."""
    answer = series.answer
    measured = asdict(ratio_of(series.rates("a"), series.rates("b"))) | {
        "interval": None if answer.interval is None else list(answer.interval),
        "pairs": len(series.rates("a")),
        "decided": answer.decided,
        "stopped": series.stopped,
        "speeds": [_speed(speed) for speed in answer.speeds],
        "speeds_of": _whose(answer.speeds, series),
    }
    return {"command": without_secrets(command), "measured": measured, "runs": [_run(run) for run in series.runs]}


def _speed(speed: Speed) -> dict[str, Any]:
    return {"ratio": speed.median, "low": speed.low, "high": speed.high, "pairs": list(speed.places)}


def _whose(speeds: Sequence[Speed], series: Series) -> Side | None:
    """The side whose own rates fall into the groups of the pairs; None where neither's do."""
    groups = {speed.places for speed in speeds}
    sides: tuple[Side, Side] = ("a", "b")
    return next((side for side in sides if groups and _groups(series.rates(side)) == groups), None)


def _groups(rates: Sequence[float]) -> set[tuple[int, ...]]:
    return {speed.places for speed in two_speeds(rates)}


def _run(run: Measured) -> dict[str, Any]:
    return {
        "name": run.name,
        "side": run.side,
        "pair": run.pair,
        "path": run.path.name,
        "steps_per_second": run.rate.per_second,
        "timed_steps": run.rate.steps,
        "training_steps": run.training_steps,
        "speeds": [
            {"steps_per_second": speed.median, "parts": len(speed.places)}
            for speed in two_speeds(run.part_rates, EACH_PARTS)
        ],
    }
