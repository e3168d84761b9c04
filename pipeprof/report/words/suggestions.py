"""What to change at a dataset operator, in words: the action alone, and the sentence with its reason and its gain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeprof.report.answer.shape import TRAINING, apart, expected, op_label
from pipeprof.report.words import joined, speedup
from pipeprof.units import format_bytes, format_count, format_ns
from pipeprof.verdict.loader import ORDER, STAGES

Facts = Mapping[str, Any]

LOCKED = "it computes in Python, and threads take turns with the interpreter's lock (GIL)"
COPIED = "rows are large: each one is copied to the process and back"
LIGHTER = "fewer columns, smaller files, or a format that needs less decoding"
# Whose action is clear without its reason.
SHORT = (
    "workers", "workers_together", "rows_by_number", "to_processes", "stalls_apart", "whole_batches", "to_cpp",
    "unwrap_source", "most_workers_wait", "most_workers_compute", "loader_workers", "loader_persistent",
)  # fmt: skip
_THREADS = ", with python_multiprocessing=False"
SLEEPS = "with several workers a source sleeps 100 ms whenever its next row is not ready"
BOUND_BASIS = "throughput that the other stages allow / throughput now"


def worded(item: dict[str, Any]) -> dict[str, Any]:
    """A suggestion with `text`, `action`, `basis` and `not_when` as sentences; its codes and its numbers are kept."""
    facts = dict(item["facts"])
    if facts.get("prediction"):
        facts["prediction"] = speedup.worded(facts["prediction"])
    action, reason = WORDS[item["code"]](facts)
    gain = _gain(facts.get("prediction"))
    basis = [BOUND_BASIS] if item["code"] == "bound" else [speedup.sentence(one) for one in item["basis"]]
    unless = item["not_when"]
    not_when = NOT_WHEN[unless["code"]](unless) if unless else None
    text = action + "".join(f": {part}" for part in (reason, gain) if part)
    alone = f"{action}, unless {not_when}: {SLEEPS}" if unless and unless.get("near") else action
    return {"text": text, "action": alone if item["code"] in SHORT else text} | item | {
        "facts": facts, "basis": basis, "basis_facts": item["basis"], "not_when": not_when, "not_when_facts": unless,
    }  # fmt: skip


def title(code: str, op: str) -> str:
    """A change of an operator over many runs, in which its numbers differ. `code`: one that a gain is predicted of."""
    return TITLES[code].format(op=op)


def lead(item: dict[str, Any]) -> str:
    """The word in front of a suggestion: some say what to try, one says what can be gained at most."""
    return "Limit" if item["code"] == "bound" else "Try"


def _gain(prediction: Facts | None) -> str:
    if prediction is None:
        return ""
    ratio, low, high = (prediction[name] for name in ("ratio", "low", "high"))
    if ratio is None and not (low and high):
        return f"the gain cannot be predicted ({prediction['reason']})"
    said = expected(ratio, low, high)
    if prediction["trial"]:
        return f"{said}, as `{prediction['trial']}` measured"
    return said if ratio is not None else f"{said} ({prediction['reason']})"


def _bound(facts: Facts) -> tuple[str, str]:
    following = TRAINING if facts["next"] is None else op_label(facts["next"])
    action = f"no change of {op_label(facts['op'])} makes the training more than {facts['times']:.2f} times as fast"
    return action, f"after that, {following} is the bottleneck"


def _workers(facts: Facts) -> tuple[str, str]:
    why = facts["why"] or {"code": None}
    reason = {
        None: "",
        "polls": "with several workers a source sleeps 100 ms whenever the next row is not there yet, which limits it "
        f"to {why.get('rows_per_second', 0):.0f} rows/s",
        "cpu_short": "CPU is short, and fewer workers are enough",
    }[why["code"]]
    threads = _THREADS if facts.get("stays_threads") else ""
    change = f"to {facts['new_workers']} (now {facts['workers']}){threads}"
    return f"set num_parallel_workers of {op_label(facts['op'])} {change}", reason


def _together(facts: Facts) -> tuple[str, str]:
    labels = apart([one["op"] for one in facts["changes"]])
    changes = [
        f"of {label} to {one['new']} (now {one['old']})" for label, one in zip(labels, facts["changes"], strict=True)
    ]
    threads = _THREADS if any(one.get("stays_threads") for one in facts["changes"]) else ""
    action = f"set num_parallel_workers {joined(changes)}{threads}"
    return action, "they are about equally slow, and either alone brings little"


def _loader_workers(facts: Facts) -> tuple[str, str]:
    workers, lasting = (facts.get(name) for name in ("new_workers", "persistent"))
    more = ", persistent_workers=True" if lasting else ""
    action = f"make the batches in {format_count(workers or 0, 'worker process')} (num_workers={workers}{more})"
    return action, "all stages of the loader run in them"


def _one_thread(facts: Facts) -> tuple[str, str]:
    each = facts.get("call_cores")
    others = "their threads and the training's"
    if each:
        others = f"a row keeps {each:.1f} cores busy in each of {facts.get('workers')} worker processes, whose threads"
    return _on_op(
        "let each call of NumPy, OpenCV and the like in {op} use one thread (OMP_NUM_THREADS=1, "
        "OPENBLAS_NUM_THREADS=1, cv2.setNumThreads(1))",
        f"{others} take the cores from each other; what it brings cannot be predicted",
    )(facts)


def _loader_persistent(facts: Facts) -> tuple[str, str]:
    reason = "each epoch, of {1}, takes {0} to start them and to end them".format(*speedup.epoch_start(facts))
    return "let the workers of the DataLoader live on from epoch to epoch (persistent_workers=True)", reason


def _by_number(facts: Facts) -> tuple[str, str]:
    action = (
        f"give {op_label(facts['op'])} `__getitem__` and `__len__`, with num_parallel_workers={facts['new_workers']} "
        "and python_multiprocessing=False (MindSpore uses one worker for a generator or an iterator)"
    )
    return action, ""


def _processes(facts: Facts) -> tuple[str, str]:
    is_source = facts["op"]["op_type"] == "GeneratorOp"
    action = (
        f"run {op_label(facts['op'])} in worker processes (python_multiprocessing=True, "
        f"num_parallel_workers={facts['new_workers']}), or "
        + ("store its rows as MindRecord" if is_source else "replace it by an operation of MindSpore in C++")
    )
    return action, LOCKED


def _stalls_apart(facts: Facts) -> tuple[str, str]:
    action = (
        f"run {op_label(facts['op'])} in worker processes (python_multiprocessing=True, "
        f"num_parallel_workers={facts['new_workers']}), so that one can go on while another stalls"
    )
    return action, ""


def _most_workers(how: str) -> Callable[[Facts], tuple[str, str]]:
    def said(facts: Facts) -> tuple[str, str]:
        workers = format_count(facts["workers"], "worker")
        most = f"MindSpore allows at most one per CPU ({facts['cpus']} where this was recorded)"
        return how, f"{op_label(facts['op'])} has {workers}, and {most}"

    return said


def _deeper(facts: Facts) -> tuple[str, str]:
    reason = (
        f"{op_label(facts['op'])} stalls now and then, for {format_ns(facts['stall_ns'])} at most, and a queue of that "
        "length outlasts it; more workers do not help"
    )
    return f"raise the prefetch size to {facts['depth']} batches (ds.config.set_prefetch_size)", reason


def _rarer(facts: Facts) -> tuple[str, str]:
    """Stalls that no longer queue is known to outlast."""
    why = facts["why"] or {"code": None}
    reason = {
        None: "",
        "slow_on_average": "it is too slow even on average, so a longer queue cannot help",
        "queue_is_deep": f"its queue of {why.get('depth')} outlasts the longest of them already, so a longer one does "
        "not help",
    }[why["code"]]
    return f"make the stalls of {op_label(facts['op'])} rarer", reason


def _lock_holder(how: str) -> Callable[[Facts], tuple[str, str]]:
    return lambda facts: (
        f"{how.format(op_label(facts['op']))}",
        "it computes in Python and holds the interpreter's lock (GIL), which the training needs too",
    )


def _on_op(action: str, reason: str = "") -> Callable[[Facts], tuple[str, str]]:
    return lambda facts: (action.format(op=op_label(facts.get("op")), workers=facts.get("workers")), reason)


def _whole_batches(facts: Facts) -> tuple[str, str]:
    action = (
        f"let {op_label(facts['op'])} work on whole batches: put `.batch()` in front of this map and let the function "
        "take an array of rows, or pass it to `.batch` as per_batch_map"
    )
    calls = f"it is called {facts['rows']:.0f} times for a batch, {format_ns(facts['row_ns'])} each"
    return action, f"{calls}; NumPy does all rows in one call"


def _keep_rows(facts: Facts) -> tuple[str, str]:
    """A cache behind an operator, which the first epoch fills."""
    size = "of unknown size" if facts["bytes"] is None else format_bytes(facts["bytes"])
    kept = f"the rows behind {op_label(facts['op'])} in memory ({size})"
    return f"keep {kept}, from the second epoch on", ""


LIBRARIES_OWN = ("default_collate", "default_convert")  # functions that collate, which nobody can make cheaper


def _cheaper_rows(facts: Facts) -> tuple[str, str]:
    """Of Python that computes: in a dataset of MindSpore, or in a stage of a DataLoader."""
    ways = "a faster algorithm, an operation of MindSpore in C++, or work that is done ahead of time (MindRecord)"
    op = facts["op"]
    if op.get("op_type") in STAGES:
        ways = "a faster algorithm, operations of a library in place of Python, or work that is done ahead of time"
    if op.get("op_type") == "Collate" and op.get("name") in LIBRARIES_OWN:
        action = "have the dataset hand out whole batches (`batch_size=None`, with a sampler of batches)"
        return action, f"then {op_label(op)} has no rows to put together"
    makes_rows = op.get("op_type") not in ("Collate", ORDER)
    return f"make {'the rows of ' if makes_rows else ''}{op_label(op)} cheaper", ways


def _cheaper_reading(facts: Facts) -> tuple[str, str]:
    """Of a source that computes, or else reads or waits."""
    ready = ", so that the next one is ready in time" if facts.get("kind") == "poll" else ""
    action = f"make the rows of {op_label(facts['op'])} cheaper{ready}"
    if facts.get("kind") in ("cpu", "gil", "lock_wait"):
        return action, "make several rows at once, or make them once and store them as MindRecord"
    return action, "read in blocks, or store the data as MindRecord"


def _reading(facts: Facts) -> tuple[str, str]:
    """Of a reader of files: storage is to blame only where it waits, and workers need free cores."""
    more = f"raise num_parallel_workers of {op_label(facts['op'])} (now {facts['workers']})"
    if facts.get("kind") != "cpu":
        return f"read fewer, larger files (MindRecord), use faster storage, or {more}", ""
    if facts.get("crowded"):
        return f"make the rows of {op_label(facts['op'])} cheaper", f"{LIGHTER}; it computes, and no core stays idle"
    return f"{more}, or make its rows cheaper", LIGHTER


WORDS: dict[str, Callable[[Facts], tuple[str, str]]] = {
    "stop_other_programs": _on_op("stop the other programs that keep the CPU busy, or measure on a quiet machine"),
    "smaller_shuffle": _on_op(
        "use a smaller shuffle buffer (buffer_size)", "the whole buffer is filled before the first batch"
    ),
    "faster_reading": _reading,
    "loader_workers": _loader_workers,
    "loader_persistent": _loader_persistent,
    "faster_batches": _on_op(
        "make the batches of {op} faster",
        "cheaper rows, several threads or processes that make them, or work that is done ahead of time (MindRecord)",
    ),
    "cheaper_waits": _on_op(
        "make the rows of {op} cheaper", "keep what it waits for in memory, or wait for several rows at once"
    ),
    "cheaper_rows": _cheaper_rows,
    "cheaper_operations": _on_op(
        "make the rows of {op} cheaper",
        "fewer operations, smaller rows (crop or resize first), or work that is done ahead of time (MindRecord)",
    ),
    "whole_batches": _whole_batches,
    "to_cpp": _on_op(
        "give {op}, and Python maps behind it, operations of MindSpore in C++ (dataset.vision, .audio, .text)",
        "they need no lock",
    ),
    "unwrap_source": _on_op(
        "take the GeneratorDataset around {op} away, and use that dataset itself",
        "it is a dataset of MindSpore's already, and GeneratorDataset takes each of its rows through Python",
    ),
    "keep_rows": _keep_rows,
    "one_thread": _one_thread,
    "bound": _bound,
    "lock_ahead_of_time": _lock_holder(
        "do the work of {} ahead of time (MindRecord), or in a map with python_multiprocessing=True"
    ),
    "lock_to_processes": _lock_holder(
        "run {} in worker processes (python_multiprocessing=True), or use an operation of MindSpore in C++"
    ),
    "workers": _workers,
    "workers_together": _together,
    "most_workers_compute": _most_workers("make a row cheaper, or do the work ahead of time"),
    "most_workers_wait": _most_workers(
        "wait for several rows at once inside the function, or in the per_batch_map of batch"
    ),
    "to_processes": _processes,
    "source_holds_lock": _on_op(
        "do the work of {op} ahead of time (MindRecord), in a C++ operation, or in a map with "
        "python_multiprocessing=True",
        LOCKED,
    ),
    "rows_by_number": _by_number,
    "cheaper_reading": _cheaper_reading,
    "rarer_stalls": _rarer,
    "stalls_apart": _stalls_apart,
    "deeper_queue": _deeper,
    "fewer_bytes": _on_op(
        "transfer fewer bytes, such as smaller types", "the batches are ready on the host but late on the device"
    ),
}

TITLES = {
    "workers": "num_parallel_workers of {op}",
    "workers_together": "num_parallel_workers of {op}, and of others that are as slow",
    "rows_by_number": "`__getitem__` and workers for {op}",
    "to_processes": "worker processes for {op}",
    "stalls_apart": "worker processes for {op}, which stalls",
    "whole_batches": "whole batches for {op}",
    "to_cpp": "operations in C++ in place of {op}",
    "unwrap_source": "the dataset itself in place of {op}",
    "keep_rows": "rows behind {op} kept in memory",
    "deeper_queue": "a longer queue behind {op}",
    "loader_workers": "num_workers of the DataLoader of {op}",
    "loader_persistent": "persistent_workers of the DataLoader of {op}",
}


def _now(row_ms: float | None) -> str:
    return "" if row_ms is None else f" (now {row_ms:.1f} ms)"


NOT_WHEN: dict[str, Callable[[Facts], str]] = {
    "rows_are_large": lambda _: COPIED,
    "rows_are_large_or_threads": lambda _: f"{COPIED}; more threads never help",
    "threads_never_help": lambda _: "more num_parallel_workers with threads never help here",
    "cores_busy": lambda _: "the machine's cores are busy",
    "fewer_cpus": lambda facts: f"the machine has fewer than {facts['cpus']} CPUs",
    "rows_are_short": lambda facts: f"a row takes less than {facts['row_ms']:.1f} ms{_now(facts['now_ms'])}",
    "source_would_poll": lambda facts: (
        "do not just add workers to a source with fast rows: from two on, it polls and "
        f"delivers at most {facts['rows_per_second']:.0f} rows/s for each thread"
    ),
    "stalls_come_with_rows": lambda _: "the stalls come with certain rows: then all processes wait for them",
    "rows_differ": lambda _: "rows have different shapes: they cannot be put into one array",
    "rows_change": lambda _: "the Python in front of it makes something else of a row each time",
    "memory_short": lambda _: "memory is short: that many batches are held",
    "faster_soon": lambda _: "the training is about to become faster",
}
