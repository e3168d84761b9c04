"""The answer where the training waits for its data, or its data pipeline is as slow as itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command, doubts, interruptions, shape
from pipeprof.report.answer.shape import (
    MANY_TIMES,
    Answer,
    about,
    at_most,
    capital,
    expected,
    faster,
    has_several_ranks,
    limit_label,
    mostly_in,
    numbered,
    of_call,
    unopposed,
    with_kind,
)
from pipeprof.report.words import training
from pipeprof.report.words.training import LEAST_WAIT, LITTLE_WAIT, data_in_time, data_wait
from pipeprof.report.words.verdict import unknown_gain
from pipeprof.units import format_ns, percent
from pipeprof.verdict.calls import OWN, STORAGE, WORKERS
from pipeprof.verdict.data_cause import (
    FAR,
    MUCH_OF_CPU,
    TRANSFER,
    bound_of,
    by_not_waiting,
    chosen,
    estimated,
    nearly_equal,
    whole_pipeline,
)
from pipeprof.verdict.facts import ITERABLE
from pipeprof.verdict.rules import LOCK_WAITS

if TYPE_CHECKING:
    from pipeprof.verdict.account import Contention
    from pipeprof.verdict.cause import Cause, Gain

ITS_OWN = "The training itself makes each batch (num_workers=0)"
OWN_WORKERS = "Give the DataLoader worker processes (num_workers), which make batches while the training computes."
# Code of the libraries themselves: no place where a user could change something.
LIBRARIES = re.compile("/(?:site|dist)-packages/(?:mindspore|torch)/")
_FRAME = re.compile(r"(\S+)\((\d+)\): ")
UNMEASURED = "not known until it is measured; by estimate"
UNPREDICTED = "What this change brings cannot be predicted from the recording"
_UNKNOWN = {
    "import:kineto": "Give the DataLoader more workers (num_workers), or make its dataset's rows cheaper.",
    "collect": "Look at the code that makes the batches: none of them came through an iterator of a MindSpore dataset.",
    "": "Profile with the dataset's operators: run the training under `pipeprof collect`.",
}


def answer(content: dict[str, Any], lead: Cause) -> Answer:
    """Of the operator that limits; of the way to the device; or of waiting alone."""
    diagnosis = content["diagnosis"]
    given = Answer(sentence(content), confidence=diagnosis["confidence"])
    given.confidence_reason = _reason(content)
    feeder = interruptions.feeder(content)
    if lead.stage is not None and lead.stage.op_id is None:
        given.cause, given.action = _called(diagnosis["fetch_call"])
        given.place = line_of(diagnosis["fetch_call"]["name"])
    elif lead.stage is not None:
        given.place = _place(diagnosis)
        given.cause = _cause(
            diagnosis, " (storage, network or sleep)" if feeder is None else f", perhaps for {_busy(feeder)}"
        )
    elif diagnosis["op_id"] is not None:
        given.cause = f"None of its stages is much at work by itself; {_label(diagnosis)} is the most."
        given.action = "Make its rows ahead of time (MindRecord, or arrays in memory), or give the training more cores."
    elif diagnosis["stage"] == TRANSFER:
        given.cause = "The batches are ready on the host, but they reach the device late."
    else:
        given.cause, given.action = _unnamed(content)
    _advise(given, content, lead)
    if feeder is not None:
        given.action = (
            f"If {_label(diagnosis)} gets its rows from {interruptions.label(feeder)}: make what that does cheaper, or "
            "give the training more cores."
        )
    if diagnosis["kind"] != "host_saturated":  # whose advice begins with the other programs
        shape.measure_first(given, content["run"], diagnosis["doubt_facts"])
    return given


def _busy(feeder: Contention) -> str:
    made = f" (started at {feeder.site})" if feeder.site else ""
    return f"{interruptions.label(feeder)}{made}, which takes {percent(feeder.job_share or 0.0)} of the job's CPU"


def _unnamed(content: dict[str, Any]) -> tuple[str, str]:
    """Cause and action where no operator can be named: of what was seen of the dataset, and by whom."""
    diagnosis = content["diagnosis"]
    # The loader of a trace of another framework is a pipeline of one operator.
    trace = any(kind in content["run"]["source"] for kind in ("kineto", "dftracer"))
    if not trace and any(row["role"] == "train" for row in content["pipeline"]["pipelines"]):
        return (
            "A MindSpore dataset was seen; what was recorded of its operators does not tell which is slow.",
            "Record more steps; what was not recorded, and why, stands in `--section not-measured`.",
        )
    call = diagnosis["fetch_call"]
    if call is not None and call["loader"] == OWN:
        return (
            f"{ITS_OWN}; what takes long in it was not recorded.",
            OWN_WORKERS,
        )
    if call is not None and call["loader"] == WORKERS:
        return "The DataLoader's worker processes are too slow; a trace has nothing of them.", _UNKNOWN["import:kineto"]
    kind = "import:kineto" if trace else content["run"]["source"]
    slow = "part of the DataLoader" if trace else "dataset operator"
    return f"Which {slow} is slow was not recorded.", _UNKNOWN.get(kind, _UNKNOWN[""])


def line_of(frame: str) -> str:
    """`file:line` of a frame `file(line): function`; nothing of a call that is named otherwise."""
    found = _FRAME.match(frame)
    return f"{found[1]}:{found[2]}" if found else ""


def _called(call: dict[str, Any]) -> tuple[str, str]:
    """Cause and action where a trace has the call that the loading is spent on."""
    short = call["name"].rpartition(": ")[2]
    cause = of_call(call, "each fetch" if call["loader"] == OWN else "the loading")
    if call["kind"] == STORAGE:
        cause = f"The data loader reads files: {cause}"
        action = "Read from faster storage (local disk, memory), or store the samples so that less has to be read."
    else:
        action = f"Make `{short}` cheaper, or do it once, before the training."
    if call["loader"] == OWN:
        cause = f"{cause} {ITS_OWN}."
        return cause, f"{OWN_WORKERS} {action}"
    return cause, action


def sentence(content: dict[str, Any]) -> str:
    """Whether the training waits for its data, and how much of its time: the only place that says so."""
    diagnosis = content["diagnosis"]
    if diagnosis["verdict"] == "not_measured":
        return "Not measured: whether the training waits for its data."
    return _by_queues(diagnosis) if diagnosis["data_wait_share"] is None else _by_waiting(content)


def _by_queues(diagnosis: dict[str, Any]) -> str:
    said = "not input-bound: batches wait for the training in its queue"
    if diagnosis["verdict"] != "consumer_bound":
        said = "input-bound: the queue in front of the training is mostly empty"
    return f"Probably {said}. How long the training waits was not recorded."


def _by_waiting(content: dict[str, Any]) -> str:
    diagnosis = content["diagnosis"]
    waits, share = data_wait(diagnosis), diagnosis["data_wait_share"]
    if diagnosis["verdict"] == "consumer_bound":
        only = "only " if share >= LEAST_WAIT else ""
        said = f"the training waits for data {only}{waits}."
        if training.only_reads(content["run"]):
            return f"Not input-bound: {said}"
        return f"Not input-bound: {data_in_time(diagnosis)}. {capital(said)}"
    rank = diagnosis["rank"]
    who = f" (rank {rank}, which waits longest)" if rank is not None and has_several_ranks(content) else ""
    if diagnosis["verdict"] == "input_bound":
        return f"Input-bound: the training waits for data {waits}{who}."
    if diagnosis["rule"] == "gil":
        return (
            f"{capital(data_in_time(diagnosis))}, but Python code of the data pipeline slows the training down: both "
            f"need the interpreter's lock (GIL). The training waits for data {waits}{who}."
        )
    if diagnosis["rule"] == "shared_cpu":
        waiting = f"The training waits for data {waits}{who}"
        if share < LITTLE_WAIT:
            waiting = f"The data is ready in time (the training waits for it {waits}{who})"
        return f"{_short_of_cpu(diagnosis)} {waiting}."
    return (
        "Balanced: the data pipeline and the training are about equally fast; the training waits for data "
        f"{waits}{who}."
    )


def _short_of_cpu(diagnosis: dict[str, Any]) -> str:
    """Who has the cores: where the pipeline has few of them, the network is named first."""
    facts = {item["fact"]: item["value"] for item in diagnosis["rule_facts"]}
    part = percent(facts["pipeline_share"])
    most = nearly_equal(diagnosis)
    if most is not None:
        return (
            f"Balanced: the training and its data pipeline ({part} of the job's CPU) share the cores, "
            "and none stays idle."
        )
    if facts["pipeline_share"] >= MUCH_OF_CPU:
        return (
            f"Short of CPU: no core stays idle, and the data pipeline takes {part} of the job's CPU from the "
            "training, whose steps are slower for that."
        )
    return (
        f"Short of CPU: no core stays idle. The network takes most of the CPU; the data pipeline takes {part} of the "
        f"job's, which makes the steps slower by an estimated {percent(facts['freed'] - 1)}."
    )


def _cause(diagnosis: dict[str, Any], for_what: str) -> str:
    """`for_what`: what a stage that waits may wait for."""
    facts = diagnosis["facts"] or {}
    who = capital(_label(diagnosis))
    if diagnosis["op_type"] == ITERABLE:
        how = mostly_in(diagnosis, diagnosis["op_name"]) or "How they are made was not recorded."
        return f"The batches come from {_label(diagnosis)}. How long the loop waited for them was sampled. {how}"
    workers = facts.get("workers")
    many = "" if not workers else f" ({workers} worker{'' if workers == 1 else 's'})"
    many = " in the training's own process" if _is_in_loop(diagnosis) else many
    work = "" if facts.get("work_ns") is None else f" {format_ns(facts['work_ns'])} of work per batch{many}"
    stall = "" if facts.get("max_row_ns") is None else f", up to {format_ns(facts['max_row_ns'])} for a row"
    what = {
        "cpu": f"it needs{work}, computing" if work else "it computes all the time",
        "wait": f"{_alone(facts)}, mostly waiting{for_what}" if work else f"it mostly waits{for_what}",
        "gil": "it computes in Python, where threads take turns with the interpreter's lock (GIL)"
        + (f", and needs{work}" if work else ""),
        "lock_wait": _for_lock(facts),
        "burst": f"it stalls now and then{stall}",
        "poll": f"with {workers} workers MindSpore sleeps 100 ms whenever the next row of a source is not ready",
        "cpu_contention": f"it needs{work or ' CPU'}, and another process of the job takes the CPU",
        "host_saturated": f"it needs{work or ' CPU'}, and other programs keep the machine busy",
        None: f"it needs{work}" if work else "its times were not recorded, the queues point to it",
    }[diagnosis["kind"]]
    if diagnosis["rule"] == "gil" and diagnosis["verdict"] == "balanced":
        for_batch = f":{work}" if work else ""
        return f"{who} holds the lock longest of all stages of the data pipeline, computing in Python{for_batch}."
    if diagnosis["rule"] == "shared_cpu":
        cores = "" if facts.get("cores") is None else f": {facts['cores']:.2f} cores"
        return f"{who} takes the most CPU of all stages of the data pipeline{cores}{many}."
    if diagnosis["verdict"] == "input_bound":
        return f"{who} limits the data pipeline: {what}."
    return f"{who} is the busiest stage of the data pipeline: {what}."


def _for_lock(facts: dict[str, Any]) -> str:
    """How much of its time, and what its calls would take alone."""
    part = "" if facts.get("lock_share") is None else f" {percent(facts['lock_share'])} of that"
    taken = f"{_alone(facts)}," if facts.get("work_ns") else "it spends"
    return f"{taken}{part} waiting for the interpreter's lock (GIL), which its function needs for each row"


def _alone(facts: dict[str, Any]) -> str:
    """How long a stage takes that does not work: `its 2 workers together spend 16.4 ms per batch`."""
    workers, each = facts.get("workers") or 0, f"{format_ns(facts['work_ns'])} per batch"
    return f"its {workers} workers together spend {each}" if workers > 1 else f"it takes {each} (1 worker)"


def _label(diagnosis: dict[str, Any]) -> str:
    return with_kind({"op_id": diagnosis["op_id"], "op_type": diagnosis["op_type"], "name": diagnosis["op_name"]})


def _place(diagnosis: dict[str, Any]) -> str:
    place = diagnosis["place"] or {}
    call, code = place.get("call"), place.get("code")
    if call and code and call != code and not LIBRARIES.search(code):
        return f"{code} (used at {call})"
    return call or code or ""


def _advise(given: Answer, content: dict[str, Any], lead: Cause) -> None:
    """The advice of the verdict with the gain that was computed for it, else what any cure brings at most."""
    diagnosis = content["diagnosis"]
    best, bound, gain = chosen(diagnosis), bound_of(diagnosis), lead.advice.gain if lead.advice else None
    if best is not None:
        given.action = capital(best["action"]) + "."
    if best is not None and gain is not None and gain.origin in ("predicted", "measured"):
        measured = f", as `{best['trial']}` measured" if best["trial"] else ""
        given.gain = f"The training would run {expected(gain.times, gain.low, gain.high)}{measured}"
        given.then = _then(content, best["then"])
        _beside_whole(given, diagnosis, gain, best["then"])
    elif best is not None and lead.stage is not None and gain is None:
        given.gain = UNPREDICTED
    elif bound is not None and lead.stage is not None:
        given.gain = capital(_bounded(diagnosis, bound["gain_high"], gain))
        given.then = _then(content, bound["then"])
        if gain is not None and gain.origin == "estimated" and nearly_equal(diagnosis) is None:
            _beside_whole(given, diagnosis, gain, bound["then"])
    elif gain is not None and gain.origin == "estimated" and gain.times is not None:
        given.gain = capital(_estimated(diagnosis, gain.times))
        _beside_whole(given, diagnosis, gain, None)
    elif diagnosis["data_wait_share"] is not None and diagnosis["data_wait_share"] < 1:
        given.gain = f"{capital(at_most(1 / (1 - diagnosis['data_wait_share'])))}, if the training never waited"
    if lead.few is not None and not (best is not None and best["trial"]):
        given.gain, given.then = capital(unknown_gain(lead.few)), ""
    if best is not None and nearly_equal(diagnosis) is not None:
        _measure_first(given, best["action"], gain)
        best = None
    _propose(given, content, best["verify"] if best is not None else None)


def _measure_first(given: Answer, action: str, gain: Gain | None) -> None:
    """Pipeline and training are about equally fast, and which one to change a measurement says."""
    given.action = (
        f"Run the command below first, which decides. If it finds 5 % or more to gain: {action}. If less: make the "
        "step itself cheaper (`collect --ops all` shows its operators)."
    )
    if gain is not None and gain.origin == "predicted":
        given.gain = f"{capital(UNMEASURED)} {expected(gain.times, gain.low, gain.high)}"
    given.then = ""


def _beside_whole(given: Answer, diagnosis: dict[str, Any], gain: Gain, then: int | str | None) -> None:
    """What the whole pipeline costs, where the change brings little of that: then the training does not limit yet."""
    whole = whole_pipeline(diagnosis, gain)
    if whole is not None:
        said = f"; without the whole data pipeline it would run {about(whole)}, by estimate"
        given.then = f"{given.then}{said}" if given.then and then != "consumer" else ""
        given.gain += "" if given.then else said


def _propose(given: Answer, content: dict[str, Any], verify: str | None) -> None:
    """The next command: the one that tries the change, else one that measures again."""
    run, diagnosis = content["run"], content["diagnosis"]
    if verify:
        given.propose(verify, "tries this change, without editing the script")
    elif command.is_repeatable(run) and diagnosis["kind"] == "host_saturated":
        given.propose(*command.on_a_quiet_machine(run))
    elif command.is_repeatable(run):
        given.propose(command.again(run, ["headspace"]), "measures how fast it is without its data pipeline")
    else:
        part = ["--section", "pipeline"] if content["pipeline"]["pipelines"] else ["--full"]
        given.propose(command.own(run, "report", *part), "shows what was recorded of it")


def _bounded(diagnosis: dict[str, Any], most: float, gain: Gain | None) -> str:
    """What could be gained at most; where the cores are shared what CPU times alone say of the operator."""
    freed = next((item["value"] for item in diagnosis["rule_facts"] if item["fact"] == "freed"), None)
    if freed is not None and nearly_equal(diagnosis) is not None:
        return f"{UNMEASURED} {about(freed)} without the data pipeline (1.0 to {most:.2f})"
    if freed is None or freed > most:
        times = by_not_waiting(diagnosis, most)
        if times is None:
            return f"{at_most(most)}, if {_label(diagnosis)} cost nothing at all"
        return _without_wait(diagnosis, times, most)
    if gain is not None and gain.origin == "estimated" and gain.times is not None:
        return _estimated(diagnosis, gain.times)
    low, high = estimated(freed)
    return f"{about(freed)} by estimate ({low:.1f} to {high:.1f}), if the whole data pipeline took no CPU"


def _without_wait(diagnosis: dict[str, Any], times: float, most: float) -> str:
    """What the end of the waiting brings, and what could be gained at most."""
    if diagnosis["verdict"] == "balanced":  # of its CPU only the part that the training waits for is known
        return f"{times:.2f} to {most:.2f} times as fast, if {_label(diagnosis)} took no time"
    waiting = f"{about(times)} without the wait for data"
    if most >= MANY_TIMES or (diagnosis["rule"] != "gil" and most > FAR * times):
        return waiting
    return f"{waiting}, up to {faster(most).removesuffix(' as fast')} if it no longer slows the steps either"


def _estimated(diagnosis: dict[str, Any], times: float) -> str:
    """What the CPU of the operator costs the training, which only CPU times say."""
    more = ""
    if ((diagnosis["facts"] or {}).get("lock_share") or 0.0) >= LOCK_WAITS:
        more = ", or more, because the training also waits for the interpreter's lock, which it holds"
    return f"{about(times)} by estimate, if {_label(diagnosis)} took no CPU{more}"


def _then(content: dict[str, Any], then: int | str | None) -> str:
    if then is None:
        return ""
    still = "still " if then == content["diagnosis"]["op_id"] else ""
    return f"{limit_label(content, then)} is {still}the bottleneck"


def _of_loop(content: dict[str, Any]) -> float:
    """The part of the loop's time in which the named stage was busy; less than it could where the loop waits for it."""
    diagnosis = content["diagnosis"]
    at = {name: diagnosis.get(name) for name in ("rep", "rank", "pipeline_key", "op_id")}
    found = [row.get("busy") for row in content["pipeline"]["load"] if at.items() <= row.items()]
    return next((busy for busy in found if busy is not None), 1.0)


def _doubts(diagnosis: dict[str, Any]) -> list[dict[str, Any]]:
    """Doubts that the training limits, which name the operator of this answer, are doubts of the operator instead."""
    shown = []
    for doubt in diagnosis["doubt_facts"]:
        if diagnosis["op_id"] is None or (doubt.get("op") or {}).get("op_id") != diagnosis["op_id"]:
            shown.append(_told_apart(doubt, diagnosis["op_name"]))
        elif doubt["code"] == "close":
            own, other = doubt["utilisation"], doubt.get("named_utilisation")
            shown.append({**doubt, "op": {"op_id": -1}, "utilisation": other, "named_utilisation": own})
        elif doubt["code"] != "queues_elsewhere":
            shown.append(doubt)
    return shown


def _is_in_loop(diagnosis: Mapping[str, Any]) -> bool:
    """Whether the training makes the batches of its DataLoader itself."""
    advice: Sequence[Mapping[str, Any]] = diagnosis.get("suggestions", ())
    return any(item.get("code") == "loader_workers" and item.get("old") == 0 for item in advice)


def _told_apart(doubt: dict[str, Any], name: str | None) -> dict[str, Any]:
    """A doubt whose operator has the name of the one that the answer is of, with its number."""
    op = doubt.get("op")
    if not name or not isinstance(op, Mapping) or op.get("name") != name:
        return doubt
    return {**doubt, "op": numbered(op)}


def _reason(content: dict[str, Any]) -> str:
    diagnosis = content["diagnosis"]
    if diagnosis["doubt_facts"]:
        return doubts.reason(_doubts(diagnosis))
    facts = diagnosis["facts"] or {}
    if facts.get("utilisation") is not None:
        who = _label(diagnosis)
        if diagnosis["rule"] == "gil" and facts.get("gil_share") is not None and facts.get("cores") is not None:
            return (
                f"{who} used {facts['cores']:.2f} cores in Python, and the lock was held "
                f"{percent(facts['gil_share'])} of the time"
            )
        if _is_in_loop(diagnosis):
            return f"the training makes its batches itself, and the time of {who} was measured there"
        busy, margin = facts["utilisation"], facts["margin"] or 0.0
        other = ""
        if margin > 0:
            runner_up = with_kind(facts["runner_up"])
            other = f", the next busiest ({runner_up}) {percent(min(1.0, max(0.0, busy - margin)))}"
        mostly = ", mostly waiting" if diagnosis["kind"] in ("wait", "poll") else ""
        how = "had a row under way" if mostly else "was busy"
        return f"{who} {how} {percent(min(1.0, busy, _of_loop(content)))} of the time{mostly}{other}"
    return unopposed(content)
