"""What a prediction rests on, and why there is none, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Facts = Mapping[str, Any]

LOCK = "the interpreter's lock (GIL)"


def worded(prediction: Facts) -> dict[str, Any]:
    """A prediction with `basis` and `reason` as sentences; their codes and numbers are `basis_facts`, `reason_facts`.

    One without `basis` stays without it.
    """
    reason = prediction["reason"]
    in_words = {**prediction, "reason": None if reason is None else sentence(reason), "reason_facts": reason}
    if "basis" in prediction:
        in_words["basis"] = [sentence(one) for one in prediction["basis"]]
        in_words["basis_facts"] = list(prediction["basis"])
    return in_words


def sentence(item: Facts) -> str:
    """One code of verdict/capacity.because."""
    return WORDS[item["code"]](item)


def epoch_start(facts: Facts) -> tuple[str, str]:
    """What an epoch takes to start and to end the workers of a DataLoader, and how many batches it has."""
    return format_ns(facts["restart_ns"]), format_count(round(facts["batches"]), "batch")


def _not_timed(facts: Facts) -> str:
    types = facts["op_types"]
    named = types[0] if len(types) == 1 else f"{', '.join(types[:-1])} and {types[-1]}"
    if len(types) == 1:
        return f"{named} is not timed: the gain is as stated only if it keeps up"
    return f"{named} are not timed: the gain is as stated only if they keep up"


def _between_rows(facts: Facts) -> str:
    workers = format_count(facts["workers"], "worker")
    return f"with {workers} the source gives a row every {format_ns(facts['row_ns'])}"


WORDS: dict[str, Callable[[Facts], str]] = {
    "measured": lambda facts: f"measured before, by `{facts['verb']}`",
    "learned": lambda _: "corrected by what a trial of this tuning showed",
    "not_measured": lambda _: "nothing was measured of this operator",
    "not_timed": lambda facts: (
        f"MindSpore does not time {facts['op_type']}, so there is no service time to predict from"
    ),
    "iterated": lambda _: "MindSpore takes its rows one after the other, for it has no __getitem__",
    "works_in_turn": lambda _: "parts of a concatenation work one after the other, each a part of the time",
    "others_may_limit": lambda _: "an operator behind it was not timed, and may limit as well",
    "scaling_not_known": lambda facts: (
        f"it is not known how the throughput of {facts['op_type']} depends on its workers"
    ),
    "rows_not_known": lambda _: "it is not known how many rows make a batch",
    "row_hidden": lambda _: (
        "the time of one row cannot be measured while several workers are polled: record a run with one worker"
    ),
    "stall_not_known": lambda _: (
        "it is not known how long its stalls are, so neither is the queue depth that outlasts them"
    ),
    "too_wide": lambda _: "the range is too wide for a prediction",
    "no_idle_core": lambda _: "no CPU core was idle, so the gain depends on what else runs",
    "prefetch_unused": lambda _: "a source with one worker does not use the prefetch size",
    "row_in_worker": lambda facts: f"a worker of the source takes {format_ns(facts['row_ns'])} for a row",
    "row_alone": lambda facts: f"the source takes {format_ns(facts['row_ns'])} for a row",
    "between_rows": _between_rows,
    "polls_limit_now": lambda _: "the polls of the source limit it now, which hides the time of one row",
    "polled": lambda facts: (
        f"with {format_count(facts['workers'], 'worker')} at least {format_ns(facts['least_ns'])} pass between two "
        "rows: the source sleeps 100 ms whenever the next row is not ready"
    ),
    "makes_meanwhile": lambda _: (
        "but its threads go on while it waits to hand on a row, and shallower queues make it wait more often"
    ),
    "polled_less": lambda _: (
        "rows on their way to worker processes make the polled source wait, and while it waits its threads make more; "
        "how much is not known"
    ),
    "not_polled": lambda _: "a source with one worker does not poll",
    "may_hold_lock": lambda _: f"more threads bring nothing if its Python code always holds {LOCK}",
    "holds_lock": lambda _: f"its Python code holds {LOCK}, so more threads only take turns",
    "waits_for_lock": lambda _: f"its threads wait for {LOCK}, so more of them wait longer",
    "rows_without_python": lambda _: "its rows no longer come through Python; how fast they come then is not known",
    "calls_of_batches": lambda _: f"its function is called, and waits for {LOCK}, once for a batch, not for each row",
    "no_lock_in_cpp": lambda _: f"an operation in C++ needs no call of Python, and no wait for {LOCK}",
    "stalls_stay": lambda _: "its time goes to rare, long stalls, which more workers do not remove",
    "stalls_may_overlap": lambda _: "its time goes to rare, long stalls, which may overlap if each process has its own",
    "stalls_may_stay": lambda _: "its time goes to rare, long stalls, during which the other workers may have to wait",
    "loader_not_timed": lambda _: "not all stages of the loader were timed, as of workers that were spawned",
    "no_epoch_began": lambda _: "no second epoch began with new workers, so it is not known what starting them takes",
    "queue_of_batches": lambda _: "more batches ahead do not make a stage faster",
    "in_the_loop": lambda _: "the loop makes each batch itself, and waits for it",
    "loader_in_proportion": (
        "batches in proportion to the workers that make them (num_workers {old} -> {new})".format_map
    ),
    "starts_saved": lambda facts: "starting and ending workers takes {} of each epoch of {}".format(
        *epoch_start(facts)
    ),
    "in_proportion": lambda facts: (
        f"maximum throughput of {facts['op_type']} in proportion to its workers ({facts['old']} -> {facts['new']})"
    ),
    "more_core_for_each": lambda _: "its workers compute, so each that stays gets more of the CPU cores",
    "free_cores_limit": lambda _: "its workers compute, so idle CPU cores limit the gain, at most one for each worker",
    "transfer_not_known": lambda _: "it is not known how long rows take to reach worker processes and come back",
    "rows_stay": lambda _: "its rows no longer go to worker processes and back, which took what its function did not",
    "others_not_timed": _not_timed,
    "training_not_timed": lambda _: "the maximum throughput of the training itself was not measured",
}
