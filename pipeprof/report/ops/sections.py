"""Operator tables for people. On a terminal below 160 columns figures of a kind stand below each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.document import Document
from pipeprof.report.ops import cells
from pipeprof.report.sections import Block, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.report.ops.content import Content, Part

WIDE = 160
ROOMY = 110
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
# Of torch's own table, in its order, with its words; it has no others.
_TORCH = {
    "share": "Self CPU %", "self_ns": "Self CPU", "total_share": "CPU total %", "total_ns": "CPU total",
    "mean_ns": "CPU time avg", "device_self_ns": "Self device", "device_share": "Self device %",
    "device_total_ns": "device total", "device_mean_ns": "device time avg", "memory_bytes": "CPU Mem",
    "self_memory_bytes": "Self CPU Mem", "device_memory_bytes": "device Mem",
    "self_device_memory_bytes": "Self device Mem", "count": "# of Calls", "computation": "Total FLOPs",
}  # fmt: skip
_TORCH_TEXTS = {"name": "Name", "in_shapes": "Input Shapes", "stack": "Source Location"}
_TEXTS = ("name", "side", "phase", "in_shapes", "stack")


def document(content: Content, name: str, why: str, *, torch: bool = False) -> Document:
    """The tables of what is called `name`; `why` says what is the matter where no operator is known.

    `torch`: groups have torch's own columns, and cells as it prints them.
    """
    if not content.total.get("count"):
        return Document(f"no operators: {why}", [])
    summary = [[title, cells.time(value)] for title, value in content.summary.items()]
    blocks = [Block(("summary", "time"), summary, frozenset((1,)))] if summary else []
    parts = [one for part in content.parts for one in _part(part, content, torch=torch)]
    time = cells.torch_time if torch else cells.time
    footer = [f"{title}: {time(value)}" for title, value in content.footer.items()]
    return Document(
        f"Operators of `{name}`",
        [Section("", notes=content.busy), Section("", blocks=blocks), *parts, Section("", notes=footer)],
    )


def _part(part: Part, content: Content, *, torch: bool) -> tuple[Section, Section]:
    """A table, and what is to be said of it."""
    if content.kind == "single":
        block = _single(part, aggregated=content.aggregated)
    else:
        block = _torch_groups(part) if torch else _groups(part)
    hidden = [f"{part.hidden} more: --top 0 shows all"] if part.hidden else []
    return Section("", blocks=[block]), Section("", notes=[*cells.partly_known(part.rows), *hidden])


def _position(row: dict[str, Any], *, several: bool) -> str:
    where = f"\nrep {row['rep']}\nrank {row['rank']}" if several else ""
    return f"{row['position'] - 1}{where}"


def _operator(row: dict[str, Any], *, aggregated: bool) -> str:
    if aggregated:
        return f"{line(row['type'] or cells.NOT_KNOWN)}\n{row['count']} x"
    number = row["opr_id"] if row["opr_id"] is not None else str(row["op_id"])
    return "\n".join(line(part) for part in dict.fromkeys((row["name"], row["type"], number)) if part is not None)


def _single(part: Part, *, aggregated: bool) -> Block:
    wide = _tall(*_wide(part, aggregated=aggregated))

    def fitted(width: int) -> Block:
        return wide if width >= WIDE else _tall(*_narrow(part, aggregated=aggregated, apart=width >= ROOMY))

    wide.fitted = fitted
    return wide


def _tall(head: Sequence[str], rows: list[list[str]]) -> Block:
    words = {"operator", "in shapes", "out shapes", "shapes"}
    return Block(head, rows, frozenset(index for index, title in enumerate(head) if title not in words), tall=True)


def _wide(part: Part, *, aggregated: bool) -> tuple[Sequence[str], list[list[str]]]:
    head = [
        "#", f"{part.side} time", "share", "cumulative", "operator", "computation", "FLOPS", "memory", "bandwidth",
        "in shapes", "out shapes",
    ]  # fmt: skip
    rows = [
        [
            _position(row, several=part.several),
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
            _position(row, several=part.several),
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
    measured = {name for row in part.rows for name, value in row.items() if value is not None}
    words = [*(("rep", "rank") if part.several else ()), "name", *(name for name in _TEXTS[1:] if name in measured)]
    figures = [name for name in _FIGURES if name in measured]
    rows = [[*(_word(row, name) for name in words), *(_figure(row, name) for name in figures)] for row in part.rows]
    names = [*words, *figures]
    head = [_FIGURES.get(name, name.replace("_", " ")) for name in names]
    numbers = frozenset(index for index, name in enumerate(names) if name not in _TEXTS)
    return Block(head, rows, numbers, [names.index(name) for name in _SPARE if name in figures])


def _torch_groups(part: Part) -> Block:
    """Groups in the columns of torch that are known for any of them."""
    measured = {name for row in part.rows for name, value in row.items() if value is not None}
    places = ["rep", "rank"] if part.several else []
    texts, figures = ([name for name in every if name in measured] for every in (_TORCH_TEXTS, _TORCH))
    names = [*places, *texts[:1], *figures, *texts[1:]]
    rows = [[_torch_cell(row.get(name), name) for name in names] for row in part.rows]
    head = [(_TORCH | _TORCH_TEXTS).get(name, name) for name in names]
    numbers = frozenset(index for index, name in enumerate(names) if name not in texts)
    return Block(head, rows, numbers, [names.index(name) for name in _SPARE if name in figures])


def _torch_cell(value: Any, column: str) -> str:
    """A figure or text of a group as torch prints it."""
    if column.endswith("_ns"):
        return cells.torch_time(value)
    if column.endswith("share"):
        return cells.torch_share(value)
    if column.endswith("_bytes"):
        return cells.torch_size(value)
    if column == "computation":
        return "--" if value is None else cells.amount(value, "FLO")
    return cells.NOT_KNOWN if value is None else str(value)


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
