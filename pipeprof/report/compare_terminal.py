"""A comparison for the terminal: one sentence, the metrics, what explains it."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeprof.report.compare_rows import LONGEST_NAME, clean, value
from pipeprof.report.output import PLAIN_WIDTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Content = Mapping[str, Any]

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
        console.print(_explanation(content["explanation"]))
    reasons = _reasons(primary)
    needed = [
        metric["reps_needed"] for metric in primary if metric["verdict"] == "inconclusive" and metric["reps_needed"]
    ]
    lines = list(dict.fromkeys([*reasons, *content["notes"]]))
    if needed:
        lines.append(f"about {max(needed)} repetitions of each side would decide what is inconclusive")
    for line in lines:
        console.print(Text(f"note: {clean(line)}"), soft_wrap=True)


def _reasons(metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each reason once, with the metrics it is given for."""
    found: dict[str, list[str]] = {}
    for metric in metrics:
        if metric["reason"]:
            found.setdefault(metric["reason"], []).append(metric["name"])
    return [f"{', '.join(names) if len(names) < len(metrics) else 'all'}: {reason}" for reason, names in found.items()]


def _sides(content: Content, console: Console) -> None:
    for name in ("base", "new"):
        side = content[name]
        revision = (side["git"] or {}).get("revision")
        at = f", revision {revision[:10]}" if revision else ""
        label = clean(side["label"], LONGEST_NAME)
        console.print(Text(f"{name}: {label} ({side['kind']}, {side['reps']} repetitions{at})"), soft_wrap=True)
    console.print()


def _metrics(metrics: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, justify in (
        ("metric", "left"), ("base", "right"), ("new", "right"), ("change", "right"), ("95 % interval", "right"),
        ("p", "right"), ("verdict", "left"),
    ):  # fmt: skip
        table.add_column(column, justify=justify, no_wrap=column != "metric")  # type: ignore[arg-type]
    for metric in metrics:
        low, high = metric["ci_low"], metric["ci_high"]
        interval = f"{_percent(low)} .. {_percent(high)}" if low is not None and high is not None else "-"
        table.add_row(
            Text(clean(metric["name"], LONGEST_NAME)),
            *(Text(value(metric[side], metric["unit"])) for side in ("base", "new")),
            _percent(metric["ratio"]),
            interval,
            "-" if metric["p_value"] is None else f"{metric['p_value']:.2g}",
            Text(metric["verdict"], style=STYLES[metric["verdict"]]),
        )
    return table


def _explanation(entries: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title="what changed", title_justify="left")
    for column in ("what", "base", "new", "change", "of the step's change"):
        table.add_column(column, justify="left" if column == "what" else "right", overflow="fold")
    for entry in entries:
        share = "-" if entry["share"] is None else f"{entry['share'] * 100:.0f} %"
        if entry["kind"] == "structure":
            table.add_row(Text(clean(entry["text"])), "", "", entry["change"], share)
            continue
        values = (Text(value(entry[side], entry["unit"])) for side in ("base", "new"))
        table.add_row(Text(clean(entry["what"])), *values, _percent(entry["ratio"]), share)
    return table


def _differences(found: Sequence[Mapping[str, Any]], console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold", title="conditions that differ", title_justify="left")
    for column in ("field", "base", "new", ""):
        table.add_column(column, overflow="fold")
    for entry in found[:MOST_DIFFERENCES]:
        texts = (Text(clean(entry[key], LONGEST_NAME)) for key in ("name", "base", "new"))
        table.add_row(*texts, "refused" if entry["hard"] else "noted")
    console.print(table)
    if len(found) > MOST_DIFFERENCES:
        console.print(f"and {len(found) - MOST_DIFFERENCES} more")


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{(ratio - 1) * 100:+.1f} %"
