"""What a run is of, in words: the steps of a training, batches that were only read, or iterations of inference."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

INFERENCE = "load_and_run log"  # by which the steps of a rank are known
READS = "reads"  # the same of a process in which no network was seen: a step is a batch and what the loop does with it
STAGES = {
    "build": "loading the model", "compile": "configuring the network", "warmup": "warm-up iterations",
    "steady": "timed iterations",
}  # fmt: skip
KINDS = {"train": "timed"}
TRAINING_STEP = "training step"
SHORT: dict[str | None, str] = {INFERENCE: "iteration", READS: "batch"}
_OF_READS = {
    "training steps": "batches", "training step": "batch", "the training loop": "the loop",
    "the training itself": "the loop itself", "the training": "the loop", "all steps": "all batches",
}  # fmt: skip
_TRAINING = re.compile("|".join(_OF_READS), re.IGNORECASE)


def is_inference(run: Mapping[str, Any]) -> bool:
    """Whether all steps of the run (of a report's content) are iterations that MegEngine's load_and_run timed."""
    return evidence_in(run) == INFERENCE


def only_reads(run: Mapping[str, Any]) -> bool:
    """Whether batches were read and no network was seen, in any process of the run (of a report's content)."""
    return evidence_in(run) == READS


def evidence_in(run: Mapping[str, Any]) -> str | None:
    """What the steps of a run (of a report's content) are known by; None where that is not one for all ranks."""
    return same(rank["step_evidence"] for rep in run.get("reps", ()) for rank in rep["ranks"])


def same(evidence: Iterable[str | None]) -> str | None:
    """The same of what the steps of each rank are known by."""
    kinds = set(evidence)
    return kinds.pop() if len(kinds) == 1 else None


def counted(steps: int, evidence: str | None) -> str:
    """`64 training steps`, `1 iteration`, `39 batches`."""
    return format_count(steps, SHORT.get(evidence, TRAINING_STEP))


def unit(run: Mapping[str, Any]) -> str:
    """What one step of the run (of a report's content) is."""
    return SHORT.get(evidence_in(run), TRAINING_STEP)


def wording(run: Mapping[str, Any]) -> Callable[[str], str]:
    """What makes a sentence about a training one about the loop that reads batches, where the run is of such a one."""
    if only_reads(run):
        return lambda text: _TRAINING.sub(_of_reads, text)
    return str


def batches_read(run: Mapping[str, Any]) -> int:
    """How many batches the ranks of the first repetition read."""
    read: int = sum(rank["evidence_counts"].get("rows", 0) for rep in run["reps"][:1] for rank in rep["ranks"])
    return read


def _of_reads(match: re.Match[str]) -> str:
    said = match[0]
    word = _OF_READS[said.lower()]
    return word.capitalize() if said[0].isupper() else word
