"""The comment on a pull request: ten lines for somebody who never heard of pipeprof, everything else folded below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeprof import escape
from pipeprof.report import section_markdown
from pipeprof.report.compare import rows
from pipeprof.report.compare import trust as compare_trust
from pipeprof.report.compare.sections import document
from pipeprof.report.words import first_of
from pipeprof.report.words.comparison import metric_name, position
from pipeprof.units import format_change, format_count, format_ns
from pipeprof.verdict.gate.causes import stated_cause

Metric = Mapping[str, Any]

MOST_METRICS, MOST_CONDITIONS = 3, 3
TITLES = {
    "regressed": "slower than before", "improved": "faster than before", "unchanged": "no slower than before",
    "acknowledged": "slower than before, and that was accepted", "inconclusive": "cannot tell yet",
    "incomparable": "not comparable", "missing": "a measurement is missing",
}  # fmt: skip
SAID = {
    "regressed": "worse", "improved": "better", "unchanged": "same", "acknowledged": "worse, accepted",
    "inconclusive": "too noisy to tell", "incomparable": "not comparable", "missing": "not measured",
}  # fmt: skip
OPEN = {
    "few_jobs": "too early to tell", "few_repetitions": "too few repetitions", "few_left": "too few repetitions",
    "other_speed": "another machine speed",
}  # fmt: skip
HEAD = ("measured", "before", "with this change", "difference", "")
FINE = ("unchanged", "improved", "acknowledged")


def text(content: dict[str, Any], most: int) -> str:
    """Markdown: at most ten lines, then a fold with the whole comparison (`most` rows of what is not primary)."""
    title, cause = f"{_title(content)}{_size(content)}{_because(content)}", _cause_line(content)
    lines = [
        f"### Performance{_of(content)}: {title}", "", *_table(content), *([cause, ""] if cause else []),
        f"**What to do:** {_to_do(content)}", "",
    ]  # fmt: skip
    edits = _edits(content)
    lines += [edits, ""] if edits else []
    lines += [
        *_not_confirmed(content),
        f"**Cost:** {_cost(content)}",
        "",
        "<details><summary>All numbers, how sure they are, and what was compared</summary>",
    ]
    whole = document(content, most=most)
    return "\n".join([*lines, "", section_markdown.page(whole.title, whole.sections, mark="###"), "</details>"]) + "\n"


def plain(words: object) -> str:
    """Text as text; spans between two backticks stay code."""
    return escape.markdown(rows.clean(words))


def _name(words: object, *, in_table: bool = False) -> str:
    """A name as code."""
    return escape.markdown_code(rows.clean(words, rows.LONGEST_NAME), in_table=in_table)


def _metric(code: str, *, in_table: bool = False) -> str:
    """A metric as people call it; one that nobody worded as code."""
    name = metric_name(code)
    return _name(code, in_table=in_table) if name == code else plain(name)


def _of(content: Mapping[str, Any]) -> str:
    name = rows.workload(dict(content))
    return f" of {_name(name)}" if name else ""


def _title(content: Mapping[str, Any]) -> str:
    """What was found, in words of the metric that it was found in."""
    verdict, lead = content["verdict"], _lead(content)
    if rows.unconfirmed(content):
        return "slower than before on one runner, not confirmed by another yet"
    if verdict in ("regressed", "improved", "acknowledged") and lead is not None and lead["name"] not in _TIMES:
        return {"improved": "better than before", "acknowledged": "worse than before, and that was accepted"}.get(
            verdict, "worse than before"
        )
    return TITLES.get(verdict, plain(verdict))


_TIMES = ("step_time_median", "data_wait")


def _size(content: Mapping[str, Any]) -> str:
    """Of which metric that is said, and by how much it changed: what made a check red is named in the first line."""
    verdict, lead = content["verdict"], _lead(content)
    if verdict == "incomparable":
        names = _differing(content)
        return f": other {names}" if names else ""
    if lead is None or verdict == "unchanged":
        return ""
    if verdict in ("inconclusive", "missing"):
        alike = [one for one in content["metrics"] if one.get("family") == "primary" and one["verdict"] == verdict]
        names = first_of([_metric(one["name"]) for one in alike], MOST_METRICS)
        red = ", and this check does not pass undecided" if rows.undecided_and_red(content) else ""
        return f": {names}{red}"
    moved = rows.change_and_interval(dict(lead))[0] if lead.get("ratio") is not None else ""
    return f": {_metric(lead['name'])} {moved}".rstrip()


def _because(content: Mapping[str, Any]) -> str:
    """`, because the wait for map `decode` grew to 2.1x (`data.py:41`)`; empty without a cause."""
    cause = _cause(content)
    if cause is None:
        return ""
    sure = "because" if cause.get("proven", True) else "probably because"
    place = cause.get("place_new") or cause.get("place_base")
    return f", {sure} {plain(rows.line(cause).what)}" + (f" ({_name(place)})" if place else "")


def _differing(content: Mapping[str, Any]) -> str:
    """The conditions because of which nothing was judged."""
    found = [one[0] for one in rows.differences(dict(content)) if one[3] == "cannot be compared"]
    return ", ".join(_name(one) for one in found[:MOST_CONDITIONS])


def _lead(content: Mapping[str, Any]) -> Metric | None:
    """The metric that the verdict is about."""
    first = [one for one in content["metrics"] if one.get("family") == "primary"]
    return next((one for one in first if one["verdict"] == content["verdict"]), None)


def _shown(content: Mapping[str, Any]) -> list[Metric]:
    """At most three metrics that decide, worst first; those that the policy names first are those of the default."""
    first = [one for one in content["metrics"] if one.get("family") == "primary"]
    first.sort(key=lambda one: position(one["name"]))
    worst = [one for one in first if one["verdict"] not in FINE and one["verdict"] != "inconclusive"]
    return [*worst, *(one for one in first if one not in worst)][:MOST_METRICS]


def _table(content: Mapping[str, Any]) -> list[str]:
    body = [_row(one, content["verdict"]) for one in _shown(content)]
    if not body:
        return [f"{plain(content.get('headline') or content['verdict'])}", ""]
    head = ["| " + " | ".join(HEAD) + " |", "| --- | ---: | ---: | ---: | --- |"]
    return [*head, *("| " + " | ".join(row) + " |" for row in body), ""]


def _row(metric: Metric, decided: str) -> list[str]:
    """The cells of a metric; bold what it is that has the verdict of the whole."""
    base, new = rows.values(dict(metric))
    name = _metric(metric["name"], in_table=True)
    change = rows.change(dict(metric)).replace("[", "(").replace("]", ")")
    bold = "**" if metric["verdict"] == decided else ""
    return [name, plain(base), plain(new), plain(change), f"{bold}{_said(metric)}{bold}"]


def _said(metric: Metric) -> str:
    facts = (metric.get("reason_facts") or []) if metric["verdict"] == "inconclusive" else []
    why_open = next((OPEN[fact["code"]] for fact in facts if fact.get("code") in OPEN), None)
    return why_open or SAID.get(metric["verdict"], plain(metric["verdict"]))


def _across_jobs(metric: Metric) -> Mapping[str, Any] | None:
    """Why only large changes count against a stored baseline: too few jobs, or none on a machine of this speed."""
    facts = metric.get("reason_facts") or []
    return next((fact for fact in facts if fact.get("code") in ("few_jobs", "other_speed")), None)


def _cause(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """The entry of the explanation that the headline names, too; none where nothing is decided, or no entry tells."""
    lead = _lead(content)
    if lead is None or content["verdict"] not in ("regressed", "improved"):
        return None
    return stated_cause(lead["verdict"], lead["name"], lead.get("ratio"), content.get("explanation") or [])


def _cause_line(content: Mapping[str, Any]) -> str:
    """The cause with its places in both revisions; empty without one."""
    cause = _cause(content)
    if cause is None:
        return ""
    sure = "Cause" if cause.get("proven", True) else "Probable cause"
    return f"**{sure}:** {plain(rows.line(cause).text)}{_places(cause)}"


def _places(entry: Mapping[str, Any]) -> str:
    """`, at data.py:41 (before: data.py:38)`."""
    before, now = entry.get("place_base"), entry.get("place_new")
    if not now:
        return f"; before at {_name(before)}" if before else ""
    return f"; at {_name(now)}" + (f" (before: {_name(before)})" if before and before != now else "")


def _to_do(content: Mapping[str, Any]) -> str:
    """One sentence for the reviewer."""
    verdict, cause = content["verdict"], _cause(content)
    if verdict == "regressed":
        return _about_a_regression(content, cause)
    if verdict == "inconclusive":
        return _undecided(content)
    if verdict == "incomparable":
        names = _differing(content)
        return (
            "nothing was judged, because the two sides were measured under different conditions"
            f"{f' ({names})' if names else ''}. Measure the base again under today's conditions."
        )
    if verdict == "missing":
        return "find out why it is not measured any more: without it nobody can say that nothing became slower."
    if compare_trust.loosens(dict(content)):
        return "nothing about the speed; look at what this change edits (next line)."
    return "nothing."


def _about_a_regression(content: Mapping[str, Any], cause: Mapping[str, Any] | None) -> str:
    if rows.unconfirmed(content):
        return "wait for the second runner: it fails this change only if it says the same."
    place = cause and cause.get("place_new")
    look = f"look at {_name(place)}" if place else "look at the cause" if cause else "look for the cause"
    trust = content.get("trust") or {}
    file = _name((trust.get("policy") or {}).get("path") or "pipeprof.toml")
    first = " in a change of its own, merged before this one" if trust.get("base_revision") else ""
    return (
        f"{look} before this is merged{_by_two(content)}. If it is intended, accept it with an `acknowledge` "
        f"entry in {file}{first}, with a reason and a date."
    )


def _by_two(content: Mapping[str, Any]) -> str:
    both = (content.get("confirmation") or {}).get("state") == "confirmed"
    return ": two runners found it, each by itself" if both else ""


def _undecided(content: Mapping[str, Any]) -> str:
    more_of = "time (`budget`)" if content.get("session") else "repetitions (`reps`)"
    if compare_trust.loosens(dict(content)):
        return (
            f"measure it again, with more {more_of} or on a quieter machine: a change that edits the policy "
            "or the baseline that it is judged by does not pass undecided. Or give those edits a change of their own."
        )
    if rows.undecided_and_red(content):
        return f"measure it again, with more {more_of} or on a quieter machine: `fail-on` names inconclusive here."
    facts = next(filter(None, map(_across_jobs, content["metrics"])), None)
    if facts and facts.get("code") == "other_speed":
        return (
            f"nothing. A calibration loop took {facts.get('ratio'):.2f}x as long on this runner as in the jobs of the "
            f"baseline, none of which is of this speed: only changes above {_percent(facts.get('limit'))} fail."
        )
    if facts:
        return (
            f"nothing. {facts.get('jobs')} of {facts.get('needed')} jobs are collected; until then only changes above "
            f"{_percent(facts.get('limit'))} fail."
        )
    seen = "".join(f" {one[0].upper()}{one[1:]}." for one in map(plain, rows.seen(dict(content))))
    open_ = [one for one in content["metrics"] if one.get("family") == "primary" and one["verdict"] == "inconclusive"]
    needed = _needed(open_)
    more = f" {needed[0].upper()}{needed[1:]}: allow more {more_of}, or run it" if needed else " Run it again"
    said = f"{_bound(open_)}{seen}{more} on a quieter machine."
    return f"this need not block the merge: no slow-down was shown.{said}"


def _bound(metrics: Sequence[Metric]) -> str:
    """How much worse the metric may be of which least is known; empty where none may be worse."""
    ends = [(one, one.get("ci_low" if one.get("direction") == "higher" else "ci_high")) for one in metrics]
    worse = {one["name"]: (end, 1 / end if one.get("direction") == "higher" else end) for one, end in ends if end}
    name, (end, times) = max(worse.items(), key=lambda item: item[1][1], default=("", (0.0, 0.0)))
    if times <= 1:
        return ""
    named = _metric(name)
    return f" {named[0].upper()}{named[1:]} may still have changed by {format_change(end)}."


def _needed(metrics: Sequence[Metric]) -> str:
    """What more repetitions would show of every metric that is open; empty where for one no number helps."""
    numbers = [one.get("reps_needed") for one in metrics]
    return rows.needed(max(metrics, key=lambda one: one["reps_needed"])) if numbers and all(numbers) else ""


def _percent(share: object) -> str:
    return f"{share * 100:.0f} %" if isinstance(share, (int, float)) else "a large size"


def _edits(content: Mapping[str, Any]) -> str:
    """One line for all that the change edits of what it is judged by."""
    found = compare_trust.edits(dict(content))
    if not found:
        return ""
    more = f" ({format_count(len(found) - 1, 'more edit')} below)" if len(found) > 1 else ""
    first = plain(found[0]).replace("this change", "it", 1)
    return f"**{compare_trust.title(dict(content))}:** {first}{more}."


def _not_confirmed(content: Mapping[str, Any]) -> list[str]:
    """The line about what a first runner had found and this one did not."""
    about = content.get("confirmation") or {}
    if about.get("state") != "not_confirmed":
        return []
    return [f"**Not confirmed:** another runner had found: {plain((about.get('first') or {}).get('headline'))}", ""]


def _cost(content: Mapping[str, Any]) -> str:
    """What the check took: repetitions and minutes."""
    session = content.get("session") or {}
    reps = [(content.get(side) or {}).get("reps") for side in ("base", "new")]
    counted = [number if isinstance(number, int) else 0 for number in reps]
    seconds = session.get("seconds") or (content.get("new") or {}).get("seconds")
    took = f" in {format_ns(seconds * 1e9)}" if isinstance(seconds, (int, float)) else ""
    if session:
        how = f"the training ran {counted[0]} times on the base and {counted[1]} times with this change, alternating,"
        warm = session.get("discarded")
        how += f" after {format_count(len(warm), 'warm-up run')}," if warm else ""
        again = session.get("disturbed")
        how += f" {format_count(len(again), 'disturbed run')} set aside," if again else ""
        return f"{how.rstrip(',')}{took}. In brackets: 95 % intervals."
    return (
        f"the training ran {format_count(counted[1], 'time')}{took}, compared with "
        f"{format_count(counted[0], 'stored repetition')}. In brackets: 95 % intervals."
    )
