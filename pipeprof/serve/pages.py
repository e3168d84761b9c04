"""The pages of the site that are no verb's: the list of runs, a run that is still recorded, and what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report import runs, top
from pipeprof.report.charts.script import javascript
from pipeprof.report.page import page, table
from pipeprof.report.screen import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HOME = '<nav aria-label="site"><a href="/">All runs</a></nav>'
_AGAIN_S = 5  # between two looks at a run that is still recorded


def listing(folder: Path, rows: Sequence[dict[str, Any]]) -> str:
    """The runs of a folder; two that are ticked can be compared. `rows` as `report.runs.rows_of` gives them."""
    title = f"Runs in {folder}"
    if not rows:
        return page(title, [f"<p>There are no runs in <code>{escape(str(folder))}</code> yet.</p>"])
    complete = [row for row in rows if row["verdict"]]
    body = ['<form action="/compare" method="get">', '<div class="wide" tabindex="0">']
    body += [
        line.replace("<table>", '<table class="sortable">')
        for line in table(("compare", *runs.HEAD), [_row(row) for row in rows], {4})
    ]
    body += ["</div>", '<p><button type="submit">Compare the two ticked runs</button> The older one is the base.</p>']
    body += ["</form>"] if len(complete) > 1 else ["</form>", "<p>Two complete runs can be compared.</p>"]
    if len(complete) > 1:
        body.append('<p><a href="/history">History: since when is it slower?</a></p>')
        body.append('<p><a href="/fleet">All together: what is lost, and because of what</a></p>')
    body += [f"<p>{words(said)}</p>" for said in runs.problems(rows)]
    return page(title, body, javascript("tables"))


def _row(row: dict[str, Any]) -> str:
    name, began, state, step, verdict, said = runs.cells(row)
    shown, key = escape(name), escape(quote(row["name"], safe=""))
    box = f'<input type="checkbox" name="run" value="{key}" aria-label="compare {shown}">'
    order = "" if row["step_ns"] is None else f' data-value="{row["step_ns"]}"'
    return (
        f"<tr><td>{box if row['verdict'] else ''}</td>"
        f'<th scope="row"><a href="/run/{key}">{shown}</a></th>'
        f'<td>{escape(began)}</td><td class="{escape(state)}">{escape(state)}</td>'
        f'<td class="number"{order}>{escape(step)}</td><td>{escape(verdict)}</td>'
        f'<td class="long"><code>{escape(said)}</code></td></tr>'
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
