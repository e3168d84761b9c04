"""The memory report as sentences and tables of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipeprof.report.document import Document
from pipeprof.report.sections import Block, Section
from pipeprof.report.words import memory as words
from pipeprof.units import format_bytes, format_ns, format_ratio
from pipeprof.verdict.memory import GROWING, UNCLEAR, is_own, why_unclear

Row = dict[str, Any]
Cell = Callable[[Row], str]

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 32
_GROWTH = {
    "growing": "Memory grows from step to step: a leak",
    "shrinking": "Memory shrinks from step to step",
    "steady": "No leak: memory does not grow from step to step",
    "not_measured": "Not measured: whether memory grows from step to step",
}
_UNCLEAR = {
    "few_parts": "Too few samples to detect a leak",
    "one_jump": "Not clear whether memory grows from step to step: most of the growth is one jump",
    "wide_interval": "Not clear whether memory grows from step to step: it varies too much",
}
_OPERATORS = {
    None: "Operators", "source": "Operators",
    "pool": "Operators: the change of MindSpore's pool around them, in the steps with recorded operators",
}  # fmt: skip


class _Table(NamedTuple):
    """Rows below a title. `columns` say how a cell is made of a row; those in `words` hold no numbers."""

    title: str
    rows: Sequence[Row]
    columns: Mapping[str, Cell]
    words: Sequence[str] = ()
    spare: Sequence[str] = ()


def document(content: dict[str, Any]) -> Document:
    """The content of `memory.build`. Ranks are named where there is more than one."""
    parts = ("curves", "growth", "peaks", "alive_at_peak", "ops")
    shown, of = content["repetition"], {row["rep"] for part in parts for row in content[part]}
    growth = content["growth"]
    if shown is not None:
        content = content | {part: [row for row in content[part] if row["rep"] == shown] for part in parts}
    several = len({(row["rep"], row["rank"]) for part in parts for row in content[part]}) > 1
    tables = [table for table in _tables(content) if table.rows]
    sections = [Section(table.title, blocks=[_block(table, several=several)]) for table in tables]
    notes = []
    if shown is not None and len(of) > 1:
        notes.append(f"repetition {shown} of {len(of)}, counted from 0, the least disturbed; --rep N shows another")
    notes += [words.reconstructed(content["evidence"])] if content["evidence"] else []
    notes += words.one_device(content["peaks"])
    notes += [f"not measured: {item['what']}: {item['why']}" for item in content["not_measured"]]
    verdict = content["growth_verdict"]
    title = _UNCLEAR[why_unclear(growth)] if verdict == UNCLEAR else _GROWTH[verdict]
    return Document(title, [*sections, Section("", notes=notes)])


def sparkline(values: Sequence[float], width: int = _WIDTH) -> str:
    """Bars from 0 to the largest value; of several values that share a bar, the largest."""
    most = max(values, default=0)
    if most <= 0:
        return _BARS[0] * min(len(values), width)
    groups = min(len(values), width)
    parts = [values[len(values) * n // groups : len(values) * (n + 1) // groups] for n in range(groups)]
    return "".join(_BARS[min(int(max(part) / most * len(_BARS)), len(_BARS) - 1)] for part in parts)


def _block(table: _Table, *, several: bool) -> Block:
    who: dict[str, Cell] = {"rep/rank": lambda row: f"{row['rep']}/{row['rank']}"} if several else {}
    columns = who | dict(table.columns)
    head = list(columns)
    numbers = frozenset(at for at, title in enumerate(head) if title not in (*who, *table.words))
    rows = [[cell(row) for cell in columns.values()] for row in table.rows]
    return Block(head, rows, numbers, spare=[head.index(title) for title in table.spare])


def _tables(content: dict[str, Any]) -> Iterator[_Table]:
    judged = [row for row in content["growth"] if is_own(row) or row["verdict"] == GROWING]
    pool = bool(content["evidence"])
    made: dict[str, Cell] = {"operator": lambda row: words.maker(row, pool=pool)}
    taken = {title: name for title, name in _TAKEN.items() if any(row[name] is not None for row in content["ops"])}
    executed: dict[str, Cell] = {"count": lambda row: str(row["blocks"] if row["count"] is None else row["count"])}
    yield _Table("Over time", content["curves"], _CURVES, ("memory",))
    yield _Table("Growth over the training steps", judged, _GROWN, ("memory", "verdict", "why"), _SPARE)
    yield _Table("Peak of tensors and blocks", content["peaks"], _PEAKS)
    yield _Table("What was alive at the peak", content["alive_at_peak"], made | _ALIVE, ("operator",))
    amounts = {title: _bytes(name) for title, name in taken.items()}
    yield _Table(_OPERATORS[content["ops_from"]], content["ops"], made | executed | amounts, ("operator",))


def _what(row: Row) -> str:
    return " ".join(str(row[part]) for part in ("device", "name", "pid") if row[part] not in ("", 0))


def _bytes(name: str) -> Cell:
    return lambda row: format_bytes(row[name])


def _time(name: str) -> Cell:
    return lambda row: format_ns(row[name])


def _text(name: str) -> Cell:
    return lambda row: str(row[name])


_CURVES: dict[str, Cell] = {
    "memory": _what, "first": _bytes("first_bytes"), "peak": _bytes("peak_bytes"), "last": _bytes("last_bytes"),
    "at": _time("peak_t_ns"), "over time": lambda row: sparkline([point["high_bytes"] for point in row["points"]]),
}  # fmt: skip
_GROWN: dict[str, Cell] = {
    "memory": _what, "verdict": _text("verdict"), "steps": _text("steps"), "first": _bytes("first_bytes"),
    "last": _bytes("last_bytes"), "why": _text("why"),
}  # fmt: skip
_SPARE = ("steps", "first", "last")
_PEAKS: dict[str, Cell] = {
    "peak": _bytes("peak_bytes"), "at": _time("t_ns"), "blocks alive": _text("peak_blocks"),
    "blocks in all": _text("blocks"),
    "never released": lambda row: f"{format_bytes(row['kept_bytes'])} in {row['kept_blocks']}",
}  # fmt: skip
_ALIVE: dict[str, Cell] = {
    "alive": _bytes("bytes"), "share": lambda row: format_ratio(row["share"]), "blocks": _text("blocks"),
    "oldest": _time("oldest_ns"),
}  # fmt: skip
_TAKEN = {
    "self": "self_memory_bytes", "total": "memory_bytes", "self, devices": "self_device_memory_bytes",
    "total, devices": "device_memory_bytes", "allocated": "allocated_bytes", "never released": "kept_bytes",
}  # fmt: skip
