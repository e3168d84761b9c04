"""Why the gate judged a metric as it did, and what is to be noted about a comparison, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pipeprof.report.words import first_of
from pipeprof.units import MANY_TIMES, format_above, format_change, format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipeprof.verdict.gate.result import MetricVerdict

    Facts = Mapping[str, Any]

MOST_NAMED = 3  # metrics in one note


def metric(one: MetricVerdict) -> dict[str, Any]:
    """A metric's verdict for JSON: `reason` in words, `reason_facts` the codes and numbers behind it."""
    verdict = dict(vars(one))
    facts = list(verdict.pop("reasons"))
    return verdict | {"reason": reason(facts), "reason_facts": facts}


def reason(notes: Iterable[Facts]) -> str:
    """All of them as one clause; empty for none."""
    return "; ".join(map(sentence, notes))


def sentence(note: Facts) -> str:
    """One code of verdict/gate/note."""
    return WORDS[note["code"]](note)


def needed(repetitions: int, finds: float | None) -> str:
    """What so many repetitions per side would show: a change of that size, or without one what was seen."""
    if finds is None:
        return f"about {repetitions} repetitions per side would probably settle the change seen here"
    return f"about {repetitions} repetitions per side would probably show a change of {_percent(finds)}"


def _named(names: Sequence[str]) -> str:
    return first_of([f"`{name}`" for name in names], MOST_NAMED)


def _percent(share: float) -> str:
    """With two digits, so that a small change is not shown as none."""
    return f"{share * 100:.2g} %"


def _entry(text: str) -> Callable[[Facts], str]:
    """About an acknowledgement of the policy."""
    return lambda facts: f"the acknowledgement of `{facts['metric']}` ({facts['reason']}) {text.format(**facts)}"


def _accepted(facts: Facts) -> str:
    where = f" ({facts['reference']})" if facts["reference"] else ""
    return f"acknowledged until {facts['until']}: {facts['reason']}{where}"


def _too_noisy(facts: Facts) -> str:
    p_value, needed = format_above(facts["p_value"], facts["needed"])
    said = "p =" if p_value[0].isdigit() else "p is"
    word = "an improvement" if facts["better"] else "a regression"
    return f"too noisy to tell: {said} {p_value} for {word}, at most {needed} is needed"


def _far_apart(facts: Facts) -> str:
    upper, lower = ("new", "base") if facts["above"] else ("base", "new")
    ratio = facts["ratio"] if facts["above"] or facts["ratio"] is None else 1 / facts["ratio"]
    times = "far above" if ratio is None else f"at least {_times(ratio)}"
    return f"clear without a test: each repetition of {upper} is {times} any of {lower}"


def _times(ratio: float) -> str:
    """A multiple, rounded down."""
    return f"{math.floor(ratio * 10) / 10:.1f}x" if ratio < MANY_TIMES else f"{math.floor(ratio):,}x"


def _other_speed(ratio: float, limit: float, **_: object) -> str:
    """How far the machines differ, and what counts all the same."""
    return (
        f"the calibration loop took {ratio:.2f}x as long as in the jobs of base, so the machines differ in speed: only "
        f"changes above {limit * 100:.0f} % count"
    )


def _other_speed_left_out(jobs: int, **_: object) -> str:
    return f"{format_count(jobs, 'job')} of base on machines of another speed {'is' if jobs == 1 else 'are'} left out"


WORDS: dict[str, Callable[[Facts], str]] = {
    "few_repetitions": lambda facts: f"at least {facts['needed']} repetitions per side are needed",
    "job_not_known": lambda facts: f"it is not known in which CI job {facts['side']} was measured",
    "few_jobs": lambda facts: (
        f"the sides are not known to share a job, and base has {facts['jobs']} of the {facts['needed']} that are "
        f"needed to compare across jobs: with fewer only changes above {facts['limit'] * 100:.0f} % count"
    ),
    "across_jobs": lambda facts: (
        f"base and new are from different CI jobs, so the change is compared with the spread of the {facts['jobs']} "
        "jobs of base"
    ),
    "other_speed": lambda facts: _other_speed(**facts),
    "other_speed_left_out": lambda facts: _other_speed_left_out(**facts),
    "other_jobs_left_out": lambda facts: (
        f"{format_count(facts['left_out'], 'repetition')} of other CI jobs {'is' if facts['left_out'] == 1 else 'are'} "
        "left out"
    ),
    "few_left": lambda facts: f"too few repetitions are left without the {facts['left_out']} of other CI jobs",
    "shifted_scale": lambda _: "a value is 0 or less, so logarithms of (value + `floor`) are compared",
    "linear_scale": lambda _: "a value is 0 or less, so differences are compared and not logarithms",
    "share": lambda facts: f"relative to all `{facts['prefix']}` metrics together: {format_change(facts['ratio'])}",
    "too_small": lambda facts: (
        f"it changed for certain, but by only {_percent(facts['change'])}: {_percent(facts['needed'])} is the least "
        "that counts"
    ),
    "too_noisy": _too_noisy,
    "far_apart": _far_apart,
    "count_varies": lambda _: "it differs between the repetitions of one side, so it cannot be compared exactly",
    "not_confirmed": lambda _: "worse on this runner alone: the first one did not call it regressed",
    "not_in_new": lambda _: "measured in base but not in new",
    "first_check": lambda facts: f"the first check is after {facts['repetitions']} repetitions per side",
    "conditions": lambda facts: f"measured under different conditions: {', '.join(facts['names'])}",
    "acknowledged": _accepted,
    "acknowledgement_not_measured": _entry("names a metric that was not measured"),
    "acknowledgement_outgrown": _entry("covers a ratio of up to {max_ratio:g}, and the ratio is {ratio:.4g}"),
    "acknowledgement_expired": _entry("expired on {expires}"),
    "only_in_new": lambda facts: f"measured only in new, so not judged: {_named(facts['metrics'])}",
    "on_neither_side": lambda facts: f"measured on neither side: {_named(facts['metrics'])}",
    "other_environment": lambda facts: (
        f"{facts['tag']} was measured on another machine or in another environment, so it is not comparable"
    ),
    "two_points": lambda facts: (
        f"two single measurements, {format_count(facts['writes'], 'write')} apart: not tested, see the changes of "
        "level too"
    ),
}
