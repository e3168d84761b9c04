"""What led to a verdict, in words: what each rule says, what each number is, and what it was measured on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeprof.report.answer.shape import op_label
from pipeprof.report.words.names import COMMUNICATION, PHASES, title
from pipeprof.units import format_count, format_ns, format_ratio

Facts = Mapping[str, Any]
BESIDE = COMMUNICATION | {"stalled": "short operators that wait for a core beside the Python that launches them"}

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


TIMES = {
    "log": "MindSpore's timing lines",
    "hook": "timed calls of its Python",
    "both": "timed calls and MindSpore's timing lines",
}


def worded(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The numbers with `what` and `basis` as words; their codes and facts are kept."""
    return [
        {
            "what": WHAT[item["code"]](item["facts"]), "value": item["value"], "unit": item["unit"],
            "source": item["source"], "basis": BASIS[item["measured_on"]["code"]](item["measured_on"]),
            "code": item["code"], "facts": item["facts"], "measured_on": item["measured_on"],
        }
        for item in items
    ]  # fmt: skip


def _of(text: str) -> Callable[[Facts], str]:
    """Words in which `{op}`, `{rank}` and the like stand for what the number is of."""

    def said(facts: Facts) -> str:
        names = {
            "op": op_label(facts.get("op")), "phase": PHASES.get(facts.get("phase", "")),
            "measure": title(facts["measure"]) if "measure" in facts else None,
            "limit": PHASES.get(facts.get("limit", "")),
        }  # fmt: skip
        return text.format(**{**facts, **names})

    return said


def batches(number: int | None) -> str:
    """`1 batch`, `1,200 batches`."""
    return format_count(number or 0, "batch")


def _step_shares(facts: Facts) -> str:
    kind = "steps with recorded operators" if facts["recorded"] else "steps as their profiler divides them"
    slow = facts["slow_rank"]
    where = format_count(facts["ranks"], "rank") if slow is None else f"rank {slow}, the slowest"
    return f"{facts['steps']} {kind if facts['steps'] != 1 else kind.replace('steps', 'step', 1)}, {where}"


def _common_steps(facts: Facts) -> str:
    return (
        f"{facts['steps']} common steps of {facts['ranks']} ranks; standard error {format_ns(facts['error_ns'])}; "
        "steps are equally long on all ranks, so the slow one has the longest own time and the least communication"
    )


def _warmup(facts: Facts) -> str:
    took = f"{format_count(facts['compiles'], 'compilation')} took {format_ns(facts['compile_ns'])}"
    steps = format_count(facts["warmup_steps"], "warm-up step")
    return f"{steps} ({took}), {facts['train_steps']} others; worst rank, median of the repetitions"


def _windows(facts: Facts) -> str:
    interval = f"{format_ns(facts['low_ns'])} to {format_ns(facts['high_ns'])}"
    return (
        f"{facts['steps']} steps in {format_count(facts['windows'], 'window')}, from {format_ns(facts['first_ns'])} to "
        f"{format_ns(facts['last_ns'])} per step; interval {interval}"
    )


def _compared_steps(facts: Facts) -> str:
    noise = "" if facts["noise_ns"] is None else f"; standard error {format_ns(facts['noise_ns'])}"
    steps = f"{format_count(facts['steps'], 'step')} of {facts['ranks']} ranks{noise}"
    return f"{steps}; a difference counts from {format_ns(facts['needed_ns'])}"


def _collective(facts: Facts) -> str:
    kind = facts["kind"] or "collective"
    return f"most of it in {kind} `{facts['name']}`; matched by name, overlapping waits count again"


WHAT: dict[str, Callable[[Facts], str]] = {
    "data_wait": _of("time waiting for data"),
    "data_wait_whole": _of("time waiting for data in all steps"),
    "throughput": _of("throughput of the training"),
    "consumer_throughput": _of("maximum throughput of the training itself"),
    "work_per_batch": _of("work per batch in {op}"),
    "max_throughput": _of("maximum throughput of {op}"),
    "utilisation": _of("utilisation of {op}"),
    "queue_drop": _of("drop in queue fill at {op}"),
    "last_queue": _of("fill of the queue in front of the training"),
    "input_queue": _of("fill of the queue in front of {op}"),
    "output_queue": _of("fill of the queue behind {op}"),
    "computing": _of("part of the busy time of {op} that is computing"),
    "cpu": _of("CPU use of {op}"),
    "lock_waits": _of("part of the busy time of {op} that is waiting for the interpreter's lock (GIL)"),
    "lock_held": _of("time in which Python code holds the interpreter's lock (GIL)"),
    "longest_row": _of("usual longest row of {op}"),
    "polled_row": _of("least time between two rows"),
    "idle": _of(FACTS["idle_share"][0]),
    "host_queue_empty": _of("queue on the host found empty"),
    "device_queue_empty": _of("queue on the device found empty"),
    "fetch_call": _of("loading in `{name}`"),
    "before_forward": _of("time from the end of a step to its forward pass"),
    "step_part": _of("{limit}"),
    "also": lambda facts: BESIDE.get(facts["part"]) or f"{PHASES[facts['part']]} in these steps",
    "inflation": _of("length of a step with recorded operators, compared with other steps"),
    "rank_waits": _of("waiting for another rank"),
    "rank_longer": _of("extra time of rank {rank}, compared with the others, most of it in {phase}"),
    "wait_caused": _of("time per step that the other ranks wait for it"),
    "warmup": _of("warm-up steps, graph compilation included"),
    "growth": _of("growth of `{name}` from step to step"),
    "rank_measure": _of("extra {measure} of rank {rank}, compared with the others"),
    "rank_measure_sometimes": _of("extra {measure} of rank {rank}, compared with the others, mean of all steps"),
    "rank_phase": _of("extra time of rank {rank} in {phase}"),
    "rank_communication": _of("communication that rank {rank} has less than the others"),
    "last_to_arrive": _of("collectives at which rank {rank} arrives last"),
    "waits_for_rank": _of("time per step that each other rank waits for rank {rank}"),
}
BASIS: dict[str, Callable[[Facts], str]] = {
    "steady_batches": lambda facts: f"{batches(facts['batches'])} of the steady state, after the first quarter",
    "batches": lambda facts: batches(facts["batches"]),
    "all_steps": lambda _: "all steps but warm-up; those with recorded operators only if there are no others",
    "steps": lambda facts: format_count(facts["steps"], "step"),
    "steps_of_rank": lambda facts: f"{format_count(facts['steps'], 'step')}, rank {facts['rank']}",
    "without_data_wait": lambda _: "without its wait for data",
    "timed_batches": lambda facts: f"{TIMES.get(facts['times'], facts['times'])}, {batches(facts['batches'])}",
    "workers": lambda facts: format_count(facts["workers"], "worker"),
    "throughputs": lambda _: "throughput of the training / its maximum throughput",
    "takes_turns": lambda _: "stages that take turns count as one, which the longest of them stands for",
    "prefilled": lambda facts: (
        f"the training took {facts['times']:.2f} times its maximum throughput, from batches that were prepared before"
    ),
    "no_service_times": lambda _: "it has no service times",
    "samples": lambda facts: format_count(facts["samples"] or 0, "sample"),
    "thread_cpu_time": lambda _: "CPU time of its threads",
    "mean": lambda _: "mean",
    "probes": lambda facts: f"{facts['per_second']} probes/s",
    "intervals": lambda _: "per interval or batch",
    "polls": lambda facts: f"polls of {facts['poll_ms']} ms",
    "host_samples": lambda _: "samples of CPU use",
    "loading": lambda facts: f"calls within the waits, {format_count(facts['threads'], 'thread')}",
    "step_shares": _step_shares,
    "medians": lambda _: "medians without the wait for data",
    "beyond_least": lambda _: "exposed communication beyond that of the rank with the least, mean of the ranks",
    "common_steps": _common_steps,
    "warmup": _warmup,
    "windows": _windows,
    "compared_steps": _compared_steps,
    "held_up_steps": lambda facts: (
        f"over a tenth of a step longer in {facts['held_up']} of {facts['steps']} steps; {facts['ranks']} ranks"
    ),
    "same_steps": lambda _: "the same steps",
    "they_wait": lambda _: "there the others wait for it",
    "they_do_not_wait": lambda _: "the others do not wait for it there",
    "collectives": lambda facts: (
        f"{facts['events']:,} collectives; by chance it would be {format_ratio(facts['expected_share'])}"
    ),
    "collective": _collective,
}
