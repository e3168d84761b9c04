"""A comparison as a document: one sentence, the metrics, what explains it; what is not read first is folded away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.compare import limits, rows, trust
from pipeprof.report.compare.rows import FAMILIES, LONGEST_NAME, ORDER, clean
from pipeprof.report.document import Document
from pipeprof.report.document import text as text_of
from pipeprof.report.sections import Block, Section
from pipeprof.report.sections.block import filled
from pipeprof.report.words.comparison import metric_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeprof.report.charts.chart import Chart

    Content = dict[str, Any]

STYLES = {
    "regressed": "bold red", "improved": "green", "unchanged": "", "acknowledged": "yellow",
    "inconclusive": "yellow", "incomparable": "bold magenta", "missing": "bold magenta",
}  # fmt: skip
MOST_DIFFERENCES = 12
MOST_COUNTS = 10
MOST_UNSORTED = 8  # rows of a table that is seen at a glance
HEAD = ("metric", "base", "new", "change", "95 % interval", "p", "repetitions", "verdict", "reason")


def text(content: Content, form: str = "terminal") -> str:
    """The comparison in a format of `document.text`."""
    return text_of(document(content), form)


def document(content: Content, most: int | None = None) -> Document:
    """The verdict, what was compared, the metrics that count, and what explains it; the rest is folded away.

    A table that is folded away has at most `most` rows.
    """
    families = dict(rows.families(content))
    primary, informing, exact = (families.pop(FAMILIES[one], []) for one in ("primary", "informing", "deterministic"))
    changed, caption = _changed(content, exact)
    families[FAMILIES["deterministic"]] = [one for one in exact if one not in changed]
    metrics = [
        *metric_blocks(primary),
        *metric_blocks(informing, FAMILIES["informing"]),
        *metric_blocks(changed, caption),
    ]
    return Document(
        clean(content["headline"] or content["verdict"]),
        [
            Section(trust.title(content), notes=[*map(clean, trust.edits(content))], unbroken=True),
            Section("", notes=rows.sides(content), unbroken=True),
            Section("", blocks=metrics),
            *_differences(rows.differences(content)),
            Section(rows.why_title(content), blocks=_explanation(content), picture=_picture(content)),
            Section("What limits it now", notes=[*map(clean, limits.sentences(content.get("limits")))]),
            Section("Charts", charts=lambda: _charts(content)),
            Section("Notes", notes=_notes(content, _reasons([*primary, *informing])), unbroken=True),
            *(_folded(family, found, most) for family, found in families.items()),
        ],
        STYLES[content["verdict"]] or "bold",
    )


def metric_blocks(metrics: Sequence[Content], *caption: str, whole: bool = False) -> list[Block]:
    """A table of metrics; a `whole` one gives the reasons, too. Repetitions stand there where they are not the same."""
    counted = [f"{one.get('reps_base', 0)} + {one.get('reps_new', 0)}" for one in metrics]
    alike = len(set(counted)) == 1
    cells = []
    for metric, repetitions in zip(metrics, counted, strict=True):
        p_value = metric.get("p_value")
        change, interval = rows.change_and_interval(metric)
        cells.append(
            [
                clean(metric_name(metric["name"]), LONGEST_NAME),
                *rows.values(metric),
                change,
                interval or "-",
                "-" if p_value is None else f"{p_value:.2g}",
                "-" if alike else repetitions,
                metric["verdict"],
                (rows.reason(metric) if whole else "") or "-",
            ]
        )
    sorted_by = {"base": "base", "new": "new", "change": "ratio"} if len(cells) > MOST_UNSORTED else {}
    numbers = {title: [one.get(key) for one in metrics] for title, key in sorted_by.items()}
    block = filled(HEAD, cells, (0, 7, 8), (6, 5, 4), styles=STYLES, caption=caption, numbers=numbers)
    return [block] if cells else []


def _folded(family: str, metrics: Sequence[Content], most: int | None) -> Section:
    found = [one["verdict"] for one in metrics]
    counts = ", ".join(f"{found.count(word)} {word}" for word in ORDER if word in found)
    shown = metrics[:most]
    reasons = list({rows.reason(one) for one in metrics})
    said = reasons if len(reasons) == 1 and reasons[0] else []  # one of all is said once
    more = [f"{len(metrics) - len(shown)} more are in the full report."] if len(shown) < len(metrics) else []
    blocks = metric_blocks(shown, whole=not said)
    return Section(f"{family}: {counts}", notes=[*said, *more], blocks=blocks, folded=True)


def _reasons(metrics: Sequence[Content]) -> list[str]:
    """Each reason once, with the metrics it is given for; that of all of them alone."""
    found: dict[str, list[str]] = {}
    for metric in metrics:
        if rows.reason(metric):
            found.setdefault(rows.reason(metric), []).append(metric_name(metric["name"]))
    return [f"{', '.join(names)}: {said}" if len(names) < len(metrics) else said for said, names in found.items()]


def _changed(content: Content, exact: Sequence[Content]) -> tuple[list[Content], str]:
    """Exact counts and sizes that changed, and what stands above them: they do not vary, so that 0.5 % is a change.

    Those of what only one side has are a number: names of another version of a library would fill the screen. What the
    explanation names, with its executions, does not stand here again.
    """
    alone = sum(one["verdict"] == "missing" for one in exact)
    explained = {f"count/{cause['name']}" for cause in content["explanation"] if cause["kind"] == "operator"}
    changed = [one for one in exact if one["verdict"] not in ("unchanged", "inconclusive", "missing")]
    changed = [one for one in changed if one["name"] not in explained and one["base"] != one["new"]]
    more = f", {MOST_COUNTS} of {len(changed)}" if len(changed) > MOST_COUNTS else ""
    more += f" ({alone} more on one side alone)" if alone else ""
    return changed[:MOST_COUNTS], f"Exact counts and sizes that changed{more}, not part of the verdict"


def _charts(content: Content) -> Sequence[Chart]:
    from pipeprof.report.charts.comparison import charts_of  # noqa: PLC0415 - charts are slow to import

    return charts_of(content)


def _picture(content: Content) -> Callable[[], Sequence[str]] | None:
    """Both pipelines as one, where both are known; a baseline keeps none."""
    from pipeprof.report.pictures.compared import pipelines_of  # noqa: PLC0415 - a page alone needs it

    known = content.get("pipelines") or {}
    return (lambda: pipelines_of(known)) if all(known.get(side) for side in ("base", "new")) else None


def _explanation(content: Content) -> list[Block]:
    lines = [list(line) for line in rows.lines(content)]
    head = ("what", "base", "new", "of the step's change")
    return [Block(head, lines, frozenset(range(1, 4)))] if lines else []


def _differences(found: Sequence[Sequence[str]]) -> list[Section]:
    """The first ones; the others are folded away."""
    title, head, cells = "Conditions that differ", ("condition", "base", "new", ""), list(map(list, found))
    first, others = cells[:MOST_DIFFERENCES], cells[MOST_DIFFERENCES:]
    if not others:
        return [Section(title, blocks=[Block(head, first)])] if first else []
    return [
        Section(f"{title}, {len(first)} of {len(cells)}", blocks=[Block(head, first)]),
        Section(f"{len(others)} more conditions that differ", blocks=[Block(head, others)], folded=True),
    ]


def _notes(content: Content, reasons: Sequence[str]) -> list[str]:
    """Each once, without what the headline says; then what it was judged by."""
    found = dict.fromkeys(
        [*reasons, *rows.seen(content), *content["notes"], *rows.looks(content), *trust.measured(content)]
    )
    return [clean(one) for one in (*(one for one in found if one not in content["headline"]), *trust.basis(content))]
