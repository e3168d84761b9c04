"""A comparison as one HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.charts import MISSING, comparison, is_installed
from pipeprof.report.charts.script import bundle, figure
from pipeprof.report.compare import rows, why
from pipeprof.report.compare import trust as compare_trust
from pipeprof.report.page import CHARTS, SORTABLE, page, table
from pipeprof.report.words.comparison import metric_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 160  # of an interval's picture, in pixels
MOST_UNSORTED = 8  # rows of a table that is seen at a glance
LEAST_SPAN = 0.05  # the picture reaches at least 5 % to either side

_STYLE = """
.wide td:first-child { min-width: 10em; }
.regressed, .missing, .incomparable { color: var(--bad); font-weight: 600; }
.improved { color: var(--good); font-weight: 600; }
.inconclusive, .acknowledged { color: var(--unsure); font-weight: 600; }
"""
_COLOUR = {"regressed": "var(--bad)", "improved": "var(--good)", "inconclusive": "var(--unsure)"}


def text(content: dict[str, Any]) -> str:
    """The page; every name and sentence is escaped."""
    parts = [
        f'<p class="headline {_class(content["verdict"])}">{_words(content.get("headline") or content["verdict"])}</p>',
        *_listed(compare_trust.title(content), compare_trust.edits(content)),
        *_listed(why.title(content), [line.text for line in why.lines(content)]),
    ]
    span = _span(content["metrics"])
    drawn = is_installed()
    if drawn:
        parts += ["<h2>Charts</h2>", *(line for chart in comparison.charts_of(content) for line in figure(chart))]
    else:
        parts.append(f"<p>{MISSING}</p>")
    for name, metrics in rows.families(content):
        parts += [f"<h2>{escape(name)}</h2>", *_metrics(metrics, span, sortable=drawn)]
    parts += _about(content)
    return page(rows.title(content), parts, CHARTS + SORTABLE + _STYLE, bundle() if drawn else "")


def _metrics(metrics: Sequence[dict[str, Any]], span: float, *, sortable: bool) -> list[str]:
    body = []
    for one in metrics:
        name, base, new, change, verdict, repetitions = rows.cells(one)
        reason = f"<br><small>{_words(rows.reason(one))}</small>" if rows.reason(one) else ""
        values = ((base, one.get("base")), (new, one.get("new")), (change, one.get("ratio")))
        numbers = "".join(f'<td class="number"{_order(of)}>{escape(cell)}</td>' for cell, of in values)
        body.append(
            f"<tr><td>{words(metric_name(name))}</td>{numbers}<td>{_picture(one, span)}</td>"
            f'<td><span class="{_class(verdict)}">{escape(verdict)}</span>{reason}</td>'
            f'<td class="number">{escape(repetitions)}</td></tr>'
        )
    head = ("metric", "base", "new", "change", f"-{span:.0%} to +{span:.0%}", "verdict", "repetitions")
    lines = table(head, body, {1, 2, 3} if sortable else ())
    if sortable and len(metrics) > MOST_UNSORTED:
        lines[0] = '<table class="sortable">'
    return ['<div class="wide" tabindex="0">', *lines, "</div>"]


def _order(value: object) -> str:
    """What a cell is sorted by, where it is a number."""
    return f' data-value="{value}"' if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _picture(metric: dict[str, Any], span: float) -> str:
    """The 95 % interval as a bar and the ratio as a mark; the line in the middle is "no change"."""
    ratio = metric.get("ratio")
    if ratio is None:
        return ""
    low, high = (ratio if metric.get(key) is None else metric[key] for key in ("ci_low", "ci_high"))
    left, right, at = (_place(one, span) for one in (low, high, ratio))
    colour = _COLOUR.get(metric["verdict"], "currentColor")
    return (
        f'<svg width="{WIDTH}" height="14" role="img" aria-label="{escape(rows.change(metric))}">'
        f'<line x1="{WIDTH / 2}" x2="{WIDTH / 2}" y1="0" y2="14" stroke="currentColor" stroke-opacity=".4"/>'
        f'<rect x="{left:.1f}" y="5" width="{max(right - left, 1):.1f}" height="4" fill="{colour}" fill-opacity=".5"/>'
        f'<circle cx="{at:.1f}" cy="7" r="3" fill="{colour}"/></svg>'
    )


def _span(metrics: Iterable[dict[str, Any]]) -> float:
    """How far the pictures reach: to the widest interval, 5 % at least and 100 % at most."""
    edges = (one.get(key) for one in metrics for key in ("ci_low", "ci_high", "ratio"))
    widest = max([LEAST_SPAN, *(abs(edge - 1) for edge in edges if edge is not None)])
    return float(min(widest, 1.0))


def _place(ratio: float, span: float) -> float:
    return WIDTH / 2 * (1 + min(max((ratio - 1) / span, -1.0), 1.0) * 0.96)


def _about(content: dict[str, Any]) -> list[str]:
    found = rows.differences(content)
    lines: list[str] = []
    if found:
        body = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in found]
        lines += ["<h2>Conditions that differ</h2>", *table(("condition", "base", "new", ""), body)]
    lines += _listed("Notes", [*(content.get("notes") or []), *filter(None, [rows.looks(content)])])
    lines += _listed("Judged by", compare_trust.basis(content))
    return lines + _listed("Compared", rows.sides(content))


def _listed(title: str, sentences: Sequence[str]) -> list[str]:
    if not sentences:
        return []
    return [f"<h2>{escape(title)}</h2>", "<ul>", *(f"<li>{_words(one)}</li>" for one in sentences), "</ul>"]


def _words(sentence: object) -> str:
    return words(rows.clean(sentence))


def _class(verdict: str) -> str:
    return verdict if verdict in rows.ORDER else ""
