"""The answer where something beside the steps is the cost: interruptions, calls of Python, another process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command, doubts, shape
from pipeprof.report.answer.shape import Answer, about, at_most, capital, expected, mostly_of, times
from pipeprof.report.words import network, training
from pipeprof.report.words.training import LEAST_WAIT
from pipeprof.units import format_count, format_ns, percent
from pipeprof.verdict.account import contention_in
from pipeprof.verdict.calls import LINE, LOOP, NETWORK, is_of_callback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeprof.verdict.account import Contention
    from pipeprof.verdict.cause import Cause

_CURES = {
    "memory_growth": "Look for what the loop keeps: losses or outputs that are collected as tensors.",
    "neighbour": "Keep other programs off the machine while the training runs.",
    "throttling": "Give the job a larger CPU quota.",
    "recompilation": "Give the network inputs of the same shapes, so that no graph is compiled again.",
}

FAR = 5.0  # times as fast: from here on a share of looks says no number that is likely
REPEATED = ("evaluation", "checkpoint", "callback")


def of_part(content: dict[str, Any], _cause: Cause) -> Answer:
    """Of the part that costs most."""
    part = content["run_account"]["leading"]
    share = part["loop_share"]
    given = Answer(training.sentence(part, percent(share)), confidence="high")
    given.cause = f"{capital(training.name(part))}: {training.numbers(part)}, of {format_ns(part['loop_ns'])}."
    calls = [call for call in content["diagnosis"].get("loop_calls", ()) if is_of_callback(call, part)]
    given.place = (place(calls[0]) if calls else "") or part.get("site", "") or _evaluated(content, part)
    given.action = training.advice(part)
    lasting = _lasting(content, part)
    if lasting:
        given.action, given.place = f"{capital(str(lasting.get('action')))}.", lasting.get("place") or ""
        gains = (lasting.get(name) for name in ("gain", "gain_low", "gain_high"))
        given.gain = f"The training would run {expected(*gains)}"
    elif share < 1:
        given.gain = _less(share, can_be_rarer=part["part"] in REPEATED and part["count"] > 1)
    given.confidence_reason = "it was timed from its beginning to its end"
    given.propose(command.own(content["run"], "report", "--section", "whole-run"), "shows where the whole time went")
    return given


def _less(share: float, *, can_be_rarer: bool) -> str:
    """What it brings without the part, and with half of it, where it is one that can be done less often."""
    if not can_be_rarer:
        return f"The training would run {about(1 / (1 - share))} if this took no time"
    return f"Half as often, the training would run {about(1 / (1 - share / 2))}; without it {about(1 / (1 - share))}"


def _evaluated(content: dict[str, Any], part: Mapping[str, Any]) -> str:
    """Where the data of an evaluation in a hand-written loop come from, if all of it does from one line."""
    rows = content["pipeline"]["pipelines"] if part.get("part") == "evaluation" else []
    sites = {row["site"] or "" for row in rows if row["role"] == "eval"}
    return f"its data: {sites.pop()}" if len(sites) == 1 and "" not in sites else ""


def _lasting(content: dict[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The advice that workers of a DataLoader live on, where gaps between epochs cost; None without it."""
    advice = content.get("diagnosis", {}).get("suggestions", ())
    between = part.get("part") == "epoch_gap"
    return next((item for item in advice if between and item.get("code") == "loader_persistent"), None)


def of_drift(content: dict[str, Any], _cause: Cause) -> Answer:
    """Of steps that become slower."""
    late = content["run_account"]["slower"]
    given = Answer(f"The training gets slower as it runs: {training.drift_sentence(content, late)}.")
    given.confidence = "medium" if late["causes"] else "low"
    given.action = next(
        (_CURES[code] for code in late["causes"]),
        "Look at what else changed at that time: `--section steps` and `--section cpu`.",
    )
    given.gain = f"The training would run {about(1 / (1 - late['cost_share']))} if no step were slower"
    given.confidence_reason = (
        "both changed at the same time, which is no proof" if late["causes"] else "no cause was recorded"
    )
    shown = command.own(content["run"], "report", "--section", "steps", "--section", "cpu")
    given.propose(shown, "shows the steps and who used the CPU")
    return given


_ACTIONS = {
    NETWORK: "Compute it with operators, or once in front of the loop.",
    LOOP: "Move these lines out of the loop, or have a library compute them for whole arrays.",
    LINE: "Run it less often (in every 100th step, once an epoch), make it cheaper, or run it in another thread.",
}
_ACTION = "Call it less often (in every 100th step, once an epoch), make it cheaper, or do it in another process."


def answer(content: dict[str, Any], lead: Cause) -> Answer:
    """Of the call that takes most."""
    name = lead.stage and lead.stage.name
    call = next(one for one in content["diagnosis"]["loop_calls"] if (one["name"], one["where"]) == (name, lead.detail))
    given = Answer(_sentence(call), confidence=call["confidence"])
    given.cause = _cause(call)
    given.place = place(call)
    given.action = _ACTIONS.get(lead.detail, _ACTION)
    if lead.most is not None:
        given.gain = f"The training would run {_without(lead.share or 0.0, lead.most)}"
    given.confidence_reason = f"it was seen in {format_count(call['looks'], 'sample')} of the Python stack"
    given.propose(command.own(content["run"], "report", "--full"), "shows everything")
    return given


def _without(share: float, most: float) -> str:
    """About what its share of the loop says, and at most what it may be by chance."""
    likely = 1 / (1 - share) if share < 1 else most
    return f"{at_most(most)} without it" if most >= FAR else f"{about(likely)} without it, at most {times(most)} times"


def _sentence(call: Mapping[str, Any]) -> str:
    share, name, where = percent(call["share"]), call["name"], call["where"]
    if where == LOOP:
        return f"Python in the loop of `{name}` itself takes {share} of the training loop."
    if where == LINE:
        return f"One line of the training loop takes {share} of it and launches no operator."
    if where == NETWORK:
        return f"Python of `{name}`, which the network runs, takes {share} of the training loop."
    return f"The call of `{name}` takes {share} of the training loop."


def _cause(call: Mapping[str, Any]) -> str:
    name = (call["inside"] or "").rpartition(": ")[2]
    inside = f"{percent(call['inside_share'])} of the loop is in `{name}`." if name else ""
    inside = inside or mostly_of(call)
    return " ".join(text for text in (inside, _waits(call["wait_share"], beside=call["waits_beside"])) if text)


def _waits(share: float, *, beside: bool) -> str:
    if share < LEAST_WAIT:
        return ""
    if beside:
        return f"For another {percent(share)} it waits for the network, which takes that time in any case."
    return f"{percent(share)} is waiting for the network."


def place(call: Mapping[str, Any]) -> str:
    """Where it is called, if MindSpore does not call it, and where it spends time of its own."""
    site, code = call["site"], call["code"]
    if call["where"] == LINE:
        return code or ""
    named = [f"called at `{site}`" if site else "", f"most of its time is spent at `{code}`" if code else ""]
    return "; ".join(text for text in named if text)


SUMMARY = "mindspore/train/summary/"
ADVICE = {
    SUMMARY: (
        "Train without summaries (SummaryCollector, SummaryRecord), or write them in a short run of their own: their "
        "writer asks its queue without a pause, however rarely something is collected."
    ),
    "": (
        "Stop this process while the training runs, or let it sleep when it has nothing to do: for example, a "
        "loop that asks a queue without blocking (`get(block=False)`) takes a whole core."
    ),
}  # by a part of the path of the library that made it
LONGEST = 40


def feeder(content: dict[str, Any]) -> Contention | None:
    """The process that the stage that limits may wait for; None without one."""
    process = content["diagnosis"]["process"]
    return None if process is None or process["leads"] else contention_in(process)


def of_process(content: dict[str, Any], _lead: Cause) -> Answer:
    """Of that process."""
    process, run = contention_in(content["diagnosis"]["process"]), content["run"]
    given = Answer(_process_sentence(process), confidence=process.confidence)
    given.cause = _process_cause(process)
    given.place = process.site + (f"; made by {_in_packages(process.library)}" if process.library else "")
    given.action = next(text for part, text in ADVICE.items() if part in process.library)
    given.gain = (
        f"That frees {_cores(process.cores)} for the training, which now has "
        f"{_number(process.training_cores)} of {_cores(process.available_cores or 0.0)}"
    )
    given.confidence_reason = doubts.reason(process.doubts) or (
        f"it was sampled for {format_ns(process.sampled_ns)} of steady training"
    )
    given.propose(*command.after_change(run, "report", "--section", "cpu"))
    shape.measure_first(given, run, process.doubts)
    return given


def of_thread(content: dict[str, Any], lead: Cause) -> Answer:
    """Of a Python thread that holds the interpreter's lock."""
    thread, run = contention_in(content["diagnosis"]["process"]), content["run"]
    held = percent(thread.gil_share or 0.0)
    given = Answer(
        f"{capital(label(thread))} of the training computes in Python beside the steps, and the interpreter's lock is "
        f"held for {held} of the time.",
        confidence=thread.confidence,
    )
    given.cause = (
        f"During the steady steps it used {_cores(thread.cores)}, all else of the training "
        f"{_number(thread.training_cores)}. While it computes, no other Python runs, and a thread that wants the "
        "lock waits for up to 5 ms each time."
    )
    given.place = thread.site
    given.action = f"{capital(network.action('move_thread'))}."
    gain = lead.advice and lead.advice.gain
    if gain and gain.times:
        given.gain = f"The training would run {about(gain.times)} without it, by how long the lock is held"
    given.confidence_reason = doubts.reason(thread.doubts) or "who holds the lock is concluded from who computes"
    given.propose(*command.after_change(run, "report", "--section", "cpu"))
    shape.measure_first(given, run, thread.doubts)
    return given


def _in_packages(path: str) -> str:
    """A library's file without the folder that it is installed in."""
    return path.rpartition("/site-packages/")[2]


def label(process: Contention) -> str:
    """The process or thread for people: "the process `WriterPool`", "4 processes `worker`", "the Python thread `f`"."""
    name = process.what or _short(process.command) or f"{process.pid}"
    kind, kinds = ("Python thread", "Python threads") if process.is_thread else ("process", "processes")
    return f"the {kind} `{name}`" if process.processes < 2 else f"{process.processes} {kinds} `{name}`"


def _process_sentence(process: Contention) -> str:
    made = f", started at {process.site}," if process.site else ""
    verb = "takes" if process.processes < 2 else "take"
    return (
        f"Short of CPU: {label(process)}{made} {verb} {percent(process.job_share or 0.0)} of the job's CPU, "
        f"and no core is idle."
    )


def _process_cause(process: Contention) -> str:
    text = (
        f"During the steady steps {label(process)} used {_number(process.cores)} and the training "
        f"{_number(process.training_cores)} of {_cores(process.available_cores or 0.0)}"
    )
    if (process.other_cores or 0.0) >= 0.1:
        text += f", other programs {_number(process.other_cores or 0.0)}"
    waits = process.wait_cores
    if waits is None or waits < 0.1:
        return text + "."
    return f"{text}; on average {waits:.1f} threads of the training were ready to run and had no core."


def _short(command: str) -> str:
    """The program without its folder, and what it was given."""
    program, space, given = command.partition(" ")
    text = program.rpartition("/")[2] + space + given
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _number(cores: float) -> str:
    return f"{cores:.2g}" if cores < 10 else f"{cores:.0f}"


def _cores(cores: float) -> str:
    return f"{_number(cores)} core{'' if _number(cores) == '1' else 's'}"
