"""Operator tables for a terminal: figures of a kind below each other, a column for each figure from 160 columns on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from pipeprof.escape import line
from pipeprof.report.ops import cells
from pipeprof.report.sections import Block
from pipeprof.report.table import print_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from pipeprof.report.ops.content import Content, Part

WIDE = 160
ROOMY = 110
SHOWS_ALL = "--format csv"
_FIGURES = {
    "count": "count", "self_ns": "self", "share": "share", "total_ns": "total", "total_share": "share of total",
    "mean_ns": "mean", "max_ns": "max", "cumulative_share": "cumulative", "device_self_ns": "device self",
    "device_share": "device share", "device_total_ns": "device total", "device_mean_ns": "device mean",
    "self_memory_bytes": "memory self", "memory_bytes": "memory total",
    "self_device_memory_bytes": "device memory self", "device_memory_bytes": "device memory total",
    "computation": "computation",
}  # fmt: skip
# Where they do not fit, these go first, in this order.
_SPARE = (
    "total_share", "cumulative_share", "max_ns", "device_mean_ns", "mean_ns", "self_device_memory_bytes",
    "device_memory_bytes", "computation",
)  # fmt: skip
_TEXTS = ("name", "side", "phase", "in_shapes", "stack")


def show(console: Console, content: Content) -> None:
    """Print the summary and the tables."""
    for title, value in content.summary.items():
        console.print(Text(f"{title:<20} {cells.time(value)}"))
    for sentence in content.busy:
        console.print(Text(line(sentence)))
    for part in content.parts:
        if content.summary:
            console.print()
        if content.kind == "single":
            block = _single(part, console.width, aggregated=content.aggregated)
        else:
            block = _groups(part)
        print_block(console, block, shows_all=SHOWS_ALL)
        for sentence in cells.partly_known(part.rows):
            console.print(Text(sentence))
        if part.hidden:
            console.print(f"{part.hidden} more: --top 0 shows all")
    for title, value in content.footer.items():
        console.print(Text(f"{title}: {cells.time(value)}"))


def _place(row: dict[str, Any], *, several: bool) -> str:
    where = f"\nrep {row['rep']}\nrank {row['rank']}" if several else ""
    return f"{row['position'] - 1}{where}"


def _operator(row: dict[str, Any], *, aggregated: bool) -> str:
    if aggregated:
        return f"{line(row['type'] or cells.NOT_KNOWN)}\n{row['count']} x"
    number = row["opr_id"] if row["opr_id"] is not None else str(row["op_id"])
    return "\n".join(line(part) for part in dict.fromkeys((row["name"], row["type"], number)) if part is not None)


def _single(part: Part, width: int, *, aggregated: bool) -> Block:
    if width >= WIDE:
        head, rows = _wide(part, aggregated=aggregated)
    else:
        head, rows = _narrow(part, aggregated=aggregated, apart=width >= ROOMY)
    words = {"operator", "in shapes", "out shapes", "shapes"}
    return Block(head, rows, frozenset(index for index, title in enumerate(head) if title not in words), tall=True)


def _wide(part: Part, *, aggregated: bool) -> tuple[Sequence[str], list[list[str]]]:
    head = [
        "#", f"{part.side} time", "share", "cumulative", "operator", "computation", "FLOPS", "memory", "bandwidth",
        "in shapes", "out shapes",
    ]  # fmt: skip
    rows = [
        [
            _place(row, several=part.several),
            cells.time(row["self_ns"]),
            cells.share(row["share"]),
            f"{cells.time(row['cumulative_ns'])}\n{cells.share(row['cumulative_share'])}",
            _operator(row, aggregated=aggregated),
            *_work(row),
            "\n".join(cells.shapes(row["in_shapes"], row["in_strides"])),
            "\n".join(cells.shapes(row["out_shapes"])),
        ]
        for row in part.rows
    ]
    return _without_empty(head, rows, ("in shapes", "out shapes"))


def _narrow(part: Part, *, aggregated: bool, apart: bool) -> tuple[Sequence[str], list[list[str]]]:
    """Figures of a kind below each other; running sums in a column of their own only when there is room (`apart`)."""
    times = [f"{part.side} time", "cumulative"]
    head = ["#", *(times if apart else ["\n".join(times)]), "operator", "work", "shapes"]
    rows = [
        [
            _place(row, several=part.several),
            *_times(row, apart=apart),
            _operator(row, aggregated=aggregated),
            "\n".join(_work(row)),
            "\n".join(
                [
                    *cells.shapes(row["in_shapes"], row["in_strides"]),
                    *(f"-> {text}" for text in cells.shapes(row["out_shapes"])),
                ]
            ),
        ]
        for row in part.rows
    ]
    return _without_empty(head, rows, ("shapes",))


def _times(row: dict[str, Any], *, apart: bool) -> list[str]:
    own = f"{cells.time(row['self_ns'])}\n{cells.share(row['share'])}"
    running = f"{cells.time(row['cumulative_ns'])}\n{cells.share(row['cumulative_share'])}"
    return [own, running] if apart else [f"{own}\n{running}"]


def _work(row: dict[str, Any]) -> list[str]:
    return [
        cells.amount(row["computation"], "FLO"),
        cells.amount(row["flops"], "FLOPS"),
        cells.size(row["memory"]),
        cells.size(row["bandwidth"], "/s"),
    ]


def _without_empty(
    head: Sequence[str], rows: list[list[str]], maybe: Sequence[str]
) -> tuple[Sequence[str], list[list[str]]]:
    """Without those of the named columns that are empty in every row."""
    dropped = {index for index, title in enumerate(head) if title in maybe and not any(row[index] for row in rows)}
    keep = [index for index in range(len(head)) if index not in dropped]
    return [head[index] for index in keep], [[row[index] for index in keep] for row in rows]


def _groups(part: Part) -> Block:
    """Groups: what they are, then every figure that is known for any of them."""
    known = {name for row in part.rows for name, value in row.items() if value is not None}
    words = [*(("rep", "rank") if part.several else ()), "name", *(name for name in _TEXTS[1:] if name in known)]
    figures = [name for name in _FIGURES if name in known]
    rows = [[*(_word(row, name) for name in words), *(_figure(row, name) for name in figures)] for row in part.rows]
    names = [*words, *figures]
    head = [_FIGURES.get(name, name.replace("_", " ")) for name in names]
    numbers = frozenset(index for index, name in enumerate(names) if name not in _TEXTS)
    return Block(head, rows, numbers, [names.index(name) for name in _SPARE if name in figures])


def _word(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if name == "in_shapes":
        return " ".join(cells.shapes(value))
    return "-" if value is None else str(value)


def _figure(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return "-"
    if name.endswith("_ns"):
        return cells.time(value)
    if name.endswith("share"):
        return cells.share(value)
    if name.endswith("_bytes"):
        return cells.size(value)
    return cells.amount(value, "FLO") if name == "computation" else str(value)
