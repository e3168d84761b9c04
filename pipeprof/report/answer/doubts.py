"""What each doubt of a verdict means, as a clause with its numbers; docs/troubleshooting.md: what to do about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pipeprof.report.answer.shape import op_label
from pipeprof.report.words import joined
from pipeprof.report.words.causes import compared
from pipeprof.report.words.names import PHASES
from pipeprof.units import format_count, format_ns, percent
from pipeprof.verdict.rules import WEIGHTS

Doubt = dict[str, Any]

MERGED = {
    "indirect": {"not_busy", "none_busy"},
    "none_busy": {"not_busy"},
    "few_batches": {"few_steps"},
}  # said already by one of these
MOST = 3  # doubts in a sentence; the section "diagnosis" has all


def clauses(doubts: Sequence[Doubt]) -> list[str]:
    """One clause for each doubt, in their order."""
    return [WORDS[doubt["code"]](doubt) if doubt["code"] in WORDS else doubt["code"] for doubt in doubts]


def reason(doubts: Sequence[Doubt], most: int = MOST) -> str:
    """The doubts as one clause, without those that repeat another; empty without doubts.

    Those that spoil all numbers come first, such as other programs. Of more than `most` the last ones are counted.
    """
    codes = {doubt["code"] for doubt in doubts}
    distinct = [doubt for doubt in doubts if not MERGED.get(doubt["code"], set()) & codes]
    distinct.sort(key=lambda doubt: doubt["code"] not in WEIGHTS)
    said = list(dict.fromkeys(clauses(distinct)))
    if len(said) > most:
        said[most - 1 :] = [f"{format_count(len(said) - most + 1, 'more doubt')} (--section diagnosis)"]
    if len(said) < 2 or not any("," in clause for clause in said):
        return joined(said)
    return "; ".join([*said[:-1], f"and {said[-1]}"])


def _not_busy(doubt: Doubt) -> str:
    if doubt["utilisation"] is None:
        return f"how busy {op_label(doubt['op'])} was is not known"
    return f"{op_label(doubt['op'])} was busy {percent(doubt['utilisation'])} of the time"


def _close(doubt: Doubt) -> str:
    if doubt["op"] is None or doubt["utilisation"] is None:
        return "how busy the other operators were is not known"
    busy = percent(min(1.0, doubt["utilisation"]))
    if doubt.get("named_utilisation", 0.0) is None:  # the stage that was named: nothing to compare with
        return f"{op_label(doubt['op'])} was busy {busy}"
    named = doubt.get("named_utilisation") or math.inf
    if percent(min(1.0, named)) == busy:
        return f"{op_label(doubt['op'])} was as busy ({busy})"
    if doubt["utilisation"] > named:
        return f"{op_label(doubt['op'])} was even busier ({busy})"
    return f"{op_label(doubt['op'])} is nearly as slow (busy {busy})"


def _indirect(doubt: Doubt) -> str:
    if doubt["rule"] == "gil":
        return "how long Python held the interpreter's lock (GIL) was not measured"
    return f"{op_label(doubt['op'])} is named by the fill of the queues and CPU use, not by its own times"


def _few(number: int, what: str) -> str:
    return f"only {format_count(number, what)}"


def _few_samples(doubt: Doubt) -> str:
    return format_count(doubt["samples"], "sample")


def _near(doubt: Doubt) -> str:
    return f"{PHASES[doubt['limit']]} takes nearly as much ({percent(doubt['share'])})"


def _none_large(doubt: Doubt) -> str:
    following = f"the next ({PHASES[doubt['limit']]}) {percent(doubt['share'])}"
    return f"no part stands out: the largest takes {percent(doubt['largest'])}, {following}"


def _holds_lock(doubt: Doubt) -> str:
    share = "" if doubt["share"] is None else f" {percent(doubt['share'])} of the time"
    return f"Python code of the data pipeline holds the interpreter's lock (GIL){share}, which may slow the training"


def _contention(doubt: Doubt) -> str:
    name = f"the process `{doubt['what']}`" if doubt["what"] else f"process {doubt['pid']}"
    return f"{name} takes {percent(doubt['share'])} of the job's CPU, and no core stays idle"


def _lock_contention(doubt: Doubt) -> str:
    share = percent(doubt["share"])
    return f"the Python thread `{doubt['what']}` takes {share} of the job's CPU, and the interpreter's lock"


def _shares_cpu(doubt: Doubt) -> str:
    """Where an operator is named, the gain says what the estimate is, and measuring is the next command anyway."""
    if (doubt.get("op") or {}).get("op_type") != "consumer":
        return "what the pipeline's CPU costs the training is estimated from CPU times, not measured"
    times = f"without it about {doubt['times']:.2f} times as fast, by estimate; `pipeprof headspace` measures it"
    return f"the training shares its cores with the data pipeline ({times})"


WORDS: dict[str, Callable[[Doubt], str]] = {
    "two_lengths": lambda _: "the steps have two lengths, of which the recorded ones show one",
    "asleep": lambda doubt: (
        f"the loop's threads used or wanted {doubt['cores']:.2f} cores, and what they wait for was not seen"
    ),
    "not_busy": _not_busy,
    "close": _close,
    "no_queues": lambda _: "the queues between the operators were not sampled",
    "queues_elsewhere": lambda doubt: f"the fill of the queues points to {op_label(doubt['op'])}",
    "few_batches": lambda doubt: f"{_few(doubt['batches'], 'batch')} of the steady state could be used",
    "holds_lock": _holds_lock,
    "untimed_cpu": lambda doubt: (
        f"{op_label(doubt['op'])} uses {doubt['cores']:.2f} cores more than its rows explain, "
        "for instance to begin epochs"
    ),
    "shares_cpu": _shares_cpu,
    "other_load": lambda doubt: (
        f"other programs used {doubt['other_cores']:.1f} of {doubt['cores']:g} cores, and almost no core was idle"
    ),
    "indirect": _indirect,
    "none_busy": lambda _: "no operator was busy all the time",
    "prefilled": lambda doubt: (
        f"the training used up batches that were prepared before, {doubt['times']:.2f} times as fast as "
        f"{op_label(doubt['op'])} makes them: a longer run would wait more"
    ),
    "shares_differ": lambda doubt: (
        f"the steady state ({percent(doubt['steady'])} waiting) and all steps ({percent(doubt['overall'])}) contradict "
        "each other"
    ),
    "overrun": lambda doubt: (
        f"the work of {op_label(doubt['op'])} was measured {doubt['times']:.2f} times as long as there was time for: "
        "its first batches, or the calls that were timed, were slower than the others"
    ),
    "repetitions_differ": lambda doubt: f"only {doubt['agree']} of {doubt['of']} repetitions agree",
    "fills_alone": lambda doubt: (
        f"neither batches nor steps were recorded: the fill of the queues is all there is ({_few_samples(doubt)})"
    ),
    "waits_uncovered": lambda doubt: (
        f"calls of the loader were recorded in only {percent(doubt['covered'])} of the waits"
    ),
    "no_pipeline": lambda _: "no dataset operator was recorded, so none can be named",
    "few_steps": lambda doubt: f"{_few(doubt['steps'], 'step')} could be used",
    "no_batches": lambda _: "no batch was recorded, and the time before the forward pass may also be work on the host",
    "few_queue_batches": lambda doubt: f"{_few(doubt['batches'], 'batch')} could be seen in the queues",
    "other_loader": lambda _: "the loop was not seen to wait for an iterable or a queue",
    "second_close": _near,
    "none_large": _none_large,
    "not_most": lambda doubt: f"it takes only {percent(doubt['share'])} of the step (wait for data left out)",
    "no_other_steps": lambda doubt: (
        "there is no step without recording to compare with"
        + (", and recording slows the host down, not the device" if doubt.get("on_device") else "")
    ),
    "lost_events": lambda _: "the trace is damaged, and what it lost may be work of the device",
    "inflated": lambda doubt: f"recording made these steps {doubt['times']:.2f} times as long",
    "pipeline_parallel": lambda _: "ranks send to each other, and in pipeline parallelism they differ by design",
    "once": lambda doubt: f"{compared(doubt['steps'])}: it may not happen again",
    "some_steps": lambda doubt: compared(doubt["steps"]),
    "near_limit": lambda _: "the difference is hardly larger than noise",
    "not_last": lambda _: "it is not the last to arrive at collectives",
    "no_communication": lambda _: "communication was not recorded",
    "overlap_counted": lambda _: "communication beside operators counts as if it stopped them",
    "cpu_contention": _contention,
    "lock_contention": _lock_contention,
    "short": lambda doubt: f"only {format_ns(doubt['ns'])} of steady training was sampled",
    "varies": lambda _: "the steps vary too much for their number",
}
