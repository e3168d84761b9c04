"""A comparison as GitHub-flavoured Markdown. Names and sentences are text: no markup, link or mention comes through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof import escape
from pipeprof.report.compare import rows, why
from pipeprof.report.compare import trust as compare_trust

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_RIGHT = (1, 2, 3)
MOST_FOLDS = 2  # one within the other


def text(content: dict[str, Any], *, secondary: int | None = None) -> str:
    """The whole comparison; with `secondary` at most so many rows of the metrics that are not primary."""
    lines = [f"## {plain(rows.title(content))}", "", f"**{plain(content.get('headline') or content['verdict'])}**", ""]
    edits = compare_trust.edits(content)
    if edits:
        lines += [f"### {compare_trust.title(content)}", "", *(f"- {plain(one)}" for one in edits), ""]
    causes = why.lines(content)
    if causes:
        lines += [f"### {why.title(content)}", "", *(f"- {plain(one.text)}" for one in causes), ""]
    for family, metrics in rows.families(content):
        lines += _family(family, metrics, secondary)
    lines += _about(content)
    return "\n".join(lines).rstrip() + "\n"


def table(head: Sequence[str], body: Iterable[Sequence[str]], right: Sequence[int] = _RIGHT) -> list[str]:
    """A table's lines; the first cell of each row is a name and set as code."""
    marks = ["---:" if index in right else "---" for index in range(len(head))]
    lines = [_row(head), _row(marks)]
    for first, *others in body:
        lines.append(_row([name(first, in_table=True), *(plain(cell) for cell in others)]))
    return lines


def plain(words: object) -> str:
    """Text as text; spans between two backticks stay code."""
    return escape.markdown(rows.clean(words))


def name(words: object, *, in_table: bool = False) -> str:
    """A name as code. Inside a table a bar must be escaped even there."""
    return escape.markdown_code(rows.clean(words, rows.LONGEST_NAME), in_table=in_table)


def cut(whole: str, limit: int, note: str) -> str:
    """The text, or as many of its first lines as fit into `limit` bytes together with the note."""
    if len(whole.encode()) <= limit:
        return whole
    room = limit - len(note.encode()) - MOST_FOLDS * len("\n</details>") - len("\n\n\n")
    kept: list[str] = []
    for line in whole.splitlines():
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    folded = sum(line.startswith("<details>") for line in kept) - kept.count("</details>")
    return "\n".join([*kept, *["</details>"] * folded, "", note]) + "\n"


def _family(family: str, metrics: Sequence[dict[str, Any]], most: int | None) -> list[str]:
    """A family's table. What is not primary is folded away, unless something of it counts."""
    first = family == rows.FAMILIES["primary"]
    if family == rows.FAMILIES["deterministic"]:
        changed = [one for one in metrics if one["verdict"] in rows.FAILURES]
        same = [one for one in metrics if one["verdict"] not in rows.FAILURES]
        if changed and same:
            return [*_family(family, changed, most), *_family(family, same, most)]
    shown = metrics if first else metrics[:most]
    lines = [*table(rows.HEAD, [rows.cells(one) for one in shown]), ""]
    if len(shown) < len(metrics):
        lines += [f"{len(metrics) - len(shown)} more are in the full report.", ""]
    if family != rows.FAMILIES["secondary"]:
        lines += _reasons(shown)
    if first or any(one["verdict"] in rows.FAILURES for one in metrics):
        return [f"### {family}", "", *lines]
    found = [one["verdict"] for one in metrics]
    counts = ", ".join(f"{found.count(word)} {word}" for word in rows.ORDER if word in found)
    return [f"<details><summary>{family}: {counts}</summary>", "", *lines, "</details>", ""]


def _reasons(metrics: Iterable[dict[str, Any]]) -> list[str]:
    given = [
        f"- {name(one['name'])}: {plain(rows.reason(one))}"
        for one in metrics
        if rows.reason(one) and one["verdict"] not in ("unchanged", "improved")
    ]
    return [*given, ""] if given else []


def _about(content: dict[str, Any]) -> list[str]:
    differences = rows.differences(content)
    lines: list[str] = []
    if differences:
        head = ("condition", "base", "new", " ")
        lines += ["### Conditions that differ", "", *table(head, differences, ()), ""]
    notes = [*(content.get("notes") or []), *filter(None, [rows.looks(content)])]
    lines += ["### Notes", "", *(f"- {plain(one)}" for one in notes), ""] if notes else []
    basis = compare_trust.basis(content)
    lines += ["### Judged by", "", *(f"- {plain(one)}" for one in basis), ""] if basis else []
    return [*lines, *(f"{plain(one)}  " for one in rows.sides(content))]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
