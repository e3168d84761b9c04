"""A comparison for the terminal: one sentence, the metrics, what explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from pipeprof.report.compare import trust as compare_trust
from pipeprof.report.compare import why
from pipeprof.report.compare.rows import LONGEST_NAME, clean, interval, reason, seen, values
from pipeprof.report.screen import plain_text, print_drawn
from pipeprof.report.sections import Block
from pipeprof.report.table import print_block
from pipeprof.units import format_change, format_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    Content = dict[str, Any]

STYLES = {
    "regressed": "bold red", "improved": "green", "unchanged": "", "acknowledged": "yellow",
    "inconclusive": "yellow", "incomparable": "bold magenta", "missing": "bold magenta",
}  # fmt: skip
MOST_DIFFERENCES = 12


def show(content: Content) -> None:
    """Print it, in colour where the terminal has any."""
    print_drawn(lambda console: _print(content, console))


def text(content: Content) -> str:
    """The same as plain text, 120 columns wide."""
    return plain_text(lambda console: _print(content, console))


def _print(content: Content, console: Console) -> None:
    console.print(Text(clean(content["headline"]), style=STYLES[content["verdict"]] or "bold"))
    console.print()
    _edits(content, console)
    _sides(content, console)
    primary = [metric for metric in content["metrics"] if metric["family"] == "primary"]
    if primary:
        print_block(console, _metrics(primary), styles=STYLES)
    informing = [metric for metric in content["metrics"] if metric["family"] == "informing"]
    if informing:
        _titled(console, "For information, not part of the verdict", _metrics(informing), styles=STYLES)
    if content["fingerprint"]["differences"]:
        _differences(content["fingerprint"]["differences"], console)
    if content["explanation"]:
        _titled(console, why.title(content), _explanation(content))
    console.print()
    for line in dict.fromkeys([*_reasons(primary), *seen(content), *content["notes"]]):
        console.print(Text(f"note: {clean(line)}"), soft_wrap=True)
    for line in compare_trust.basis(content):
        console.print(Text(clean(line)), soft_wrap=True)


def _edits(content: Content, console: Console) -> None:
    found = compare_trust.edits(content)
    for line in found:
        console.print(Text(f"note: {clean(line)}", style="yellow"), soft_wrap=True)
    if found:
        console.print()


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
        at = f", revision {clean(revision)[:10]}" if revision else ""
        label = clean(side["label"], LONGEST_NAME)
        reps = format_count(side["reps"], "repetition")
        console.print(Text(clean(f"{name}: {label} ({side['kind']}, {reps}{at})")), soft_wrap=True)
    console.print()


def _metrics(metrics: Sequence[Content]) -> Block:
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
    return Block(head, rows, frozenset(range(1, 6)), spare=(5, 4))


def _explanation(content: Content) -> Block:
    rows = [list(line.cells) for line in why.lines(content)]
    return Block(("what", "base", "new", "change", "of the step's change"), rows, frozenset(range(1, 5)))


def _differences(found: Sequence[Content], console: Console) -> None:
    rows = [
        [
            *(clean(entry[key], LONGEST_NAME) for key in ("name", "base", "new")),
            "cannot be compared" if entry["hard"] else "noted",
        ]
        for entry in found[:MOST_DIFFERENCES]
    ]
    _titled(console, "Conditions that differ", Block(("condition", "base", "new", ""), rows))
    if len(found) > MOST_DIFFERENCES:
        console.print(f"and {len(found) - MOST_DIFFERENCES} more")


def _titled(console: Console, title: str, block: Block, styles: Mapping[str, str] | None = None) -> None:
    console.print()
    console.print(Text(title, style="bold"))
    print_block(console, block, styles=styles)
