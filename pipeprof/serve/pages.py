"""The pages of the site that are no verb's: the list of runs, a run that is still recorded, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report import runs, top
from pipeprof.report.page import page, table
from pipeprof.report.table import plain_text
from pipeprof.units import format_count, format_ns

Row = dict[str, Any]

HOME = '<nav aria-label="site"><a href="/">All runs</a></nav>'
LEAST_POINTS = 2  # of a line
KINDS = {"failed": "bad", "hang": "bad", "in_time": "good", "not_measured": "low"}  # how a verdict looks
_AGAIN_S = 5  # between two looks at a run that is still recorded


def listing(folder: Path, rows: Sequence[Row]) -> str:
    """The runs of a folder; two that are ticked can be compared. `rows` as `report.runs.rows_of` gives them."""
    title = f"Runs in {folder}"
    if not rows:
        return page(title, [f"<p>There are no runs in <code>{escape(str(folder))}</code> yet.</p>"])
    complete = [row for row in rows if row["verdict"]]
    body = [*_recording(rows), *_workloads(rows), "<section>", "<h2>Runs</h2>"]
    body += ['<form action="/compare" method="get">', '<div class="wide" tabindex="0">']
    body += [
        line.replace("<table>", '<table class="rows sortable">')
        for line in table(("compare", *runs.HEAD), [_row(row) for row in rows], {4})
    ]
    body += ["</div>", '<p><button type="submit">Compare the two ticked runs</button> The older one is the base.</p>']
    body += ["</form>"] if len(complete) > 1 else ["</form>", "<p>Two complete runs can be compared.</p>"]
    if len(complete) > 1:
        body.append('<p><a href="/history">History: since when is it slower?</a></p>')
        body.append('<p><a href="/fleet">All together: what is lost, and because of what</a></p>')
    body += [f"<p>{words(said)}</p>" for said in runs.problems(rows)] + ["</section>"]
    return page(title, body)


def _recording(rows: Sequence[Row]) -> list[str]:
    """The runs that are recorded now, with the way to what is known of each by now."""
    now = [
        f"<li>{_link(row)} <code>{escape(runs.cells(row)[5])}</code></li>" for row in rows if row["state"] == "running"
    ]
    return ["<section>", "<h2>Recorded now</h2>", "<ul>", *now, "</ul>", "</section>"] if now else []


def _workloads(rows: Sequence[Row]) -> list[str]:
    """Each command with the step times of its runs, the oldest first, and the verdict on the newest."""
    timed: dict[str, list[Row]] = {}
    for row in reversed(rows):
        if row["step_ns"] is not None and row["command"]:
            timed.setdefault(runs.cells(row)[5], []).append(row)
    lines = []
    for said, own in timed.items():
        last = own[-1]
        times = [row["step_ns"] for row in own]
        about = f"{format_count(len(own), 'run')}, {format_ns(last['step_ns'])}"
        lines.append(
            f'<li><a href="/?search={escape(quote(said.removesuffix("...")))}"><code>{escape(said)}</code></a> '
            f'<span class="soft">{about}</span> {_chip(last)}{_sparkline(times)}</li>'
        )
    title = "<h2>Step time of each workload, up to its newest run</h2>"
    return ["<section>", title, '<ul class="workloads">', *lines, "</ul>", "</section>"] if lines else []


def _sparkline(times: Sequence[float]) -> str:
    """The times from left to right on an axis from 0, so that twice as long is twice as high."""
    if len(times) < LEAST_POINTS:
        return ""
    most, last = max(times) or 1.0, len(times) - 1
    points = " ".join(f"{2 + 116 * at / last:.1f},{26 - 24 * time / most:.1f}" for at, time in enumerate(times))
    said = f"{len(times)} step times, the first {format_ns(times[0])}, the last {format_ns(times[-1])}"
    place = f'class="sparkline" width="120" height="28" role="img" aria-label="{said}"'
    return f'<svg {place}><polyline points="{points}"/></svg>'


def _chip(row: Row) -> str:
    """The verdict on a run; nothing where there is none."""
    kind = KINDS.get(row["cause"], "limit")
    return f'<span class="chip {kind}">{escape(row["cause_text"])}</span>' if row["cause_text"] else ""


def _link(row: Row) -> str:
    return f'<a href="/run/{escape(quote(row["name"], safe=""))}">{escape(row["name"])}</a>'


def _row(row: Row) -> str:
    _, began, state, step, _, said = runs.cells(row)
    key = escape(quote(row["name"], safe=""))
    box = f'<input type="checkbox" name="run" value="{key}" aria-label="compare {escape(row["name"])}">'
    order = "" if row["step_ns"] is None else f' data-value="{row["step_ns"]}"'
    return (
        f"<tr><td>{box if row['verdict'] else ''}</td>"
        f'<th scope="row">{_link(row)}</th>'
        f'<td data-of="started">{escape(began)}</td><td class="{escape(state)}">{escape(state)}</td>'
        f'<td class="number" data-of="step"{order}>{escape(step)}</td><td>{_chip(row)}</td>'
        f"<td><code>{escape(said)}</code></td></tr>"
    )


def live(name: str, content: dict[str, Any]) -> str:
    """What `pipeprof top` shows of a run that is still recorded; the browser asks again every few seconds."""
    text = plain_text(lambda console: top.draw(console, content))
    body = [
        HOME,
        f"<p>This training is still running. The page looks again every {_AGAIN_S} seconds.</p>",
        f"<pre>{escape(text)}</pre>",
    ]
    return page(f"{name}: recording", body, refresh_s=_AGAIN_S)


def with_way_home(text: str) -> str:
    """A page of a verb, with a link to the list of runs above it."""
    return text.replace("<main>\n", f"{HOME}\n<main>\n", 1)


def problem(title: str, message: str, hint: str = "") -> str:
    """What went wrong, and what can be done."""
    return page(title, [HOME, f"<p>{words(message)}</p>", *([f"<p>{words(hint)}</p>"] if hint else [])])
