"""What a run is of, in words: the steps of a training, or the iterations of a benchmark of inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INFERENCE = "load_and_run log"  # by which the steps of a rank are known
STAGES = {
    "build": "loading the model", "compile": "configuring the network", "warmup": "warm-up iterations",
    "steady": "timed iterations",
}  # fmt: skip
KINDS = {"train": "timed"}


def is_inference(run: Mapping[str, Any]) -> bool:
    """Whether all steps of the run (of a report's content) are iterations that MegEngine's load_and_run timed."""
    return only_inference(rank["step_evidence"] for rep in run.get("reps", ()) for rank in rep["ranks"])


def only_inference(evidence: Iterable[str | None]) -> bool:
    """The same of what the steps of each rank are known by."""
    return set(evidence) == {INFERENCE}


def counted(steps: int, *, inference: bool) -> str:
    """`64 training steps`, `1 iteration`."""
    return format_count(steps, "iteration" if inference else "training step")
