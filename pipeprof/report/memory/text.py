"""The memory report as sentences and tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.document import Document
from pipeprof.report.sections import Block, Section
from pipeprof.report.words import memory as words
from pipeprof.units import format_bytes, format_ns, format_ratio
from pipeprof.verdict.memory import GROWING, UNCLEAR, is_own, why_unclear

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_MEMORY = ("self_memory_bytes", "memory_bytes", "self_device_memory_bytes", "device_memory_bytes")


def document(content: dict[str, Any]) -> Document:
    """The content of `memory.build`. Ranks are named where there is more than one."""
    parts = ("curves", "growth", "peaks", "alive_at_peak", "ops")
    shown, of = content["repetition"], {row["rep"] for part in parts for row in content[part]}
    growth = content["growth"]
    if shown is not None:
        content = content | {part: [row for row in content[part] if row["rep"] == shown] for part in parts}
    several = len({(row["rep"], row["rank"]) for part in parts for row in content[part]}) > 1
    blocks = (_curves(content, several=several), _growth(content, several=several), _peaks(content, several=several))
    titled = (*blocks, _alive(content, several=several), _ops(content, several=several))
    sections = [Section(title, blocks=[block]) for title, block in titled if block.rows]
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


def _who(row: dict[str, Any], *, several: bool) -> list[str]:
    return [f"{row['rep']}/{row['rank']}"] if several else []


def _what(row: dict[str, Any]) -> str:
    return " ".join(str(row[part]) for part in ("device", "name", "pid") if row[part] not in ("", 0))


def _head(*names: str, several: bool) -> tuple[list[str], int]:
    return [*(("rep/rank",) if several else ()), *names], int(several)


def _curves(content: dict[str, Any], *, several: bool) -> tuple[str, Block]:
    head, first = _head("memory", "first", "peak", "last", "at", "over time", several=several)
    rows = [
        [
            *_who(curve, several=several),
            _what(curve),
            format_bytes(curve["first_bytes"]),
            format_bytes(curve["peak_bytes"]),
            format_bytes(curve["last_bytes"]),
            format_ns(curve["peak_t_ns"]),
            sparkline([point["high_bytes"] for point in curve["points"]]),
        ]
        for curve in content["curves"]
    ]
    return "Over time", Block(head, rows, frozenset(range(first + 1, len(head))))


def _growth(content: dict[str, Any], *, several: bool) -> tuple[str, Block]:
    head, first = _head("memory", "verdict", "steps", "first", "last", "why", several=several)
    rows = [
        [
            *_who(row, several=several),
            _what(row),
            row["verdict"],
            str(row["steps"]),
            format_bytes(row["first_bytes"]),
            format_bytes(row["last_bytes"]),
            row["why"],
        ]
        for row in content["growth"]
        if is_own(row) or row["verdict"] == GROWING
    ]
    return "Growth over the training steps", Block(
        head, rows, frozenset(range(first + 2, first + 5)), spare=(first + 2, first + 3, first + 4)
    )


def _peaks(content: dict[str, Any], *, several: bool) -> tuple[str, Block]:
    head, first = _head("peak", "at", "blocks alive", "blocks in all", "never released", several=several)
    rows = [
        [
            *_who(row, several=several),
            format_bytes(row["peak_bytes"]),
            format_ns(row["t_ns"]),
            str(row["peak_blocks"]),
            str(row["blocks"]),
            f"{format_bytes(row['kept_bytes'])} in {row['kept_blocks']}",
        ]
        for row in content["peaks"]
    ]
    return "Peak of tensors and blocks", Block(head, rows, frozenset(range(first, first + 5)))


def _alive(content: dict[str, Any], *, several: bool) -> tuple[str, Block]:
    head, first = _head("operator", "alive", "share", "blocks", "oldest", several=several)
    rows = [
        [
            *_who(row, several=several),
            words.maker(row, pool=bool(content["evidence"])),
            format_bytes(row["bytes"]),
            format_ratio(row["share"]),
            str(row["blocks"]),
            format_ns(row["oldest_ns"]),
        ]
        for row in content["alive_at_peak"]
    ]
    return "What was alive at the peak", Block(head, rows, frozenset(range(first + 1, first + 5)))


def _ops(content: dict[str, Any], *, several: bool) -> tuple[str, Block]:
    titles = ("self", "total", "self, devices", "total, devices", "allocated", "never released")
    names = (*_MEMORY, "allocated_bytes", "kept_bytes")
    shown = [n for n, name in enumerate(names) if any(row[name] is not None for row in content["ops"])]
    head, first = _head("operator", "count", *(titles[n] for n in shown), several=several)
    rows = [
        [
            *_who(row, several=several),
            words.maker(row, pool=bool(content["evidence"])),
            str(row["count"] if row["count"] is not None else row["blocks"]),
            *(format_bytes(row[names[n]]) for n in shown),
        ]
        for row in content["ops"]
    ]
    return _OPERATORS[content["ops_from"]], Block(head, rows, frozenset(range(first + 1, len(head))))
