"""A history in each format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipeprof.errors import UsageError, did_you_mean
from pipeprof.record.baseline_summary import format_value
from pipeprof.report.document import Document
from pipeprof.report.sections import Block, Section
from pipeprof.report.words.comparison import METRICS, differing, metric_name
from pipeprof.units import format_change, format_count, format_minute

Row = dict[str, Any]

HEAD = ("metric", "machine", "measured", "from", "to", "level first", "level now", "changes")
SHORT = 10  # digits of a revision
MOST_COMMITS = 5
MOST_DIFFERENCES = 3


def only(content: Row, names: Sequence[str]) -> Row:
    """The series of these metrics; all for none. Raises UsageError for a name that there is not."""
    measured = sorted({one["metric"] for one in content["series"]})
    for name in names:
        if name not in measured:
            raise UsageError(f"no metric `{name}` was measured", did_you_mean(name, measured))
    chosen = [one for one in content["series"] if not names or one["metric"] in names]
    return content | {"series": chosen}


def document(content: Row) -> Document:
    """The changes with their commits and causes, then a row for each series."""
    from pipeprof.report.charts import history  # noqa: PLC0415 - they need what is below

    series = _series(content["series"])
    title = f"History of {content['source']}: {format_count(content['measurements'], 'measurement')}"
    return Document(title, [
        *(Section("", [sentence], below) for sentence, below in _changes(content)),
        Section("", notes=_notes(content)),
        Section("Series", blocks=[series]),
        Section("Charts", charts=(lambda: history.charts_of(content)) if content["series"] else None),
    ])  # fmt: skip


def _series(series: list[Row]) -> Block:
    """A row for each; where there are several workloads, with its own."""
    if not _several(series):
        return Block(HEAD, [_row(one) for one in series], frozenset({2, 5, 6}), spare=(1, 3, 4))
    rows = [[one["workload"], *_row(one)] for one in series]
    return Block(("workload", *HEAD), rows, frozenset({3, 6, 7}), spare=(2, 4, 5))


def _several(series: list[Row]) -> bool:
    return len({one["workload"] for one in series}) > 1


def name_of(series: Row) -> str:
    """What people call the metric."""
    return metric_name(str(series["metric"]))


def value(series: Row, number: float) -> str:
    """A value with its unit; a ratio to the anchor as a plain number."""
    return f"{number:.3f}" if series["anchor"] else format_value(series["metric"], number)


def _row(one: Row) -> list[str]:
    points, changes = one["points"], one["changes"]
    first = changes[0]["before"] if changes else one["median"]
    last = changes[-1]["after"] if changes else one["median"]
    count = str(len(changes)) if one["enough"] else "too few"
    return [
        name_of(one), one["machine"], str(len(points)), _day(points[0]["at"]), _day(points[-1]["at"]),
        value(one, first), value(one, last), count,
    ]  # fmt: skip


def _day(at: str | None) -> str:
    """The date of a time, where the user is."""
    return _minute(at)[:10]


def _minute(at: str | None) -> str:
    if not at:
        return "-"
    try:
        return format_minute(at)
    except ValueError:  # another program's way to write one
        return at


def _changes(content: Row) -> Iterator[tuple[str, list[str]]]:
    """Each change as a sentence and the lines below it, the latest first."""
    pairs = [(change, one) for one in content["series"] for change in one["changes"]]
    for change, one in sorted(pairs, key=lambda pair: pair[0]["at"] or "", reverse=True):
        because = f", {change['because']}" if change["because"] else ""
        levels = f"{value(one, change['before'])} -> {value(one, change['after'])}"
        of = f"{one['workload']}: " if _several(content["series"]) else ""
        below = [*_range(change["range"]), *_bisection(change, one["metric"])]
        yield f"{of}{name_of(one)} {format_change(change['ratio'])} ({levels}){because}", below


def _range(span: Row) -> Iterator[str]:
    if span["good"] is None or span["bad"] is None:
        good = _minute(span["good_at"]) if span["good_at"] else "the first measurement"
        yield f"between {good} and {_minute(span['bad_at'])}; the commits are not known"
        return
    good, bad = span["good"][:SHORT], span["bad"][:SHORT]
    edited = ", or uncommitted changes" if span["uncommitted"] else ""
    if span["same_revision"]:
        code = "uncommitted code, " if edited else ""
        yield f"{bad} was measured on both sides: no commit, but {code}the data, the machine or its load changed"
        return
    if span["commits"] is None:
        yield f"after {good} ({_day(span['good_at'])}), at latest {bad} ({_day(span['bad_at'])}){edited}"
        return
    if span["count"] == 0:
        yield f"after {good}, at latest {bad}{edited}: no commit lies between them, was the branch changed?"
        return
    yield f"{format_count(span['count'], 'commit')} after {good} up to {bad}{edited}:"
    for commit in span["commits"][:MOST_COMMITS]:
        yield f"  {commit['revision'][:SHORT]} {commit['subject']}"
    if span["count"] > MOST_COMMITS:
        yield f"  and {span['count'] - MOST_COMMITS} more"


def _bisection(change: Row, metric: str) -> Iterator[str]:
    """How to find the one of several commits: `pipeprof bisect` finds what a training has more of than before."""
    span = change["range"]
    if (span.get("count") or 0) > 1 and change["ratio"] > 1 and metric in METRICS:
        good, bad = span["good"][:SHORT], span["bad"][:SHORT]
        of = "" if metric == "step_time_median" else f" --metric {metric}"
        yield f"pipeprof bisect {good} {bad}{of} -- COMMAND finds the one"


def _notes(content: Row) -> list[str]:
    """What else to know: where conditions changed, series that are too short, runs that could not be read."""
    sentences = [_conditions(one) for one in content["conditions"]]
    if any(not one["enough"] for one in content["series"]):
        sentences.append("changes are looked for in series of 10 measurements and more")
    elif not any(one["changes"] for one in content["series"]):
        sentences.append("no change of level was found")
    return sentences + [f"left out: `{one['path']}`: {one['problem']}" for one in content["left_out"]]


def _conditions(one: Row) -> str:
    what = f": {differing(one['differences'], MOST_DIFFERENCES)}" if one["differences"] else ""
    return f"{_day(one['at'])}: another machine or other versions, so another series{what}"
