"""Operator tables for people. On a terminal below 160 columns figures of a kind stand below each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.document import Document
from pipeprof.report.ops import content as cells
from pipeprof.report.sections import Block, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

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
_PLACE = ("rep", "rank")
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
    measured = _measured(part)
    texts = [name for name in _TEXTS if name == "name" or name in measured]
    figures = [name for name in _FIGURES if name in measured]
    places = _PLACE if part.several else ()
    return _block(
        part.rows, [*places, *texts, *figures], _FIGURES, lambda name, value: _written(name, value, _OURS, "-")
    )


def _torch_groups(part: Part) -> Block:
    """Groups in the columns of torch that are known for any of them."""
    return torch_block(part.rows, _measured(part) - set(() if part.several else _PLACE))


def torch_block(rows: Sequence[Mapping[str, Any]], wanted: Collection[str]) -> Block:
    """Rows in torch's own columns, as far as they are wanted, and its cells."""
    texts = [name for name in _TORCH_TEXTS if name in wanted]
    places, figures = ([name for name in every if name in wanted] for every in (_PLACE, _TORCH))

    def cell(name: str, value: Any) -> str:
        return _written(name, value, _AS_TORCH, "--" if name == "computation" else cells.NOT_KNOWN)

    return _block(rows, [*places, *texts[:1], *figures, *texts[1:]], _TORCH | _TORCH_TEXTS, cell)


def _measured(part: Part) -> set[str]:
    return {name for row in part.rows for name, value in row.items() if value is not None}


def _block(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], titles: Mapping[str, str], cell: Callable[[str, Any], str]
) -> Block:
    head = [titles.get(name, name.replace("_", " ")) for name in names]
    numbers = frozenset(index for index, name in enumerate(names) if name not in _TEXTS)
    spare = [names.index(name) for name in _SPARE if name in names]
    return Block(head, [[cell(name, row.get(name)) for name in names] for row in rows], numbers, spare)


def _written(name: str, value: Any, forms: Mapping[str, Callable[[Any], str]], unknown: str) -> str:
    """A figure or text of a group, by what its column's name ends with."""
    if value is None:
        return unknown
    return next((form for end, form in forms.items() if name.endswith(end)), str)(value)


def _operations(value: float) -> str:
    return cells.amount(value, "FLO")


_OURS: dict[str, Callable[[Any], str]] = {
    "_ns": cells.time, "share": cells.share, "_bytes": cells.size, "computation": _operations,
    "in_shapes": lambda text: " ".join(cells.shapes(text)),
}  # fmt: skip
_AS_TORCH: dict[str, Callable[[Any], str]] = {
    "_ns": cells.torch_time, "share": cells.torch_share, "_bytes": cells.torch_size, "computation": _operations,
}  # fmt: skip
