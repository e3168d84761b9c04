"""A comparison for the terminal: one sentence, the metrics, what explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.compare import trust as compare_trust
from pipeprof.report.compare import why
from pipeprof.report.compare.rows import FAMILIES, LONGEST_NAME, clean, interval, reason, seen, values
from pipeprof.report.document import Document
from pipeprof.report.document import text as text_of
from pipeprof.report.sections import Block, Section
from pipeprof.units import format_change, format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    Content = dict[str, Any]

STYLES = {
    "regressed": "bold red", "improved": "green", "unchanged": "", "acknowledged": "yellow",
    "inconclusive": "yellow", "incomparable": "bold magenta", "missing": "bold magenta",
}  # fmt: skip
MOST_DIFFERENCES = 12
MOST_COUNTS = 10


def document(content: Content) -> Document:
    """The verdict, what was compared, the metrics that count, and what explains it."""
    primary, informing = (_of_family(content, family) for family in ("primary", "informing"))
    lines = dict.fromkeys([*_reasons(primary), *seen(content), *content["notes"]])
    more = [f"note: {clean(line)}" for line in lines if line not in content["headline"]]
    notes = [*more, *map(clean, compare_trust.basis(content))]
    edits = [f"note: {clean(line)}" for line in compare_trust.edits(content)]
    explained = [_explanation(content)] if content["explanation"] else []
    return Document(
        clean(content["headline"]),
        [
            Section("", edits, unbroken=True),
            Section("", notes=[_side(name, content[name]) for name in ("base", "new")], unbroken=True),
            Section(
                "",
                blocks=[*_metrics(primary), *_metrics(informing, FAMILIES["informing"]), *_counts(content)],
            ),
            Section("Conditions that differ", blocks=_differences(content["fingerprint"]["differences"])),
            Section(why.title(content), blocks=explained),
            Section("", notes=notes, unbroken=True),
        ],
        STYLES[content["verdict"]] or "bold",
    )


def text(content: Content) -> str:
    """The same as plain text, 120 columns wide."""
    return text_of(document(content))


def _of_family(content: Content, family: str) -> list[Content]:
    return [metric for metric in content["metrics"] if metric["family"] == family]


def _reasons(metrics: Sequence[Content]) -> list[str]:
    """Each reason once, with the metrics it is given for; that of all of them alone."""
    found: dict[str, list[str]] = {}
    for metric in metrics:
        if reason(metric):
            found.setdefault(reason(metric), []).append(metric["name"])
    return [f"{', '.join(names)}: {said}" if len(names) < len(metrics) else said for said, names in found.items()]


def _side(name: str, side: Content) -> str:
    revision = (side["git"] or {}).get("revision")
    at = f", revision {clean(revision)[:10]}" if revision else ""
    reps = format_count(side["reps"], "repetition")
    return clean(f"{name}: {clean(side['label'], LONGEST_NAME)} ({side['kind']}, {reps}{at})")


def _metrics(metrics: Sequence[Content], *caption: str) -> list[Block]:
    rows = []
    for metric in metrics:
        low, high = metric["ci_low"], metric["ci_high"]
        rows.append(
            [
                clean(metric["name"], LONGEST_NAME),
                *values(metric),
                format_change(metric["ratio"]),
                interval(low, high) if low is not None and high is not None else "-",
                "-" if metric["p_value"] is None else f"{metric['p_value']:.2g}",
                metric["verdict"],
            ]
        )
    head = ("metric", "base", "new", "change", "95 % interval", "p", "verdict")
    return [Block(head, rows, frozenset(range(1, 6)), spare=(5, 4), styles=STYLES, caption=caption)] if rows else []


def _counts(content: Content) -> list[Block]:
    """Exact counts and sizes that changed: they do not vary, so that a change of 0.5 % is one.

    Those of what only one side has are a number: names of another version of a library would fill the screen. What the
    explanation names, with its executions, does not stand here again.
    """
    exact = _of_family(content, "deterministic")
    alone = sum(one["verdict"] == "missing" for one in exact)
    explained = {f"count/{cause['name']}" for cause in content["explanation"] if cause["kind"] == "operator"}
    changed = [one for one in exact if one["verdict"] not in ("unchanged", "inconclusive", "missing")]
    changed = [one for one in changed if one["name"] not in explained]
    more = f", {MOST_COUNTS} of {len(changed)}" if len(changed) > MOST_COUNTS else ""
    more += f" ({alone} more on one side alone)" if alone else ""
    return _metrics(changed[:MOST_COUNTS], f"Exact counts and sizes that changed{more}, not part of the verdict")


def _explanation(content: Content) -> Block:
    rows = [list(line.cells) for line in why.lines(content)]
    return Block(("what", "base", "new", "change", "of the step's change"), rows, frozenset(range(1, 5)))


def _differences(found: Sequence[Content]) -> list[Block]:
    rows = [
        [
            *(clean(entry[key], LONGEST_NAME) for key in ("name", "base", "new")),
            "cannot be compared" if entry["hard"] else "noted",
        ]
        for entry in found[:MOST_DIFFERENCES]
    ]
    more = [f"and {len(found) - MOST_DIFFERENCES} more"] if len(found) > MOST_DIFFERENCES else []
    return [Block(("condition", "base", "new", ""), rows, caption=more)] if rows else []
