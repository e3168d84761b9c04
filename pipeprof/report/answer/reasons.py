"""Words for the rules of the verdict: what each one says, and the facts that it asks for."""

from __future__ import annotations

from typing import Any

from pipeprof.units import format_ratio

# What each fact is, and its unit: share (0..1), cores, times, or a number.
FACTS = {
    "wait_share": ("the training's wait for data", "share"),
    "python_cores": ("CPU of Python code inside the process", "cores"),
    "lock_share": ("working time of the stage in which it waits for the interpreter's lock (GIL)", "share"),
    "overrun": ("measured work of the named stage over the time that there was for it", "times"),
    "gil_share": ("time that the interpreter's lock (GIL) is held", "share"),
    "busiest_python_share": ("the busiest operator's part of the CPU of Python code", "share"),
    "busy": ("utilisation of the busiest operator", "share"),
    "busy_over_loop": ("lead of the busiest operator over the training loop", "points"),
    "over_capacity": ("throughput of the training / maximum throughput of the named stage, unless it stalls", "times"),
    "pace_ratio": ("utilisation of the busier / that of the other, of training loop and operator", "times"),
    "pipeline_share": ("the data pipeline's part of the job's CPU", "share"),
    "freed": ("speed of the training if it had the pipeline's CPU and need not wait, over its speed now", "times"),
    "share_over_wait": ("that part minus the training's wait for data", "points"),
    "drop": ("largest drop in queue fill", "share"),
    "untimed_drop": ("largest drop in queue fill, at an operator without times", "share"),
    "drop_at_busiest": ("drop in queue fill at the busiest operator, if no other has a larger one", "share"),
    "drop_elsewhere": ("the largest drop in queue fill, at another stage", "share"),
    "stalling": ("utilisation of an operator that stalls now and then", "share"),
    "untimed_cores": ("largest CPU of an operator beyond what its rows take", "cores"),
    "contending_cores": ("CPU of the operator that uses the most, among those that are used or not timed", "cores"),
    "first_utilisation": ("utilisation of the named stage", "share"),
    "margin": ("utilisation of the named stage minus the next one's", "points"),
    "queued": ("operators that do not take turns with others", "number"),
    "batches": ("batches of the steady state", "number"),
    "idle_share": ("idle part of the cores that the training may use", "share"),
    "idle_room": ("idle cores / half a core, or 12 % of all where that is more", "times"),
    "others_share": ("part of these cores that other programs use", "share"),
    "worker_law_ratio": ("time between two rows that its workers allow / that its 100 ms polls allow", "times"),
    "row_law_ratio": ("time between two rows / least time that its 100 ms polls allow", "times"),
    "law_row_ns": ("least time between two rows that its 100 ms polls allow", "number"),
    "work_cv": ("standard deviation / mean of the work per batch", "times"),
    "longest_batches": ("usual longest row / work per batch", "times"),
    "burst_share": ("intervals in which one row took 15 times the mean and 5 % of the work", "share"),
    "cpu_share": ("part of its busy time that is computing", "share"),
    "cores_per_worker": ("CPU of each of its workers", "cores"),
    "host_empty_share": ("batches that left the host queue empty", "share"),
    "device_empty_share": ("requests that found the device's queue empty", "share"),
}
_UNITS = {"cores": " cores", "times": " times", "number": "", "points": " percentage points"}
RELATIONS = {
    "at_least": "at least {}", "at_most": "at most {}", "above": "more than {}", "below": "less than {}",
    "short_of": "less than {} or not known", "not_above": "at most {} or not known",
    "known": "measured", "unknown": "not measured", "noted": "any",
}  # fmt: skip

# What each rule says about the stage that it names.
RULES = {
    "lock_beside_loop": "the training's own work waits for the lock that this operator holds",
    "takes_cpu": "hardly a core is idle, and the data pipeline takes much of the CPU that the training could use",
    "data_in_time": "the training hardly waits for data",
    "lock_held": "this stage holds the lock that the busiest operator waits for",
    "lock_mostly_held": "this stage holds the lock most of the time, and the busiest operator waits for it",
    "lock_not_measured": "Python code of this stage fills a core, so that the busiest operator waits for the lock",
    "busier_than_loop": "this stage is busy, and busier than the training loop",
    "drop_without_times": "queues before this stage are full and those behind it empty, and no timed operator is busy",
    "waiting_varies": "the training is busier than every operator, and waits only now and then",
    "busiest": "this stage is busy",
    "most_cpu": "no operator is busy, and this stage takes the most CPU",
    "no_clear_sign": "no other rule applies; this stage is the busiest, or the queues point to it",
    "queues_alone": "queues before this stage are full and those behind it empty; nothing else was recorded",
}
CHOICES = {
    "loop": "the training loop", "busiest": "the busiest operator",
    "lock_holder": "the operator with the most Python CPU",
    "taker": "the operator with the most CPU",
    "drop_stage": "the stage with the largest drop", "contender": "the operator with the most CPU",
    "best_guess": "the busiest operator; without times the stage with the largest drop",
}  # fmt: skip


def sentence(name: str, facts: list[dict[str, Any]]) -> str:
    """Why a stage was named: the rule, and each fact that it asked for with its bound."""
    shown = "; ".join(_fact(item) for item in facts)
    return f"Rule `{name}`: {RULES.get(name, name)} ({shown})"


def condition(fact: str, relation: str, bound: float | None) -> str:
    """What a rule asks for, such as "the training's wait for data: at most 20 %"."""
    words, unit = FACTS[fact]
    return f"{words}: {RELATIONS[relation].format(_bound(bound, unit))}"


def _fact(item: dict[str, Any]) -> str:
    words, unit = FACTS[item["fact"]]
    value = "not measured" if item["value"] is None else _number(item["value"], unit)
    asked = (
        "" if item["bound"] is None else ", needs " + RELATIONS[item["relation"]].format(_bound(item["bound"], unit))
    )
    return f"{words}: {value}{asked}"


def _bound(bound: float | None, unit: str) -> str:
    if bound is None:
        return "-"
    if unit == "points":
        return f"{bound * 100:g}{_UNITS[unit]}"
    return f"{bound * 100:g} %" if unit == "share" else f"{bound:g}{_UNITS[unit]}"


def _number(value: float, unit: str) -> str:
    if unit == "points":
        return f"{value * 100:.1f}{_UNITS[unit]}"
    return format_ratio(value) if unit == "share" else f"{value:.2f}{_UNITS[unit]}"
