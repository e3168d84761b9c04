"""Alerts in words: the report of `pipeprof history --alerts`, an issue for each, and the log of a week."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pipeprof import escape
from pipeprof.report import history
from pipeprof.report.document import Document
from pipeprof.report.sections import Block, Section
from pipeprof.report.words import first_of
from pipeprof.report.words.comparison import metric_name
from pipeprof.units import format_change, format_count

Row = dict[str, Any]

HEAD = ("alert", "state", "change", "since", "commit", "file", "owner")
MOST_OWNERS, MOST_COMMITS, MOST_METRICS = 3, 5, 4
MOST_MARKED = 20  # commits in a mark
OPEN = "new"
_WEEK = re.compile(r"^## (\d{4}-W\d{2})\b.*$", re.MULTILINE)
_OWNED = {"codeowners": "by CODEOWNERS", "blame": "wrote the line", "commit": "wrote the commit"}
_DECIDED = {"acknowledged": "accepted", "wrong": "called wrong", "fixed": "called fixed", "new": "opened again"}


def document(content: Row) -> Document:
    """A table of all alerts, then what is known of each; those that were settled are folded away."""
    found = content["alerts"]
    open_ = [one for one in found if one["state"] == OPEN]
    title = f"Alerts of {content['source']}: {len(open_)} open, {len(found) - len(open_)} settled"
    table = Block(HEAD, [_row(one) for one in found], frozenset(), spare=(3, 5))
    return Document(title, [
        Section("", blocks=[table] if found else []),
        *(Section("", [f"{one['name']}: {sentence(one)}"], list(_about(one))) for one in open_),
        Section("", notes=_notes(content)),
        *(Section(f"{one['name']}: {one['state']}", [sentence(one)], list(_about(one)), folded=True)
          for one in found if one["state"] != OPEN),
    ])  # fmt: skip


def with_issues(content: Row) -> Row:
    """The content with `title` and `body` of the issue of each alert, in Markdown; the body begins with its mark."""
    return content | {"alerts": [one | {"title": _title(one), "body": _body(one)} for one in content["alerts"]]}


def sentence(one: Row) -> str:
    """`step time +12.3 % (40.0 ms -> 45.0 ms), because work of `decode` per batch grew to 2.1x`."""
    because = f", {one['because']}" if one["because"] else ""
    levels = f"{history.value(one, one['before'])} -> {history.value(one, one['after'])}"
    return f"{metric_name(one['metric'])} {format_change(one['ratio'])} ({levels}){because}"


def _row(one: Row) -> list[str]:
    return [
        one["name"], one["state"], f"{metric_name(one['metric'])} {format_change(one['ratio'])}", _day(one["at"]),
        _commit(one), one["file"] or "-", first_of(one["owners"], MOST_OWNERS) or "-",
    ]  # fmt: skip


def _day(at: str | None) -> str:
    return (at or "-")[:10]


def _commit(one: Row) -> str:
    if one["commit"]:
        return str(one["commit"]["revision"][: history.SHORT]) + ("" if one["commit"]["certain"] else "?")
    return f"one of {len(one['commits'])}"


def _about(one: Row) -> Iterable[str]:
    """Where it came from, whose it is, and what was decided."""
    commit = one["commit"]
    if commit:
        by = f", by {commit['author']}" if commit["author"] else ""
        yield f"commit {commit['revision'][: history.SHORT]} {commit['subject'] or ''}".rstrip() + by
        others = [other for other in one["commits"] if not commit["revision"].startswith(other)]
        if others:
            yield f"it may also be {first_of(others, MOST_COMMITS)}"
    else:
        yield f"one of {format_count(len(one['commits']), 'commit')}: {first_of(one['commits'], MOST_COMMITS)}"
    if one["file"] or one["place"]:
        place = one["place"] if one["place"] and str(one["place"]).startswith(f"{one['file']}:") else one["file"]
        yield f"file {place or one['place']}"
    if one["owners"]:
        yield f"owner {first_of(one['owners'], MOST_OWNERS)} ({_OWNED[one['owner_by']]})"
    if one["also"]:
        others = [f"{metric_name(also['metric'])} {format_change(also['ratio'])}" for also in one["also"]]
        yield f"with it {first_of(others, MOST_METRICS)}"
    yield from _settled(one)


def _settled(one: Row) -> Iterable[str]:
    if one["decided"]:
        decided = one["decided"]
        yield f"{_DECIDED[one['state']]} by {decided['by']} on {decided['on']}: {decided['why']}"
    if one["over_since"]:
        since = one["over_since"]
        yield f"the level is what it was before since {(since['revision'] or _day(since['at']))[: history.SHORT]}"


def _notes(content: Row) -> list[str]:
    notes = [] if content["alerts"] else ["no change for the worse was found"]
    if not content["enough"]:
        notes.append("changes are looked for in series of 10 measurements and more")
    return notes + [f"left out: `{one['path']}`: {one['problem']}" for one in content["left_out"]]


def mark(one: Mapping[str, Any]) -> str:
    """What a program finds the alert by, in a text that tells it."""
    places = "".join(f" {place}" for place in one["commits"][:MOST_MARKED])
    return f"<!-- pipeprof-alert:{one['name']}{places} -->"


def _title(one: Row) -> str:
    name = f"{one['workload']}: " if one["workload"] else ""
    of = f" since {one['commit']['revision'][: history.SHORT]}" if one["commit"] else ""
    return escape.line(f"{name}{metric_name(one['metric'])} {format_change(one['ratio'])}{of}")


def _body(one: Row) -> str:
    """Names and subjects are shown as text; only owners that CODEOWNERS names are called by it."""
    state = "" if one["state"] == OPEN else f"\n**State: {one['state']}**\n"
    lines = [escape.markdown(escape.line(line)) for line in _about(one)]
    told = " ".join(one["owners"][:MOST_OWNERS]) if one["owner_by"] == "codeowners" else ""
    workload = escape.line(one["workload"])
    decide = f"pipeprof history {workload} --alerts --decide {one['name']}=acknowledged --why REASON"
    return "\n".join([
        mark(one), f"**{escape.markdown(escape.line(sentence(one)))}**", state, *(f"- {line}" for line in lines), "",
        *([f"For {told}", ""] if told else []),
        f"If it is meant, or no change of the code, say so in a change of the repository: `{decide}` (or `wrong`).",
        "Then this issue is closed, and nobody is told again. So it is once the level is what it was.",
    ]) + "\n"  # fmt: skip


def weekly(content: Row, log: str, today: str) -> str:
    """The log with the section of this week written anew: what is told first, decided or over, and how many are open.

    What an earlier week tells is not told again.
    """
    week = _week(today)
    earlier, rest = _split(log, week)
    told = set(re.findall(r"<!-- pipeprof-alert:([A-Za-z0-9._-]+)", earlier))
    over = set(re.findall(r"<!-- pipeprof-over:([A-Za-z0-9._-]+)", earlier))
    lines = []
    for one in content["alerts"]:
        said = f"`{one['name']}`: {escape.markdown(escape.line(sentence(one)))}"
        if one["name"] not in told:
            about = "; ".join(escape.markdown(escape.line(line)) for line in _about(one))
            lines.append(f"- {one['state']}: {said}; {about} {mark(one)}")
        elif one["decided"] and _week(one["decided"]["on"]) == week:
            lines.append(f"- {one['state']}: {said}; {escape.markdown(escape.line('; '.join(_settled(one))))}")
        elif one["over_since"] and one["name"] not in over:
            lines.append(f"- fixed: {said} <!-- pipeprof-over:{one['name']} -->")
    still = sum(one["state"] == OPEN for one in content["alerts"])
    head = f"## {week} ({escape.line(content['source'])})"
    section = "\n".join([head, "", *(lines or ["- nothing new"]), f"- {still} open", ""])
    start = earlier if earlier.strip() else "# Alerts\n\n"
    return f"{start.rstrip()}\n\n{section}" + (f"\n{rest.lstrip()}" if rest.strip() else "")


def _split(log: str, week: str) -> tuple[str, str]:
    """What stands before the section of the week, and behind it."""
    heads = list(_WEEK.finditer(log))
    for at, head in enumerate(heads):
        if head[1] == week:
            end = heads[at + 1].start() if at + 1 < len(heads) else len(log)
            return log[: head.start()], log[end:]
    return log, ""


def _week(day: str) -> str:
    year, week, _ = dt.date.fromisoformat(day[:10]).isocalendar()
    return f"{year}-W{week:02}"
