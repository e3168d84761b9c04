"""The pages of the site that are no verb's: the list of runs, a run that is still recorded, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report import runs
from pipeprof.report.page import chip, page, table
from pipeprof.serve import live
from pipeprof.units import format_count, format_ns

Row = dict[str, Any]

HOME = '<nav aria-label="site"><a href="/">All runs</a></nav>'
KINDS = {"failed": "bad", "hang": "bad", "in_time": "good", "not_measured": "low"}  # how a verdict looks


def listing(folder: Path, rows: Sequence[Row], looks: Mapping[str, live.Shown], mark: str) -> str:
    """The runs of a folder; two that are ticked can be compared. `rows` as `report.runs.rows_of` gives them.

    `looks`: at those that are recorded, by name; `mark` changes with the list.
    """
    title = f"Runs in {folder}"
    now = live.place("/live", mark, recorded(rows, looks))
    if not rows:
        return page(title, [*now, f"<p>There are no runs in <code>{escape(str(folder))}</code> yet.</p>"], asks=True)
    complete = [row for row in rows if row["verdict"]]
    body = [*now, *_workloads(rows), "<section>", "<h2>Runs</h2>"]
    body += ['<form action="/compare" method="get" data-ticks="2">', '<div class="wide" tabindex="0">']
    body += [
        line.replace("<table>", '<table class="rows sortable" data-choices="state verdict">')
        for line in table(("compare", *runs.HEAD), [_row(row) for row in rows], {4})
    ]
    body += ["</div>", '<p><button type="submit">Compare the two ticked runs</button> The older one is the base.</p>']
    body += ["</form>"] if len(complete) > 1 else ["</form>", "<p>Two complete runs can be compared.</p>"]
    if len(complete) > 1:
        body.append('<p><a href="/history">History: since when is it slower?</a></p>')
        body.append('<p><a href="/fleet">All together: what is lost, and because of what</a></p>')
    body += [f"<p>{words(said)}</p>" for said in runs.problems(rows)] + ["</section>"]
    return page(title, body, asks=True)


def recorded(rows: Sequence[Row], looks: Mapping[str, live.Shown]) -> list[str]:
    """The runs that are recorded now, with the figures of each and the way to all of them."""
    now = [
        line
        for row in rows
        if (shown := looks.get(row["name"]))
        for line in live.card(f"{_link(row)} <code>{escape(runs.cells(row)[5])}</code>", shown)
    ]
    return ["<h2>Recorded now</h2>", '<ul class="cards">', *now, "</ul>"] if now else []


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
            f'<span class="soft">{about}</span> {_chip(last)}{live.step_times(times)}</li>'
        )
    title = "<h2>Step time of each workload, up to its newest run</h2>"
    return ["<section>", title, '<ul class="workloads">', *lines, "</ul>", "</section>"] if lines else []


def _chip(row: Row) -> str:
    """The verdict on a run; nothing where there is none."""
    said = row["cause_text"]
    return chip(said, KINDS.get(row["cause"], "limit")) if said else ""


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


def now(name: str, shown: live.Shown) -> str:
    """What `pipeprof top` shows of a run that is still recorded."""
    body = [
        "<p>This training is still running: the figures are those of <code>pipeprof top</code>, and follow it.</p>",
        *live.place(f"/live/{quote(name, safe='')}", shown.look.state, live.whole(shown)),
    ]
    return with_way_home(page(f"{name}: recording", body, asks=True))


def with_way_home(text: str) -> str:
    """A page of a verb, with a link to the list of runs above it."""
    return text.replace("<main>\n", f"{HOME}\n<main>\n", 1)


def problem(title: str, message: str, hint: str = "") -> str:
    """What went wrong, and what can be done."""
    return page(title, [HOME, f"<p>{words(message)}</p>", *([f"<p>{words(hint)}</p>"] if hint else [])])
