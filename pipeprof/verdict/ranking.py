"""What holds a run up: every candidate cause, ranked once for all screens by what acting on it brings. Pure.

Each candidate says what share of the training's time it costs, interruptions included, so that candidates of all kinds
can be put in one order. docs/diagnosis.md has the order in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pipeprof.verdict import run_account
from pipeprof.verdict.account import contention_in
from pipeprof.verdict.calls import is_of_callback, stage_of_call
from pipeprof.verdict.cause import MOST_SHARE, Advice, Cause, Evidence, Gain, RunVerdict, Stage
from pipeprof.verdict.data_cause import CODES as DATA
from pipeprof.verdict.data_cause import INPUT, LOCK, data_cause, few_steps
from pipeprof.verdict.network import LEAST_STEPS, OTHER_LOADER
from pipeprof.verdict.rules import GRADES, MODERATE_WAIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeprof.verdict.account import Contention

    Row = Mapping[str, Any]

LEAST = MODERATE_WAIT  # of the training's time: what costs less leads nothing
ALIKE = 0.8  # of the share of the first: a second cause that costs as much is named beside it, before it if it is surer
UNBOUNDED = ("compile_step",)  # advice that makes operators cheaper as well, which its part of the step cannot bound
LEFT = 0.5  # of what it saves by estimate: so much may be left, where compiled steps have gaps of their own
MOSTLY = 0.5  # of a part of the step: a call that takes so much of it is its cause
STRAGGLER_SHARE = 0.1  # of a step: from here on a straggler is a cause, whatever else takes time

FAILED, HANG, PROCESS, THREAD, PART, DRIFT, RANKS, STRAGGLER, CALL = (
    "failed", "hang", "process", "thread", "part", "drift", "rank_cause", "straggler", "python_call",
)  # fmt: skip
IN_TIME, NOT_MEASURED = "in_time", "not_measured"
COSTS = (
    "communication",
    "host_gap",
    OTHER_LOADER,
    "after",
    "imbalance",
)  # limits of a step that a training could do without
WORK = ("compute", "gradients", "optimizer", "compile")  # what a training is for, or pays once
CODES = (
    FAILED, HANG, RANKS, PROCESS, THREAD, PART, DRIFT, *DATA, CALL, STRAGGLER, *COSTS, *WORK, IN_TIME, NOT_MEASURED,
)  # fmt: skip

# What a cause brings about: acting on it ends these too, so it is worth at least as much.
EXPLAINS: dict[str, tuple[str, ...]] = {
    PROCESS: (INPUT, "shared_cpu", "host_gap"),
    THREAD: (INPUT, LOCK, CALL, "host_gap"),
    LOCK: ("host_gap",),
    CALL: ("host_gap", "after", OTHER_LOADER),
    STRAGGLER: ("communication", "imbalance"),
    RANKS: ("communication", "imbalance"),
}


def rank(
    diagnosis: Row,
    account: Row,
    *,
    training: float = 1.0,
    straggler: Row | None = None,
    replay: Row | None = None,
    failed: bool = False,
    hang: Row | None = None,
) -> RunVerdict:
    """All candidates of a run, the one that leads first.

    `diagnosis`: of the data, with `process` and `network`; `account`: `large` and `slower` of the whole run, see
    verdict/run_account; `training`: its training_share, a share of the steps times which is one of the whole loop;
    `straggler`: of verdict/straggler; `replay`: of verdict/replay; `failed`: the command ended with an error; `hang`:
    what a rank was in when a training that no longer went on was ended, a row of verdict/waiting; None where an
    exception of the training ended it.
    """
    network = diagnosis.get("network") or {}
    candidates = [
        *([Cause(FAILED)] if failed else []),
        *([] if hang is None else [hanging(hang)]),
        *_of_ranks(replay, straggler, diagnosis, training),
        *_process(diagnosis),
        *(_part(row) for row in run_account.costly_parts(account["large"])),
        *_drift(account["slower"], training),
        *_within(data_cause(diagnosis) if diagnosis["verdict"] != NOT_MEASURED else None, training),
        *_calls(diagnosis, account["large"]),
        *_network(network, diagnosis.get("data_wait_share"), training, of_one_mode=diagnosis.get("modes") is not None),
    ]
    if diagnosis["verdict"] == "consumer_bound":
        candidates.append(Cause(IN_TIME, confidence=diagnosis["confidence"]))
    candidates.append(Cause(NOT_MEASURED))
    return _ordered(candidates)


def hanging(row: Row) -> Cause:
    """A rank that no longer went on: `row` of verdict/waiting, with what it was in (`code`) and how long (`for_s`)."""
    seconds = row.get("for_s")
    lasted = () if seconds is None else (Evidence("for", seconds * 1e9, "ns"),)
    return Cause(HANG, detail=row["code"], confidence="high", rank=row["rank"], evidence=lasted)


def _ordered(candidates: Sequence[Cause]) -> RunVerdict:
    worth = {cause: _worth(cause, candidates) for cause in candidates}
    causes = sorted(candidates, key=lambda cause: (_class(cause), -worth[cause], CODES.index(cause.code)))
    alike = 1
    first, second = causes[0], causes[1] if len(causes) > 1 else None
    if second is not None and _class(first) == _class(second) == _COST and second.code not in _explained(first):
        alike += (second.share or 0.0) >= ALIKE * (first.share or 0.0)
    if second is not None and alike > 1 and _doubt(second) < _doubt(first):
        causes[:2] = second, first
    return RunVerdict(tuple(causes), alike)


_COST = 2


def _doubt(cause: Cause) -> int:
    return GRADES.index(cause.confidence or GRADES[-1])


def _class(cause: Cause) -> int:
    """The order of kinds: how it ended, what costs, what a training is for, and what is not known."""
    if cause.code in (HANG, FAILED):  # a training that stood still was ended for it
        return (HANG, FAILED).index(cause.code)
    if cause.code in (IN_TIME, NOT_MEASURED):
        return 4 + (IN_TIME, NOT_MEASURED).index(cause.code)
    if cause.code in WORK:
        return 3
    unknown = cause.code in DATA and cause.share is None  # queues alone say so: how long it waits is not known
    return _COST if unknown or (cause.share or 0.0) >= LEAST else 4 + 2


def _worth(cause: Cause, candidates: Sequence[Cause]) -> float:
    """Its own share, or that of what it brings about where that is more."""
    explained = [other.share or 0.0 for other in candidates if other.code in _explained(cause)]
    if cause.code == CALL:  # one of several things that such a part may consist of
        explained = [share for share in explained if (cause.share or 0.0) >= MOSTLY * share]
    return max([cause.share or 0.0, *explained])


def _explained(cause: Cause) -> tuple[str, ...]:
    more = (DRIFT, PROCESS) if cause.code == RANKS and cause.detail == "fail_slow" else ()
    return EXPLAINS.get(cause.code, ()) + more


def _within(cause: Cause | None, training: float) -> Iterator[Cause]:
    """The cause with its share of steps as one of the loop."""
    if cause is not None:
        yield replace(cause, share=None if cause.share is None else cause.share * training)


def _process(diagnosis: Row) -> Iterator[Cause]:
    if diagnosis.get("process") is None:
        return
    process = contention_in(diagnosis["process"])
    if not process.leads:
        return
    if process.is_thread:
        yield _thread(process, diagnosis)
        return
    waiting, own = process.wait_cores, process.training_cores
    spare = process.cores if waiting is None else min(process.cores, waiting)
    share = spare / (own + spare) if own + spare else None
    numbers = (
        Evidence("job_share", process.job_share or 0.0, "share"),
        Evidence("cores", process.cores, "cores"),
        Evidence("training_cores", own, "cores"),
    )
    yield Cause(PROCESS, process.part, process.what, share, process.confidence, process.rank, evidence=numbers)


def _thread(thread: Contention, diagnosis: Row) -> Cause:
    """A Python thread that takes the interpreter's lock: at most for as long as it has a core or wants one.

    It costs no more than the time in which no operator runs, where that is known.
    """
    most = min(1.0, thread.cores + (thread.own_wait_cores or 0.0))
    held = min(most, thread.gil_share or 0.0)
    shares = (diagnosis.get("network") or {}).get("shares") or {}
    free = sum(shares[name] for name in ("host_gap", "data_wait")) if shares else held
    gain = Gain("estimated", times=1 / (1 - held)) if held < 1 else None
    numbers = (
        Evidence("gil_share", thread.gil_share or 0.0, "share"),
        Evidence("cores", thread.cores, "cores"),
        Evidence(MOST_SHARE, most, "share"),
    )
    return Cause(
        THREAD, name=thread.what, share=min(held, free), confidence=thread.confidence, rank=thread.rank,
        advice=Advice("move_thread", gain=gain), evidence=numbers,
    )  # fmt: skip


def _part(row: Row) -> Cause:
    return Cause(
        PART, row["part"], row["detail"], row["loop_share"], "high", row["rank"],
        evidence=(Evidence("lasted", row["dur_ns"], "ns"), Evidence("of", row["loop_ns"], "ns")),
    )  # fmt: skip


def _drift(row: Row | None, training: float) -> Iterator[Cause]:
    if row is not None:
        sure = "medium" if row["causes"] else "low"
        changes = (Evidence("before", row["before_ns"], "ns"), Evidence("after", row["after_ns"], "ns"))
        detail = next(iter(row["causes"]), "")
        yield Cause(DRIFT, detail, "", row["cost_share"] * training, sure, row["rank"], evidence=changes)


def _of_ranks(replay: Row | None, straggler: Row | None, diagnosis: Row, training: float) -> Iterator[Cause]:
    """What a replay of the step shows; without one, a rank that the others wait for."""
    found = replay["found"] if replay else []
    for item in found[:1]:
        yield Cause(RANKS, item["code"], "", item["cost"] * training, item["confidence"], item.get("rank"))
    slow = (straggler["found"] if straggler else [])[:1]
    if not found and slow and _is_worth(slow[0], diagnosis):
        item = slow[0]
        yield Cause(STRAGGLER, item["phase"] or "", "", item["share"] * training, item["confidence"], item["rank"])


def _is_worth(slow: Row, diagnosis: Row) -> bool:
    """Whether a straggler is a cause of its own: not one that waits for its data, nor another than the limit names."""
    network = diagnosis.get("network") or {}
    limit = network.get("limit")
    if limit == "imbalance" and network["slowest_rank"]["rank"] != slow["rank"]:
        return False
    if slow["phase"] == "data_wait" and diagnosis["verdict"] == "input_bound":
        return False
    return slow["share"] >= STRAGGLER_SHARE or limit in ("communication", NOT_MEASURED, None)


def _calls(diagnosis: Row, large: Sequence[Row]) -> Iterator[Cause]:
    """Python in the thread that trains; a callback that is a part of the run, or makes batches, is told there."""
    for call in diagnosis.get("loop_calls", ()):
        if call["name"] == diagnosis.get("op_name") or any(is_of_callback(call, row) for row in large):
            continue
        most = call["most_share"]
        gain = Gain("bound", high=1 / (1 - most)) if most < 1 else None
        yield Cause(
            CALL, call["where"], "", call["share"], call["confidence"], call["rank"],
            stage=Stage(None, "call", call["name"]), advice=Advice("shorten_function", gain=gain),
            evidence=(Evidence("waits", call["wait_share"], "share"), Evidence(MOST_SHARE, most, "share")),
        )  # fmt: skip


def _network(network: Row, waiting: float | None, training: float, *, of_one_mode: bool) -> Iterator[Cause]:
    """The largest part of the step itself, as it is without what recording adds.

    `of_one_mode`: nothing bounds what it costs the whole training, and what the advice brings is of steps like those.
    """
    limit = network.get("limit", NOT_MEASURED)
    if limit == NOT_MEASURED:
        return
    share = None if limit == "compile" else _in_a_usual_step(network, waiting)  # which a training pays once
    action = next(iter(network["actions"]), None)
    advice = None
    if action is not None:
        most = share if action["share"] in (None, network["limit_share"]) else action["share"]
        most = None if limit == OTHER_LOADER else most
        times = 1 / (1 - most) if share is not None and most is not None and most < 1 else None
        advice = Advice(action["code"], gain=None if times is None else _gain(action["code"], times))
    slow = network["slowest_rank"] or {}
    whole = None if share is None else min(1.0, share) * training
    numbers = () if network["limit_share"] is None else (Evidence(limit, network["limit_share"], "share"),)
    few = few_steps(network.get("doubt_facts", network["doubts"]), LEAST_STEPS)
    yield Cause(
        limit, "", "", whole, network["confidence"], slow.get("rank"), stage=stage_of_call(network.get("host_call")),
        advice=advice, evidence=numbers, few=few, of_one_mode=of_one_mode,
    )  # fmt: skip


def _gain(code: str, times: float) -> Gain:
    """What advice brings, where a part of the step without which it were so many `times` as fast is taken away."""
    if code not in UNBOUNDED:
        return Gain("bound", high=times)
    return Gain("estimated", times=times, low=1 + (times - 1) * (1 - LEFT))


def _in_a_usual_step(network: Row, waiting: float | None) -> float:
    """The limit's share of a step. Operators take as long without recording, the gaps between them do not.

    A step that waits for its data is longer by that, which the few recorded steps need not show.
    """
    share: float = network["limit_share"]
    usual = share
    if network["limit"] == "host_gap":
        usual = 1 - (1 - share) * max(1.0, network["inflation"] or 1.0)
    recorded_wait = (network["shares"] or {}).get("data_wait", 0.0)
    work = 1.0 if waiting is None or recorded_wait >= 1 else (1 - waiting) / (1 - recorded_wait)
    return min(1.0, max(0.0, usual * min(1.0, work)))
