"""What other programs advise, in words, and why they may name another operator than we do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Part = Mapping[str, Any]

NOTES = {
    "mindinsight": "It compares mean queue fills with fixed thresholds and counts warm-up too. It never names the "
    "operator nearest to the training loop, and it names a source with an empty queue even when the training itself is "
    "slow.",
    "mindspore": "It names the last operator, from the source to the training loop, that has an idle CPU and an empty "
    "input queue. That is often one that only waits.",
    "autotune": "It changes every operator that fits its rule, from the source on, and does not check whether a change "
    "helped. It leaves out GeneratorOp and readers of unmapped files.",
}
SUGGESTIONS = {
    "cpu": "{avg_cpu_pct_per_worker:g} % CPU per worker: set num_parallel_workers > {workers}",
    "queue": "{avg_cpu_pct_per_worker:g} % CPU per worker and unusual queues: raise prefetch_size",
}
CPU = {
    "high": "{avg_cpu_pct_per_worker:g} % CPU per worker: set num_parallel_workers > {workers}",
    "low": "{avg_cpu_pct_per_worker:g} % CPU per worker: num_parallel_workers = {workers} may be more than it needs",
}
QUEUES = {
    "leaf": "its queue is filled to {queue_utilization_pct:g} %: set num_parallel_workers > {workers}",
    "device_queue": "its input queue is empty {input_empty_freq_pct:g} % of the time: the device waits for the dataset",
    "inner": "its input queue is filled to {input_utilization_pct:g} %, its output queue to "
    "{queue_utilization_pct:g} %: raise prefetch_size or num_parallel_workers",
}


def worded(parts: Mapping[str, Part]) -> dict[str, dict[str, Any]]:
    """The part of each program with a `note`; that of MindSpore with `suggestion` and the `text` of its details."""
    programs = {program: {**part, "note": NOTES[program]} for program, part in parts.items()}
    theirs, proposed = programs["mindspore"], parts["mindspore"]["suggestion_facts"]
    theirs["suggestion"] = SUGGESTIONS[proposed["finding"]].format_map(proposed) if proposed else None
    for details, texts in (("cpu_details", CPU), ("queue_details", QUEUES)):
        theirs[details] = [{**one, "text": texts[one["finding"]].format_map(one)} for one in theirs[details]]
    return programs
