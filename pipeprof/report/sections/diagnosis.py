"""The verdict on the data pipeline and on the step itself, with its evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command, data, doubts, verdict_in
from pipeprof.report.answer.shape import MANY_TIMES, capital, on_device, ops_of, uncapital
from pipeprof.report.answer.step import LIMITS, limited
from pipeprof.report.sections.block import Block, Section
from pipeprof.report.sections.stragglers import straggler_sentences
from pipeprof.report.words import evidence, suggestions, training
from pipeprof.report.words.names import PHASES, SINK_STAGES, STAGE_LIMITS
from pipeprof.report.words.verdict import costs, phrase
from pipeprof.units import format_ns, format_ratio, percent
from pipeprof.verdict.data_cause import CODES as DATA
from pipeprof.verdict.data_cause import SHARED, stage_of
from pipeprof.verdict.ranking import COSTS, IN_TIME, NOT_MEASURED, STRAGGLER, WORK
from pipeprof.verdict.rules import HIGH_WAIT
from pipeprof.verdict.suggest import BOUND

if TYPE_CHECKING:
    from pipeprof.verdict.cause import Cause, RunVerdict

STEP = (*COSTS, *WORK)
LEAST_RANKED = 2
LABEL = re.compile(r"^[A-Z][\w -]+: ")
PROGRAMS = {
    "mindinsight": "MindInsight's rules",
    "mindspore": "MindSpore's own analyser",
    "autotune": "AutoTune's rule",
}


def diagnosis_section(content: dict[str, Any]) -> Section:
    """The answer first, then the numbers it rests on, what to try, and what other programs would name."""
    diagnosis, verdict = content["diagnosis"], verdict_in(content)
    section = Section("Diagnosis")
    lead, network = verdict.lead, Section("")
    _network(network, content, lead)
    if lead.code in STEP and diagnosis["verdict"] in ("input_bound", "balanced"):
        section.strong += network.strong
    elif lead.code not in (*STEP, *DATA, STRAGGLER, IN_TIME, NOT_MEASURED):
        section.strong.append(" ".join(filter(None, [f"{capital(phrase(lead))}:", costs(lead)])))
    _data(section, content, lead)
    section.notes += [_evidence(item) for item in diagnosis["evidence"]]
    section.notes += [_suggestion(item) for item in diagnosis["suggestions"] if _is_to_try(item, diagnosis)]
    section.strong += [text for text in network.strong if text not in section.strong]
    section.notes += network.notes
    section.notes += [_suggestion(item) for item in diagnosis["suggestions"] if _is_saving(item)]
    _stragglers(section, content)
    section.blocks += _ranking(verdict)
    for program, title in PROGRAMS.items():
        theirs = diagnosis["compatible"].get(program) or {}
        if theirs.get("named") is not None:
            section.notes.append(f"{title} would name: {_named(content, theirs)}")
    return section


def _data(section: Section, content: dict[str, Any], lead: Cause) -> None:
    """Whether the training waits for its data, for which operator, how sure that is and by which rule."""
    diagnosis = content["diagnosis"]
    text = data.sentence(content).rstrip(".")
    is_another = lead.code not in DATA and diagnosis["verdict"] in ("input_bound", "balanced")
    section.strong.append(_unlabelled(text) if is_another else text)
    if diagnosis["op_id"] is not None and stage_of(diagnosis) is not None:
        name = f" `{diagnosis['op_name']}`" if diagnosis["op_name"] else ""
        kind = f", {STAGE_LIMITS[diagnosis['kind']]}" if diagnosis["kind"] else ""
        section.strong.append(f"Bottleneck: {diagnosis['op_type']} {diagnosis['op_id']}{name}{kind}")
    if diagnosis["stage"] and diagnosis["verdict"] != "consumer_bound":
        section.strong.append(f"Late: {SINK_STAGES[diagnosis['stage']]}")
    if diagnosis["verdict"] == "not_measured":
        _data_wait(section, diagnosis)
    else:
        section.strong.append(_confidence(diagnosis))
    if diagnosis["rule_name"]:
        section.notes.append(evidence.sentence(diagnosis["rule_name"], diagnosis["rule_facts"]))


def _unlabelled(text: str) -> str:
    """A sentence without the verdict in front of it, which belongs to what leads alone."""
    return capital(LABEL.sub("", text))


def _ranking(verdict: RunVerdict) -> list[Block]:
    """The causes that cost something, where there are several."""
    causes = [cause for cause in verdict.causes if cause.share is not None]
    if len(causes) < LEAST_RANKED:
        return []
    rows = [[phrase(cause), percent(cause.share or 0.0), _most(cause), cause.confidence or "-"] for cause in causes]
    return [Block(("cause", "costs", "without it", "confidence"), rows, frozenset({1, 2}))]


def _most(cause: Cause) -> str:
    return "-" if cause.most is None or cause.most >= MANY_TIMES else f"at most x{cause.most:.2f}"


def _data_wait(section: Section, diagnosis: dict[str, Any]) -> None:
    """Where no dataset was seen, a long time up to the forward pass is worth a word in front."""
    wait = next((item["value"] for item in diagnosis["evidence"] if item["source"] == "step/phase_summary"), 0.0)
    if wait >= HIGH_WAIT:
        section.strong.append(
            f"Before the forward pass a step waits {format_ratio(wait)} of its time, for data or for the host"
        )


def _network(section: Section, content: dict[str, Any], lead: Cause) -> None:
    """What limits the step itself."""
    network = content["diagnosis"]["network"]
    if network is None or training.only_reads(content["run"]):
        return
    slow = network["slowest_rank"]
    if network["limit"] in LIMITS:
        text = limited(network, format_ratio, device=on_device(content)).rstrip(".")
        section.strong.append(text if lead.code in STEP else f"Of the step itself: {uncapital(_unlabelled(text))}")
        section.strong.append(_confidence(network))
    elif content["diagnosis"]["verdict"] != "input_bound":
        section.strong.append("Not measured: what each step spends its time on")
    if len(network["candidates"]) > 1 and network["limit"] != "compile":
        second = network["candidates"][1]
        section.strong.append(f"The next largest part: {PHASES[second]} ({format_ratio(network['weights'][second])})")
    if slow:
        more = f"{format_ns(slow['excess_ns'])} longer for a step, most of it in {PHASES[slow['phase']]}"
        section.strong.append(f"Rank {slow['rank']} takes {more}")
    if lead.code in STEP or content["diagnosis"]["verdict"] != "input_bound":
        section.notes += [_evidence(item) for item in network["evidence"]]
        section.notes += [f"Try: {text}" for text in network["suggestions"]]


def _stragglers(section: Section, content: dict[str, Any]) -> None:
    """Ranks that hold the others up, unless the verdict on the step has named one."""
    straggler = content["ranks"]["straggler"]
    named = (content["diagnosis"]["network"] or {}).get("slowest_rank")
    if straggler["verdict"] == "straggler" and not (named and named["rank"] == straggler["found"][0]["rank"]):
        section.strong += straggler_sentences(straggler)[:3]


def _evidence(item: dict[str, Any]) -> str:
    return f"{capital(item['what'])}: {_value(item)} ({item['basis']}; query {item['source']})"


def _value(item: dict[str, Any]) -> str:
    value = item["value"]
    if value is None:
        return "not measured"
    if item["unit"] in ("ns", "ns per step"):
        return format_ns(value)
    if item["unit"].startswith("share"):
        return format_ratio(value)
    if item["unit"] == "times":
        return f"{value:.2f}x"
    return f"{value:.3g} {item['unit']}"


def _is_to_try(item: dict[str, Any], diagnosis: dict[str, Any]) -> bool:
    """Not a stage's pace, where its CPU is what it takes from the training: that pace bounds nothing."""
    return not _is_saving(item) and not (item["code"] == BOUND and diagnosis["rule"] == SHARED)


def _is_saving(item: dict[str, Any]) -> bool:
    """Whether it only gives up what nobody needs: said last."""
    return item["parameter"] == "num_parallel_workers" and (item["new"] or 0) < (item["old"] or 0)


def _suggestion(item: dict[str, Any]) -> str:
    parts = [f"{suggestions.lead(item)}: {item['text']}"]
    if item["place"]:
        parts.append(f"at {item['place']}")
    if item["not_when"]:
        reason = item["not_when"]
        parts.append(reason if reason.startswith(("do not", "more")) else f"not when {reason}")
    if item["verify"]:
        parts.append(f"verify: {command.without_command(item['verify']) or item['verify']}")
    return "; ".join(parts)


def _confidence(diagnosis: dict[str, Any]) -> str:
    said = doubts.reason(diagnosis["doubt_facts"], len(diagnosis["doubt_facts"]))
    return f"{diagnosis['confidence'].capitalize()} confidence" + (f": {said}" if said else "")


def _named(content: dict[str, Any], theirs: dict[str, Any]) -> str:
    ops = ops_of(content, theirs["pipeline_key"])
    names = {number: f"{op['op_type']} {number}" for number, op in ops.items()} | {-1: "nothing: the data is in time"}
    return ", ".join(names.get(op, f"operator {op}") for op in theirs["named"]) or "nothing"
