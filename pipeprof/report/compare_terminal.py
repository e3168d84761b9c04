"""A comparison for the terminal: one sentence, the metrics, what explains it."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeprof.report import compare_why as why
from pipeprof.report.compare_rows import LONGEST_NAME, clean, interval, reason, values
from pipeprof.report.output import PLAIN_WIDTH
from pipeprof.units import format_change, format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    Content = dict[str, Any]

STYLES = {
    "regressed": "bold red", "improved": "green", "unchanged": "", "acknowledged": "yellow",
    "inconclusive": "yellow", "incomparable": "bold magenta", "missing": "bold magenta",
}  # fmt: skip
MOST_DIFFERENCES = 12


class _Stdout(Console):
    """Stdout. Raises BrokenPipeError when nobody reads it any more."""

    def on_broken_pipe(self) -> None:
        """Not with an exit code of its own, as the class above does."""
        raise BrokenPipeError


def show(content: Content) -> None:
    """Print it, in colour where the terminal has any. Raises BrokenPipeError when nobody reads it to the end."""
    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    _print(content, _Stdout(width=width, highlight=False, no_color=bool(os.environ.get("NO_COLOR")), file=sys.stdout))


def text(content: Content) -> str:
    """The same as plain text, 120 columns wide."""
    out = io.StringIO()
    _print(content, Console(file=out, width=PLAIN_WIDTH, highlight=False, no_color=True, force_terminal=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _print(content: Content, console: Console) -> None:
    console.print(Text(clean(content["headline"]), style=STYLES[content["verdict"]] or "bold"))
    console.print()
    _sides(content, console)
    primary = [metric for metric in content["metrics"] if metric["family"] == "primary"]
    if primary:
        console.print(_metrics(primary))
    if content["fingerprint"]["differences"]:
        _differences(content["fingerprint"]["differences"], console)
    if content["explanation"]:
        console.print(_explanation(content))
    for line in dict.fromkeys([*_reasons(primary), *content["notes"]]):
        console.print(Text(f"note: {clean(line)}"), soft_wrap=True)


def _reasons(metrics: Sequence[Content]) -> list[str]:
    """Each reason once, with the metrics it is given for; that of all of them alone."""
    found: dict[str, list[str]] = {}
    for metric in metrics:
        if reason(metric):
            found.setdefault(reason(metric), []).append(metric["name"])
    return [f"{', '.join(names)}: {said}" if len(names) < len(metrics) else said for said, names in found.items()]


def _sides(content: Content, console: Console) -> None:
    for name in ("base", "new"):
        side = content[name]
        revision = (side["git"] or {}).get("revision")
        at = f", revision {revision[:10]}" if revision else ""
        label = clean(side["label"], LONGEST_NAME)
        reps = format_count(side["reps"], "repetition")
        console.print(Text(f"{name}: {label} ({side['kind']}, {reps}{at})"), soft_wrap=True)
    console.print()


def _metrics(metrics: Sequence[Content]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, justify in (
        ("metric", "left"), ("base", "right"), ("new", "right"), ("change", "right"), ("95 % interval", "right"),
        ("p", "right"), ("verdict", "left"),
    ):  # fmt: skip
        table.add_column(column, justify=justify, no_wrap=column != "metric")  # type: ignore[arg-type]
    for metric in metrics:
        low, high = metric["ci_low"], metric["ci_high"]
        table.add_row(
            Text(clean(metric["name"], LONGEST_NAME)),
            *(Text(one) for one in values(metric)),
            format_change(metric["ratio"]),
            interval(low, high) if low is not None and high is not None else "-",
            "-" if metric["p_value"] is None else f"{metric['p_value']:.2g}",
            Text(metric["verdict"], style=STYLES[metric["verdict"]]),
        )
    return table


def _explanation(content: Content) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title=why.title(content), title_justify="left")
    for column in ("what", "base", "new", "change", "of the step's change"):
        table.add_column(column, justify="left" if column == "what" else "right", overflow="fold")
    for line in why.lines(content):
        table.add_row(*(Text(cell) for cell in line.cells))
    return table


def _differences(found: Sequence[Content], console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold", title="Conditions that differ", title_justify="left")
    for column in ("condition", "base", "new", ""):
        table.add_column(column, overflow="fold")
    for entry in found[:MOST_DIFFERENCES]:
        texts = (Text(clean(entry[key], LONGEST_NAME)) for key in ("name", "base", "new"))
        table.add_row(*texts, "cannot be compared" if entry["hard"] else "noted")
    console.print(table)
    if len(found) > MOST_DIFFERENCES:
        console.print(f"and {len(found) - MOST_DIFFERENCES} more")
