"""The verdict on a run in a few words: one phrase for each cause, which every screen uses.

What other programs advise, in words, and why they may name another operator than we do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeprof.report.words import causes
from pipeprof.report.words.names import PHASES, title
from pipeprof.report.words.training import PARTS
from pipeprof.units import format_count, percent

if TYPE_CHECKING:
    from pipeprof.verdict.cause import Cause, Few


PHRASES = {
    "failed": "failed",
    "hang": "no longer went on",
    "rank_cause": "{detail}",
    "process": "short of CPU: process",
    "thread": "the interpreter's lock: thread",
    "part": "{detail}",
    "drift": "gets slower as it runs",
    "input_bound": "input-bound",
    "interpreter_lock": "slowed down by Python of its data pipeline",
    "shared_cpu": "short of CPU",
    "balanced": "balanced",
    "python_call": "a Python call",
    "straggler": "{rank} is a straggler",
    "communication": PHASES["communication"],
    "host_gap": "host-bound",
    "other_loader": "another loader, whose wait is not known",
    "after": PHASES["after"],
    "imbalance": "{rank} is a straggler",
    "compute": "compute-bound",
    "gradients": PHASES["gradients"],
    "optimizer": title("optimizer"),
    "compile": "warm-up",
    "in_time": "not input-bound",
    "not_measured": "not measured",
}
OF_ONE_RANK = ("slow_worker", "fail_slow")
MOST = 100  # as fast: from here on a number says nothing


def phrase(cause: Cause) -> str:
    """`input-bound: augment`, `host-bound`, `evaluation`, `callback Monitor`."""
    text = PHRASES[cause.code]
    detail = causes.NAMES.get(cause.detail, cause.detail) if cause.code == "rank_cause" else PARTS.get(cause.detail, "")
    rank = "a rank" if cause.rank is None else f"rank {cause.rank}"
    text = text.format(detail=detail, rank=rank)
    if cause.detail in OF_ONE_RANK and cause.rank is not None:
        return f"{text}: {rank}"
    if cause.stage is not None:
        return f"{text}: {cause.stage.name or cause.stage.op_type}"
    return f"{text} {cause.name}" if cause.name else text


def costs(cause: Cause) -> str:
    """`45 % of the time; at most 1.82 times as fast without it`; empty where nobody knows."""
    if cause.share is None:
        return ""
    bound = "" if cause.most is None or cause.most >= MOST else f"; at most {cause.most:.3g} times as fast without it"
    return f"{percent(cause.share)} of the time{bound}" + (f"; {unknown_gain(cause.few)}" if cause.few else "")


def unknown_gain(few: Few) -> str:
    """`what that brings cannot be told from 2 steps: 5 or more are needed`."""
    return f"what that brings cannot be told from {format_count(few.steps, 'step')}: {few.needed} or more are needed"


def beside(cause: Cause, lead: Cause) -> str:
    """A sentence for a cause that costs about as much as the first, or more, and then is less sure."""
    larger = (cause.share or 0.0) > (lead.share or 0.0) and cause.confidence != lead.confidence
    how = "which is less sure" if larger else "at about the same cost"
    return f"{phrase(cause)[:1].upper()}{phrase(cause)[1:]}, {how}: {costs(cause)}."


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
