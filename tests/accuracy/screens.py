"""What every screen says of a run: the code of what leads, by each of them, and where the first sentences differ."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.report import html, markdown, rollup, runs, status, top
from pipeprof.report.fleet.gather import rows_of
from pipeprof.report.sections.of_run import first_lines, sections
from pipeprof.report.words.verdict import phrase
from pipeprof.verdict.cause import RunVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeprof.record.listing import Listed
    from pipeprof.record.run import Run

SENTENCES = {  # of the first screen, by what leads
    "thread": "^(The|[0-9]+) Python threads? ",
    "failed": "failed", "process": "^Short of CPU: ", "drift": "gets slower as it runs", "input_bound": "nput-bound",
    "interpreter_lock": "interpreter's lock", "shared_cpu": "^Short of CPU: no core", "balanced": "^Balanced: ",
    "straggler": "is a straggler", "imbalance": "is a straggler", "communication": "^Communication takes",
    "host_gap": "^Host-bound", "after": "^What follows the optimizer", "compute": "^Compute-bound",
    "gradients": "^Work on the gradients", "optimizer": "^The optimizer takes", "compile": "^Warm-up takes",
    "in_time": "ot input-bound", "not_measured": "^Not measured",
}  # fmt: skip


def disagreements(run: Run, content: dict[str, Any], listed: Listed) -> Iterator[str]:
    """Each screen that does not say what the verdict does."""
    verdict = msgspec.convert(content["verdict"], RunVerdict)
    code, said = verdict.lead.code, content["first_screen"]["sentence"]
    row = runs.rows_of([listed])[0]
    rows = rows_of(run.path, "run")
    by_screen = {
        "runs": row["cause"],
        "status": status.build(run)["verdict"]["code"],
        "fleet": rows.column("cause")[0].as_py() if rows.num_rows else None,
    }
    made = rollup.make(run)
    if made.num_rows:
        by_screen["rollup"] = made.column("cause")[0].as_py()
        if msgspec.json.decode(made.column("causes")[0].as_py(), type=RunVerdict) != verdict:
            yield "rollup: another ranking"
    else:
        del by_screen["fleet"]
    yield from (f"{screen}: {theirs} for {code}" for screen, theirs in by_screen.items() if theirs != code)
    if runs.cells(row)[4] != phrase(verdict.lead):
        yield f"runs: {runs.cells(row)[4]}"
    if not re.search(SENTENCES.get(code, ""), said):
        yield f"first screen: {said} for {code}"
    begin = " ".join(first_lines(content))
    look = {"ranks": [], "state": status.RECORDING, "run": {"path": "r"}, "machine": None}
    live = {"training_steps": 1, "training_ns": 2e9, "first_screen": content["first_screen"]}
    texts = {
        "terminal": begin,
        "markdown": markdown.text(content),
        "html": unescape(html.of_run(run, content)),
        "top": " ".join(top.lines(look | {"ranks": [{"text": "", "pace": None, "queues": []}], "verdict": live})),
    }
    for screen, text in texts.items():
        if _plain(said) not in _plain(text):
            yield f"{screen}: does not say {said}"
    whole = next((section for section in sections(content) if section.name == "diagnosis"), None)
    labels = re.findall(
        r"^(Input-bound|Balanced|Short of CPU|Compute-bound|Host-bound):", "\n".join(whole.strong), re.MULTILINE
    )
    if len(labels) > 1 or any(label not in said for label in labels):
        yield f"section diagnosis: {labels} where the first screen says {said}"


def _plain(text: str) -> str:
    """Without marks and line ends."""
    return re.sub(r"</?code>|[\s\\`*_]+", "", text)
