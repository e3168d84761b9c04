"""What a run and a comparison look like at a Python prompt, as text, and in a notebook, as HTML."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from pipeprof.escape import command, line
from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.compare import sections as compare_sections
from pipeprof.report.page import table

if TYPE_CHECKING:
    from pipeprof.record.run import Run

ASK = ("run.step", "run.ops", 'run.ask("step/slowest", top=5)', 'run.sql("SELECT ...")', "run.report()")


class Comparison(dict[str, Any]):
    """The dict that `pipeprof compare --format json` prints, shown as `pipeprof compare` shows it."""

    def __repr__(self) -> str:
        return compare_sections.text(self).rstrip("\n")

    def _repr_html_(self) -> str:
        from pipeprof.report.section_html import block_lines  # noqa: PLC0415 - charts are slow to import

        tables = map(block_lines, compare_sections.metric_blocks(self["metrics"]))
        return "\n".join([f"<p><strong>{words(self['headline'])}</strong></p>", *chain.from_iterable(tables)])


def run_text(run: Run) -> str:
    """A few lines: state, command, tables with their rows, and how to ask them."""
    lines = [f"<pipeprof run {line(run.name)}", *(f"  {name:<8} {line(text)}" for name, text in _facts(run))]
    return "\n".join(lines) + ">"


def run_html(run: Run) -> str:
    """The facts of `run_text` as an HTML table."""
    rows = [f"<tr><td>{escape(name)}</td><td>{words(text)}</td></tr>" for name, text in _facts(run)]
    return "\n".join([f"<p>pipeprof run <code>{escape(run.name)}</code></p>", *table(("", ""), rows)])


def _facts(run: Run) -> list[tuple[str, str]]:
    manifest = run.manifest
    tables = ", ".join(f"{name} ({count:,})" for name, count in sorted(manifest.tables.items()) if count)
    state = manifest.state + (f": {manifest.reason}" if manifest.reason else "")
    facts = [
        ("state", state), ("command", command(manifest.command)), ("started", manifest.started_at),
        ("rows", tables or "no tables"), ("ask", ", ".join(ASK)),
    ]  # fmt: skip
    return [(name, " ".join(text.split())) for name, text in facts if text]
