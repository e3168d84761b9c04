"""What a bisection found, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeprof.report.document import Document
from pipeprof.report.sections import Block, Section
from pipeprof.report.words.comparison import metric_name
from pipeprof.units import format_change, format_count, format_ratio
from pipeprof.verdict.gate.policy import Policy

Row = dict[str, Any]

SHORT = 10  # digits of a revision
MOST_ROWS = 5
HEAD = ("commit", "probability", "runs", "subject")


def document(content: Row) -> Document:
    """The answer, then the likeliest commits."""
    answer, *notes = _sentences(content)
    section = Section("", notes=notes)
    if content["verdict"] != "no_change":
        rows = [_row(one) for one in content["candidates"][:MOST_ROWS]]
        section.blocks.append(Block(HEAD, rows, frozenset({1, 2}), spare=(2,)))
    return Document(answer, [section])


def _row(one: Row) -> list[str]:
    return [one["revision"][:SHORT], _share(one["probability"]), str(one["runs"]), one["subject"]]


def _sentences(content: Row) -> Iterator[str]:
    metric = metric_name(content["metric"])
    if content["verdict"] == "no_change":
        yield (
            f"No change: {metric} is the same at {_named(content['good'])} and at {_named(content['bad'])} "
            f"(probability {_share(content['no_change_probability'])})"
        )
    else:
        yield f"{_answer(content)}: {metric} {format_change(content['ratio'])}{_because(content)}"
        if content["headline"]:
            sides = content["compared"]
            yield f"{sides['before']} runs before it against {sides['after']} after it: {content['headline']}"
    made, over = format_count(content["runs"], "run"), format_count(content["commits"], "commit")
    ends = " to ".join(content[end]["revision"][:SHORT] for end in ("good", "bad"))
    took = f"{content['session']['seconds'] / 60:.1f} minutes, in `{content['session']['folder']}`"
    yield f"{made} over {over}, {ends}, {took}"
    if content["stopped"] == "budget":
        yield "the budget ended before it was decided: the same command with more --budget or --most-runs goes on"
    for one in content["cannot_be_measured"]:
        yield f"{_named(one)} could not be measured: its command failed, or ran without {metric}"


def _answer(content: Row) -> str:
    if content["verdict"] == "found":
        return f"{_named(content['commit'])} made it {_worse(content)} (probability {_share(content['probability'])})"
    around = content["range"]
    first, last = (one["revision"][:SHORT] for one in (around[0], around[-1]))
    sure, commits = _share(sum(one["probability"] for one in around)), format_count(len(around), "commit")
    return f"One of {commits} made it {_worse(content)}, {first} to {last} (probability {sure})"


def _worse(content: Row) -> str:
    return "slower" if Policy().rule(content["metric"]).unit in ("ns", "s") else "larger"


def _because(content: Row) -> str:
    return f", {content['because']}" if content["because"] else ""


def _named(one: Row) -> str:
    return f"{one['revision'][:SHORT]} `{one['subject']}`"


def _share(number: float) -> str:
    """A probability; never 100 %, for it is not."""
    return "more than 99.9 %" if number > 0.999 else "less than 0.1 %" if number < 0.001 else format_ratio(number)
