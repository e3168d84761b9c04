"""Three lines at the end of a recording: what was measured, where it is, what to type next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipeprof.query.engine import Engine
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from pipeprof.record.run import Run


def three_lines(run: Run) -> list[str]:
    """The lines, without colour."""
    manifest = run.manifest
    state = manifest.state + (f": {manifest.reason}" if manifest.reason else "")
    name = shlex.quote(str(run.path))
    return [
        f"pipeprof: {_measured(run)}",
        f"pipeprof: the run is {state}",
        f"pipeprof: next: pipeprof report {name}",
    ]


def _measured(run: Run) -> str:
    with Engine.open(run) as engine:
        summary = engine.rows("step/summary")
        waits = engine.rows("step/data_wait")
    training = [row for row in summary if row["kind"] in ("train", "warmup")]
    if not training:
        said = [warning.message for warning in run.manifest.warnings if warning.code == "nothing_seen"]
        return said[0] if said else "no training step was seen"
    steps = sum(row["steps"] for row in training)
    ranks = {(row["rep"], row["rank"]) for row in training}
    text = f"{steps} training steps"
    if len(ranks) > 1:
        text += f" in {len(ranks)} processes"
    steady = [row for row in training if row["kind"] == "train"] or training
    slowest = max(row["median_ns"] for row in steady)
    text += f", median step {format_ns(slowest)}"
    share = max((row["data_wait_share"] for row in waits if row["data_wait_share"] is not None), default=None)
    return text if share is None else f"{text}, {format_ratio(share)} of it waiting for data"
