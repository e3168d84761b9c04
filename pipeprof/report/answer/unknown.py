"""The answer where nothing was recorded that could say what limits: what is known, and how to learn more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.record.run import TRACED
from pipeprof.report.answer import command, data, doubts, shape
from pipeprof.report.answer.shape import Answer, capital, measured, ops_of, sentence, unopposed, with_kind
from pipeprof.report.words import training
from pipeprof.units import percent
from pipeprof.verdict.rules import HIGH_WAIT

if TYPE_CHECKING:
    from pipeprof.verdict.cause import Cause

NAME_STEPS = {  # how a trace gets steps, by what wrote it
    "import:kineto": "call step() of the profiler after every batch",
    "import:chrome": "put an event of one name around each",
    "import:rocprof": "put a range of roctx around each, and record with `--marker-trace`",
    "import:dftracer": "mark what computes (`ai.compute.step`)",
    "import:xplane": "put a `StepTraceAnnotation` around each",
}
MOSTLY_BUSY = 0.90  # of the time: a device that works less waits for something


def answer(content: dict[str, Any], _lead: Cause) -> Answer:
    """In time for its data, but no operators; or steps alone; or operators alone; or nothing."""
    diagnosis, run = content["diagnosis"], content["run"]
    traced = any(item.get("why") == TRACED for item in content.get("not_measured", ()))
    given = Answer("", confidence=None)
    if diagnosis["verdict"] == "consumer_bound" and training.only_reads(run):
        return _keeps_up(content)
    if diagnosis["verdict"] == "consumer_bound":
        given.sentence = data.sentence(content)
        given.cause = f"What the steps spend their time on is unknown: {_operators(content)}."
        given.confidence = diagnosis["confidence"]
        given.confidence_reason = (
            doubts.reason(diagnosis["doubt_facts"]) or f"the data was in time: {unopposed(content)}"
        )
        how = "record the operators of all steps (`collect --ops all`)"
        given.action = f"Find out what limits the step: {'import the trace of its profiler' if traced else how}."
        _spare(given, diagnosis)
    else:
        _nothing(given, content)
    if traced:
        given.propose(command.own(run, "report", "--section", "steps"), "divides a step into its passes")
    elif command.is_repeatable(run):
        words = ["collect", "--ops", "all", "-o", command.new_run(run, "-ops")]
        given.propose(command.again(run, words), "records the operators of all steps")
    elif content["ops"] or content["op_totals"]:
        given.propose(command.own(run, "ops"), "lists the operators")
    else:
        given.propose(command.own(run, "report", "--full"), "shows everything that was recorded")
    if diagnosis["verdict"] == "consumer_bound":
        shape.measure_first(given, run, diagnosis["doubt_facts"])
    return given


def _keeps_up(content: dict[str, Any]) -> Answer:
    """Of batches that were only read, in time: what the pipeline could deliver, and which stage of it is slowest."""
    diagnosis, room = content["diagnosis"], content["diagnosis"]["headroom"]
    given = Answer(data.sentence(content), confidence=diagnosis["confidence"])
    given.cause = "What the loop does with each batch takes the rest."
    rate = next((item["value"] for item in diagnosis["evidence"] if item["code"] == "throughput"), None)
    if room is not None and rate:
        slowest = with_kind(ops_of(content, diagnosis["pipeline_key"])[room["op_id"]])
        most = f"at most {room['ratio'] * rate:,.3g} batches/s in place of {rate:,.3g}"
        given.cause += f" The data pipeline could deliver {most}: {slowest} is its slowest stage."
    given.confidence_reason = doubts.reason(diagnosis["doubt_facts"]) or f"the data was in time: {unopposed(content)}"
    given.action = "Record the training that reads these batches: whether it waits for them is not known from this run."
    given.propose(command.own(content["run"], "report", "--section", "pipeline"), "shows each stage of the pipeline")
    return given


def _operators(content: dict[str, Any]) -> str:
    """What was recorded of operators, where that does not say what a step spends its time on."""
    if content["ops"] or content["op_totals"]:
        return "operators were recorded, but none in a training step after the warm-up"
    return "no operators were recorded"


def _spare(given: Answer, diagnosis: dict[str, Any]) -> None:
    """What the pipeline takes from a training that does not wait for it; Python that holds its lock goes first."""
    item = next(iter(diagnosis["suggestions"]), None)
    if item is None:
        return
    if item["code"] == "workers":
        where = f" ({item['place']})" if item["place"] else ""
        given.action = f"{given.action} Besides, {item['text']}{where}."
    else:
        given.action, given.place = capital(item["action"]) + ".", item["place"] or ""


def _nothing(given: Answer, content: dict[str, Any]) -> None:
    timing, source = measured(content), content["run"]["source"]
    warmup = sum(row["steps"] for row in content["steps"]["summary"] if row["kind"] == "warmup")
    ops = content["ops"] or content["op_totals"]
    if timing:
        inference = training.is_inference(content["run"])
        given.sentence = f"Not measured: what limits the {'inference' if inference else 'training'}. {capital(timing)}."
        given.cause = "Neither its dataset nor its operators were recorded."
        if not source.startswith("import:"):
            given.cause = "Another loader may have been used, whose wait is not known; no operators were recorded."
        if ops:
            given.cause = f"Its wait for data was not recorded; {_operators(content)}."
        if inference:
            given.cause = "A log of load_and_run has the times of iterations alone, and not what took them."
        wait = next((item["value"] for item in content["diagnosis"]["evidence"]
                     if item["source"] == "step/phase_summary"), 0.0)  # fmt: skip
        if wait >= HIGH_WAIT:
            given.cause = f"Before its forward pass a step waits {percent(wait)} of the time, for data or for the host."
    elif warmup:
        seen = "the only training step seen was" if warmup == 1 else f"all {warmup} training steps seen were"
        given.sentence = f"Not measured: {seen} warm-up."
        given.cause = "The first step, and steps that compile a graph, say nothing about the others."
        given.action = "Train for at least 20 steps under the profiler."
        return
    else:
        given.sentence = "Not measured: no training step was seen."
        said = [warning["message"] for warning in content["run"]["warnings"] if warning["code"] == "nothing_seen"]
        given.cause = sentence(said[0]) if said else ""
    if not timing and ops:
        given.sentence = "Not measured: what limits a step. The profile has operators, but no steps."
        given.cause = f"{_largest(ops)} {_busy(content['op_busy'])}".strip()
    given.action = _missing(source, steps=bool(timing), ops=bool(ops))


def _missing(source: str, *, steps: bool, ops: bool) -> str:
    """What to record: of what a source holds where that is all it can hold."""
    if source == "import:megengine" and ops:
        return "See which operators take longest. Such a profile has no steps; MegEngine's Profiler records them."
    if source == "import:megengine" and steps:
        return "Let load_and_run write its operators too (`--profile FILE`), and import that file."
    if source in NAME_STEPS and ops and not steps:
        return f"Name the steps: {NAME_STEPS[source]}, or import the trace with `--step PATTERN`."
    if source.startswith("import:"):
        return "Import the profiler's whole output folder, or profile with a level that records operators and steps."
    if steps:
        return "Fetch the batches at the head of a `for` around the step, or from a DataLoader: such waits are seen."
    return "Profile a command that trains a network of MindSpore or PyTorch for at least 20 steps."


def _largest(ops: list[dict[str, Any]]) -> str:
    best = max(ops, key=lambda row: row["share"] or 0.0)
    name = best.get("type") or best.get("name")
    share = percent(best["share"] or 0.0)
    what = ", which is communication" if best.get("phase") == "communication" else ""
    return f"Of the operators `{name}` takes the most time: {share} of all{what}." if name and best["share"] else ""


def _busy(rows: list[dict[str, Any]]) -> str:
    """How much of the time the device that works most is at work, where that is a part of it."""
    shares = [row["busy_share"] for row in rows if row["busy_share"] is not None and row["device"] != "CPU"]
    busy = max(shares, default=1.0)
    if busy >= MOSTLY_BUSY:
        return ""
    return f"The device works {percent(busy)} of the time; else it waits, for the host or for what was not recorded."
