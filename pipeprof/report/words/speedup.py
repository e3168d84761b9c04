"""What a change is predicted to bring, and what pairs of runs with and without it gave, in words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pipeprof.report.answer.shape import expected
from pipeprof.units import format_bytes, format_count, format_ns
from pipeprof.verdict.speedup import LEVEL, MOST_PAIRS, PARTS

Facts = Mapping[str, Any]


def changes(what: Iterable[Mapping[str, Any]]) -> str:
    """All in one line: `MapOp 2 `rotate`: workers 1 -> 2; BatchOp 1: workers 1 -> 2`."""
    return "; ".join(map(change, what))


def change(item: Mapping[str, Any]) -> str:
    """Of one operator, or of what the command runs in."""
    text = values(item["change"])
    named = f" `{item['name']}`" if item["name"] else ""
    moved = item["change"].get("maps_after")
    if moved is not None:
        text = "in front of the map that feeds it" if moved[1] == 1 else f"in front of the {moved[1]} maps that feed it"
    if item["op"] == "environment":
        text = ", ".join(f"{name}={new}" for name, (_, new) in item["change"].items())
    return f"{item['op']}{named}: {text}"


def values(changed: Mapping[str, Sequence[Any]]) -> str:
    """`workers 1 -> 2, processes no`: what stays as it is, is one value."""
    return ", ".join(
        f"rows kept in memory, at most {format_bytes(new)}"
        if name == "cache"
        else f"{name} {_value(new)}"
        if old == new
        else f"{name} {_value(old)} -> {_value(new)}"
        for name, (old, new) in changed.items()
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unset" if value is None else str(value)


SAYS_NOTHING = 100  # times the low end of an interval, as its high end
AGAIN = 2  # times as many pairs, where so many did not decide


def figure(measured: Mapping[str, Any], mark: str = "x") -> str:
    """`x1.60`, or `x1.80 or x3.10` where there are two speeds."""
    return " or ".join(f"{mark}{one['ratio']:.2f}" for one in measured["speeds"] or [measured])


def spread(measured: Mapping[str, Any]) -> str:
    """What the figure comes from: the interval and the single pairs, or the two speeds."""
    if measured["speeds"]:
        listed = [
            f"x{speed['ratio']:.2f} in {format_count(len(speed['pairs']), 'pair')}" for speed in measured["speeds"]
        ]
        return f"two speeds: {', '.join(listed)}"
    pairs = f"single pairs x{measured['low']:.2f} to x{measured['high']:.2f}"
    interval = measured["interval"]
    if interval is None or interval[1] > SAYS_NOTHING * interval[0]:
        return pairs
    return f"{100 * LEVEL:.0f} % interval x{interval[0]:.2f} to x{interval[1]:.2f}; {pairs}"


def undecided_lines(measured: Mapping[str, Any]) -> list[str]:
    """That there is no answer, why, and what may bring one."""
    if measured["decided"] == "two_speeds":
        return [
            f"undecided: {figure(measured)} ({spread(measured)})",
            "each run has one of the speeds; more pairs do not change that",
        ]
    more = f"--max-pairs {max(MOST_PAIRS, AGAIN * measured['pairs'])}"
    if measured["stopped"] == "budget":
        more = "a longer --budget"
    if measured["interval"] is None:
        return [f"undecided: a single pair says {figure(measured)}", f"measure more of them: {more}"]
    return [
        f"undecided: {format_count(measured['pairs'], 'pair')} do not agree ({spread(measured)})",
        f"measure more of them ({more}), on a quiet machine if you can",
    ]


def speed_lines(content: Mapping[str, Any]) -> list[str]:
    """Which runs have two speeds: those of a side, or single ones within themselves."""
    words = {"a": "unchanged", "b": "changed"}
    side = content["measured"]["speeds_of"]
    said = [f"it is the {words[side]} runs that have two speeds"] if side else []
    for run in content["runs"]:
        if run["speeds"]:
            listed = [f"{one['steps_per_second']:.1f} steps/s in {one['parts']}" for one in run["speeds"]]
            said.append(f"run {run['name']} changed its speed: {', '.join(listed)} of its {PARTS} parts")
    return said


def rates_line(content: Mapping[str, Any], before: str, after: str) -> str:
    """Steps/s of the runs of either side, each in the order of the pairs."""
    runs = sorted(content["runs"], key=lambda run: run["pair"])
    rates = {side: [run["steps_per_second"] for run in runs if run["side"] == side] for side in ("a", "b")}
    return f"steps/s {before} {_listed(rates['a'])}; {after} {_listed(rates['b'])}"


def _listed(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:.1f}" for rate in rates)


def prediction_lines(content: Mapping[str, Any]) -> list[str]:
    """What is changed and what that should bring."""
    op, predicted = content["op"], content["prediction"]
    change = values(content["change"])
    named = f" `{op['name']}`" if op["name"] else ""
    origin = f"measured before, by `{predicted['trial']}`" if predicted.get("trial") else "predicted"
    lines = [f"change: {op['op_type']} {op['op_id']}{named}: {change}", f"{origin}: {_gain(predicted)}"]
    lines += [] if predicted.get("trial") else [f"  {basis}" for basis in predicted["basis"]]
    if predicted["limited_by"] is not None:
        lines.append(f"  then {_limit(predicted['limited_by'], op['op_id'])}")
    return lines


def _limit(limit: int | str, changed: int) -> str:
    if limit == "consumer":
        return "the training itself is the bottleneck"
    return "this operator is still the bottleneck" if limit == changed else f"operator {limit} is the bottleneck"


def _gain(predicted: Mapping[str, Any]) -> str:
    ratio, low, high = (predicted[name] for name in ("ratio", "low", "high"))
    if ratio is None and low is None:
        return f"not possible: {predicted['reason']}"
    return expected(ratio, low, high) + ("" if ratio is not None else f": {predicted['reason']}")


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
