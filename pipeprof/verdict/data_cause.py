"""The data pipeline as a cause: what it costs the training, which advice is given, and what that advice brings. Pure.

`diagnosis` is the verdict on the data, as `verdict/pipeline.py` gives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.verdict.calls import stage_of_call
from pipeprof.verdict.cause import Advice, Cause, Evidence, Few, Gain, Stage
from pipeprof.verdict.rules import LEAST_STEPS
from pipeprof.verdict.suggest import BOUND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = Mapping[str, Any]

INPUT, LOCK, SHARED, EQUAL = "input_bound", "interpreter_lock", "shared_cpu", "balanced"
CODES = (INPUT, LOCK, SHARED, EQUAL)
TRANSFER = "data_transmission"  # a stage of sink mode: the batches are ready, but reach the device late

LEAST_STAGE = 0.05  # of its time at work, or of the CPU that the job and other programs use: one below it is not named
MUCH_MORE = 1.25  # times what the end of all waiting brings, from which a bound is explained
FAR = 5.0  # times the same, from which a bound says nothing
# Of what CPU times let expect without the pipeline: what was measured lay between these in 43 of 46 recordings, see
# lab/notes/diagnosis.md. A loop gains more than the pipeline's CPU when the two disturb each other.
ESTIMATED = (0.75, 3.0)
OTHERS = "stop_other_programs"
MOVES = ("to_processes", "stalls_apart", "lock_to_processes", "rows_by_number")  # take no CPU away, only elsewhere
NONE = 1.02  # a gain that is less is none
HALF = 0.5  # of what the whole pipeline costs: a change that brings less has that said beside it
LITTLE = 1.05  # a predicted gain that is less, and may be a loss, does not stand before what is not predicted
NEARLY_EQUAL = 1.20  # an estimated gain below it may be none: 11 of 12 that were measured lay from 1.0 to "at most"
MUCH_OF_CPU = 0.20  # of the job's, from which the pipeline is named before the network


def data_cause(diagnosis: Row) -> Cause | None:
    """The data pipeline as a candidate; None where the training does not wait for it, or nobody knows."""
    code = _code(diagnosis)
    if code is None:
        return None
    freed = _fact(diagnosis, "freed")
    few = few_steps(_doubts(diagnosis), LEAST_STEPS)
    return Cause(
        code,
        detail=diagnosis["stage"] or diagnosis["kind"] or "",
        share=_share(code, diagnosis),
        confidence=diagnosis["confidence"],
        rank=diagnosis["rank"],
        stage=stage_of(diagnosis),
        advice=_advice(diagnosis, few),
        evidence=tuple(_evidence(diagnosis, freed)),
        few=few,
    )


def few_steps(doubts: Sequence[Row], needed: int) -> Few | None:
    """Where so few steps, or batches, could be used that what they cost is not known."""
    seen = [
        doubt.get("steps", doubt.get("batches")) for doubt in doubts if doubt["code"] in ("few_steps", "few_batches")
    ]
    steps = min((number for number in seen if number is not None), default=needed)
    return Few(steps, needed) if steps < needed else None


def stage_of(diagnosis: Row) -> Stage | None:
    """The operator that limits, where it is at work for a part of the time, or of the CPU, that matters."""
    if diagnosis["op_id"] is None:
        return stage_of_call(diagnosis["fetch_call"])
    if not _matters(diagnosis):
        return None
    return Stage(diagnosis["op_id"], diagnosis["op_type"], diagnosis["op_name"])


def chosen(diagnosis: Row) -> dict[str, Any] | None:
    """The suggestion that is the advice: with the largest predicted gain, unless that is next to nothing.

    One whose gain nobody knows stands before these, unless one of them brings more than any cure of the operator can.
    """
    process = diagnosis.get("process")
    if process is not None and not process["leads"]:
        return None  # what was predicted counts on a free core
    actions: list[dict[str, Any]] = [item for item in diagnosis["suggestions"] if item["code"] != BOUND]
    if diagnosis["op_id"] is not None and stage_of(diagnosis) is None:
        return None
    shared = diagnosis["rule"] == SHARED
    if shared:  # where cores are short, work that is only moved stays
        stay = [item for item in actions if item["code"] not in MOVES or _predicted(item)]
        actions = stay or actions
    first = next((item for item in actions if not is_little(item)), actions[0] if actions else None)
    most = _most(diagnosis)
    if first is None or _predicted(first) or most is None or shared:
        return first
    best = max(actions, key=_predicted)
    return best if _predicted(best) > most else first


def _predicted(item: Row) -> float:
    """The gain that is predicted; 0 where none is."""
    gain: float | None = item["gain"]
    return gain or 0.0


def _most(diagnosis: Row) -> float | None:
    """Times as fast at most by any cure of the operator; None where that is not known."""
    bound = bound_of(diagnosis)
    return None if bound is None else bound["gain_high"]


def bound_of(diagnosis: Row) -> dict[str, Any] | None:
    """What no cure of the operator exceeds; None where that is not known."""
    return next((item for item in diagnosis["suggestions"] if item["code"] == BOUND), None)


def is_little(item: Row) -> bool:
    """Whether a predicted gain is next to nothing, and perhaps a loss."""
    gain: float | None = item["gain"]
    if gain is None:
        return False
    low: float = item["gain_low"] or gain
    return gain < NONE or (gain < LITTLE and low < 1)


def nearly_equal(diagnosis: Row) -> float | None:
    """The most that removing the pipeline brings, where it shares the cores and perhaps brings nothing; else None."""
    freed = _fact(diagnosis, "freed")
    busy = any(doubt["code"] == "other_load" for doubt in _doubts(diagnosis))
    if diagnosis["rule"] != SHARED or freed is None or freed >= NEARLY_EQUAL or busy:
        return None
    most = _most(diagnosis)
    return None if most is None else max(most, freed)  # the bound is that of one stage


def estimated(freed: float) -> tuple[float, float]:
    """What removing the pipeline may bring where CPU times alone let expect `freed` times the speed."""
    return max(1.0, ESTIMATED[0] * freed), ESTIMATED[1] * freed


def whole_pipeline(diagnosis: Row, gain: Gain) -> float | None:
    """Times as fast by estimate without the data pipeline, where this gain is less than half of that; else None."""
    waiting = diagnosis["data_wait_share"]
    waited = 1.0 if waiting is None or waiting >= 1 else 1 / (1 - waiting)
    whole = max(_fact(diagnosis, "freed") or 1.0, waited)
    most = gain.times or gain.high
    return float(whole) if most is not None and whole >= LITTLE and most - 1 < HALF * (whole - 1) else None


def stage_freed(diagnosis: Row) -> float | None:
    """Times as fast by CPU times if the named operator alone took no CPU; None where its part is not known."""
    share = _cpu_share(diagnosis)
    return 1 / (1 - share) if share is not None and share < 1 else None


def by_not_waiting(diagnosis: Row, most: float) -> float | None:
    """Times as fast without the wait for data, where that matters and `most` is more than it explains; else None."""
    waiting = diagnosis["data_wait_share"]
    if waiting is None or waiting >= 1 or most <= MUCH_MORE / (1 - waiting) or 1 / (1 - waiting) < LITTLE:
        return None
    return float(1 / (1 - waiting))


def _code(diagnosis: Row) -> str | None:
    if diagnosis["verdict"] == "input_bound":
        return INPUT
    if diagnosis["verdict"] != "balanced":
        return None
    if nearly_equal(diagnosis) is not None:
        return EQUAL
    return {"gil": LOCK, "shared_cpu": SHARED}.get(diagnosis["rule"] or "", EQUAL)


def _share(code: str, diagnosis: Row) -> float | None:
    """Of the loop's time: its wait; beside a lock or shared cores also what it loses without waiting for data."""
    waiting: float | None = diagnosis["data_wait_share"]
    if diagnosis["rule"] == SHARED:
        freed = _fact(diagnosis, "freed")
        return waiting if freed is None else max(waiting or 0.0, 1 - 1 / freed)
    if code == LOCK:
        held, most = (diagnosis["facts"] or {}).get("gil_share"), _most(diagnosis)
        lost = [] if most is None else [1 - 1 / most]
        return max(waiting or 0.0, min([*lost, *([] if held is None else [held])], default=0.0))
    return waiting


def _advice(diagnosis: Row, few: Few | None) -> Advice | None:
    """The advice; of too few steps its gain is only known where it was measured."""
    item = chosen(diagnosis)
    if item is None:
        return None
    gain = gain_of(diagnosis, item)
    if few is not None and gain is not None and gain.origin != "measured":
        gain = None
    return Advice(item["code"], item["op_id"], item["parameter"], item["old"], item["new"], gain)


def gain_of(diagnosis: Row, item: Row) -> Gain | None:
    """Of this suggestion: its trial or prediction. Of work that is made cheaper, what no work at all would bring.

    A change of settings that nothing is predicted of has none, nor has the end of other programs.
    """
    if item["gain"] is not None or (item["gain_low"] and item["gain_high"]):
        return Gain("measured" if item["trial"] else "predicted", item["gain"], item["gain_low"], item["gain_high"])
    most = _most(diagnosis)
    sets = item["new"] not in (None, item["old"])
    if sets or item["code"] in (*MOVES, OTHERS):
        return None
    alone = stage_freed(diagnosis) if diagnosis["rule"] == SHARED else None
    if alone is not None:
        return Gain("estimated", alone, high=most)
    return None if most is None else Gain("bound", high=most)


def _evidence(diagnosis: Row, freed: float | None) -> Iterator[Evidence]:
    if diagnosis["data_wait_share"] is not None:
        yield Evidence("data_wait", diagnosis["data_wait_share"], "share")
    if freed is not None:
        yield Evidence("freed", freed, "times")
    facts = diagnosis["facts"] or {}
    for name, unit in (("utilisation", "share"), ("cores", "cores"), ("work_ns", "ns"), ("gil_share", "share")):
        if facts.get(name) is not None:
            yield Evidence(name, facts[name], unit)


def _matters(diagnosis: Row) -> bool:
    """Whether the operator is at work, or computes, enough; one of which neither is known may."""
    facts = diagnosis["facts"] or {}
    used = [part for part in (facts.get("utilisation"), _cpu_share(diagnosis)) if part is not None]
    return not used or max(used) >= LEAST_STAGE


def _cpu_share(diagnosis: Row) -> float | None:
    """The operator's part of the CPU that the training's processes and, where no core is idle, other programs used."""
    facts = diagnosis["facts"] or {}
    cores, of = facts.get("cores"), facts.get("process_cores")
    others = max((doubt.get("other_cores", 0.0) for doubt in _doubts(diagnosis)), default=0.0)
    of = None if of is None else of + others
    return min(1.0, cores / of) if cores is not None and of else None


def _fact(diagnosis: Row, name: str) -> float | None:
    return next((item["value"] for item in diagnosis["rule_facts"] if item["fact"] == name), None)


def _doubts(diagnosis: Row) -> Sequence[Row]:
    """Its doubts as codes; a report that has worded them keeps those apart."""
    doubts: Sequence[Row] = diagnosis["doubt_facts" if "doubt_facts" in diagnosis else "doubts"]
    return doubts
