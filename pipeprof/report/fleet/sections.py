"""The content of a report on many runs as sections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipeprof.report.answer.shape import times
from pipeprof.report.document import Document
from pipeprof.report.sections.block import Block, Section
from pipeprof.report.words import suggestions
from pipeprof.report.words.names import STAGE_LIMITS
from pipeprof.report.words.verdict import phrase
from pipeprof.units import format_change, format_count, format_ns, format_ratio
from pipeprof.verdict.cause import Cause

Row = dict[str, Any]

MOST_LEFT_OUT = 10
SHORT = 10  # digits of a revision
STATES = ("complete", "partial", "failed", "running", "damaged")


def document(content: Row) -> Document:
    """What it is of, and all that there is to say."""
    top = int(content["top"])
    title = f"{format_count(content['runs'], 'run')} in {', '.join(content['roots'])}"
    return Document(title, [
        _runs(content), _leads(content, top), _waits(content, top), _causes(content, top), _fixes(content, top),
        _regressions(content, top), _versions(content, top), _machines(content, top), _left_out(content),
    ])  # fmt: skip


def hours(number: float | None) -> str:
    """Rank-hours as text, less than one in minutes or seconds; `-` for None."""
    if number is None:
        return "-"
    if number >= 1:
        return f"{number:,.{0 if number >= 100 else 1}f} h"
    return f"{60 * number:.1f} min" if number >= 1 / 60 else format_ns(3.6e12 * number)


def _runs(content: Row) -> Section:
    section = Section("Runs")
    counts = {row["state"]: row["runs"] for row in content["states"]}
    by_state = [f"{counts[state]:,} {state}" for state in STATES if state in counts]
    section.notes.append(", ".join(by_state) or "no run was found")
    if content["twice"]:
        verb = "is" if content["twice"] == 1 else "are"
        section.notes.append(f"{format_count(content['twice'], 'run')} {verb} there twice and counted once")
    trained, waited = _sum(content, "rank_hours"), _sum(content, "wait_hours")
    measured = sum(row["measured"] for row in content["states"])
    if trained is not None:
        waiting = ""
        if waited is not None and trained:
            waiting = f", {format_ratio(waited / trained)} of it waiting for data: {hours(waited)}"
        section.strong.append(f"{format_count(measured, 'run')} trained for {hours(trained)} of rank time{waiting}")
    return section


def _sum(content: Row, name: str) -> float | None:
    measured = [row[name] for row in content["states"] if row[name] is not None]
    return sum(measured) if measured else None


def _leads(content: Row, top: int) -> Section:
    """What the runs' own verdicts say first."""
    section = Section("What holds them up")
    rows = [
        [
            phrase(Cause(row["cause"], row["detail"] or "")), f"{row['runs']:,}", f"{row['workloads']:,}",
            hours(row["rank_hours"]), hours(row["lost_hours"]),
        ]
        for row in content["leads"][:top]
    ]  # fmt: skip
    if rows:
        head = ("cause", "runs", "workloads", "rank time", "it costs")
        section.blocks.append(Block(head, rows, frozenset(range(1, 5)), spare=(2,)))
        section.notes += _more(content["leads"], top)
    return section


def _waits(content: Row, top: int) -> Section:
    section = Section("Waiting for data")
    rows = [
        [
            row["workload"] or "-", f"{row['runs']:,}", f"{row['input_bound']:,}", hours(row["rank_hours"]),
            hours(row["wait_hours"]), format_ratio(row["data_wait_share"]),
        ]
        for row in content["waits"][:top]
    ]  # fmt: skip
    if rows:
        head = ("workload", "runs", "input-bound", "rank time", "waiting", "share")
        section.blocks.append(Block(head, rows, frozenset(range(1, 6)), spare=(3,)))
        section.notes += _more(content["waits"], top)
    return section


def _operator(row: Row) -> str:
    """What an operator does, else its type; without either the verdict named none."""
    return row["op_name"] or row["op_type"] or "not named"


def _causes(content: Row, top: int) -> Section:
    section = Section("What they wait for")
    rows = [
        [
            _operator(row), row["code"] or "-", STAGE_LIMITS.get(row["op_kind"], row["op_kind"] or "-"),
            f"{row['runs']:,}", f"{row['workloads']:,}", hours(row["wait_hours"]),
        ]
        for row in content["causes"][:top]
    ]  # fmt: skip
    if rows:
        head = ("operator", "code", "it is", "runs", "workloads", "waiting")
        section.blocks.append(Block(head, rows, frozenset({3, 4, 5}), spare=(2, 4)))
        section.notes += _more(content["causes"], top)
    return section


def _fixes(content: Row, top: int) -> Section:
    section = Section("What changes would have saved")
    fixes = content["fixes"]
    if not fixes:
        return section
    section.strong.append(f"{hours(fixes[0]['all_hours'])} of rank time, as predicted for each run")
    rows = [
        [
            suggestions.title(row["advice"], _operator(row)), row["code"] or "-", f"{row['runs']:,}",
            times(row["median_gain"]),
            hours(row["saved_hours"]), _bounds(row),
        ]
        for row in fixes[:top]
    ]  # fmt: skip
    head = ("change", "where", "runs", "times as fast", "saved", "at least to at most")
    section.blocks.append(Block(head, rows, frozenset({2, 3, 4, 5}), spare=(5, 3)))
    section.notes += _more(fixes, top)
    return section


def _bounds(row: Row) -> str:
    if row["least_hours"] is None or row["most_hours"] is None:
        return "-"
    return f"{hours(row['least_hours'])} to {hours(row['most_hours'])}"


def _regressions(content: Row, top: int) -> Section:
    section = Section("Slower since")
    if content["regressions"] is None:
        section.notes.append(f"changes of level were not looked for: {content['regressions_not_looked_for']}")
        return section
    rows = [
        [
            row["week"] or "-", row["workload"] or "-", row["mindspore"] or "-", format_change(row["ratio"]),
            f"{format_ns(row['before_ns'])} -> {format_ns(row['after_ns'])}", (row["revision"] or "-")[:SHORT],
            hours(row["lost_hours"]),
        ]
        for row in content["regressions"][:top]
    ]  # fmt: skip
    if rows:
        head = ("week of", "workload", "MindSpore", "step", "from -> to", "revision", "lost")
        section.blocks.append(Block(head, rows, frozenset({3, 4, 6}), spare=(2, 4)))
        section.notes += _more(content["regressions"], top)
    return section


def _versions(content: Row, top: int) -> Section:
    section = Section("Slower with a version")
    rows = [
        [
            row["workload"] or "-", f"{row['before']} -> {row['mindspore']}", format_change(row["ratio"]),
            f"{row['before_runs']:,} and {row['runs']:,}", row["machine"] or "-",
        ]
        for row in content["versions"][:top]
    ]  # fmt: skip
    if rows:
        section.notes.append("medians of the runs beside each other; what else changed with the version is in them")
        section.notes += _more(content["versions"], top)
        section.blocks.append(Block(("workload", "MindSpore", "step", "runs", "machine"), rows, frozenset({2, 3})))
    return section


def _machines(content: Row, top: int) -> Section:
    section = Section("Slow machines")
    rows = [
        [
            row["host"], f"{row['slow_jobs']:,} of {row['jobs']:,}", format_change(row["median_ratio"]),
            f"{row['runs']:,}", hours(row["lost_hours"]),
        ]
        for row in content["machines"][:top]
    ]  # fmt: skip
    if rows:
        section.blocks.append(Block(("host", "slow in jobs", "step", "runs", "lost"), rows, frozenset(range(1, 5))))
        section.notes += _more(content["machines"], top)
    elif content["machines_compared"]:
        count = format_count(content["machines_compared"], "host")
        section.notes.append(f"none of {count} is slow in most of its jobs")
    return section


def _left_out(content: Row) -> Section:
    """The runs that say less than they should, and the folders that say nothing, each with its reason."""
    section = Section("Not complete, or without a step")
    for sentences in (
        [f"cannot be listed: {folder}" for folder in content["unlisted"]],
        [_said(row) for row in content["left_out"]],
    ):
        section.notes += sentences[:MOST_LEFT_OUT]
        section.notes += _more(sentences, MOST_LEFT_OUT)
    return section


def _said(row: Row) -> str:
    unknown = "no reason is known" if row["measured"] else "no training step was seen"
    reason = row["problem"] or ("being recorded" if row["state"] == "running" else unknown)
    return f"{row['state']}: {row['run']}: {reason}" + (" (what was measured counts)" if row["measured"] else "")


def _more(rows: Sequence[Row] | Sequence[str], shown: int) -> Iterator[str]:
    if len(rows) > shown:
        yield f"{len(rows) - shown:,} more with --format json"
