"""MegEngine's memory_flow.svg: one rectangle per tensor, from the time it was produced to its release.

The attributes of the writer's own namespace hold what the picture shows: `tag:address` (hex), `tag:size` as
`3MB 12KB 5B `, `tag:produced`, `tag:erased` and `tag:duration` as `1s 2ms 3us 4ns `. Values are not escaped, so the
file may be no XML; it is read as text. Source: MegEngine's `imperative/src/impl/profiler/memory_chunk.cpp`.
"""

from __future__ import annotations

import codecs
import re
from html import unescape
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.megengine.file_rows import FileRows
from pipeprof.read.source.content import Content
from pipeprof.read.source.numbers import LARGEST
from pipeprof.read.tables.rows import Rows
from pipeprof.record import limits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK = 1 << 20
_LONGEST = 1 << 18  # characters of one rectangle
_RECT = re.compile(r"<rect\b")
_TAG = re.compile(r'\btag:(type|name|address|size|produced|erased|duration|group)\s*=\s*"([^"]*)"')
_LONGEST_NAME = 1000
_PART = re.compile(r"([0-9]{1,20})\s*([A-Za-z]+)")
_TIMES = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_SIZES = {"TB": 1 << 40, "GB": 1 << 30, "MB": 1 << 20, "KB": 1 << 10, "B": 1}


def read_memory_flow(path: Path, first_op: int = 0, later_ns: int = 0) -> FileRows:
    """Rows of `allocation`, with numbers of operators from `first_op` on, and times moved by `later_ns`.

    Raises SourceError when no tensor is in the file.
    """
    out = FileRows(Rows(0, 0, first_op, most=limits.most_imported_rows(in_memory=True)))
    for text in _rectangles(path):
        tags = dict(_TAG.findall(text))
        if tags.get("type") == "tensor":
            _add(out, tags, later_ns)
        elif "size" in tags:
            out.problems["rectangles that are not tensors"] += 1
    if not out.tables.rows.get("allocation"):
        raise SourceError(f"no tensor with a time in `{path}`", "was it written to the end?")
    return out


def _add(out: FileRows, tags: dict[str, str], later_ns: int) -> None:
    produced, size = _sum(tags.get("produced", ""), _TIMES), _sum(tags.get("size", ""), _SIZES)
    released, lived = _sum(tags.get("erased", ""), _TIMES), _sum(tags.get("duration", ""), _TIMES)
    if produced is None:
        out.problems["tensors without a time"] += 1
        return
    if size is None and tags.get("size"):
        out.problems["sizes of no known unit, or too large: these tensors have none"] += 1
    if released is not None and released < produced:
        released = None  # one that was never released has an undefined end
    if released is None and lived and tags.get("erased") is None:
        released = produced + lived
    out.end_ns = max(out.end_ns, (released or produced) + later_ns)
    out.tables.add(
        "allocation", address=_address(tags.get("address", "")), bytes=size, produced_ns=produced + later_ns,
        released_ns=None if released is None else released + later_ns, op_id=_maker(out, tags),
    )  # fmt: skip


def _maker(out: FileRows, tags: dict[str, str]) -> int | None:
    """What a tensor is called, for want of the name of the operator that made it; else that operator's number."""
    name = unescape(tags.get("name", "")).strip()[:_LONGEST_NAME]
    if not name and tags.get("group"):
        name = f"operator {tags['group'][:_LONGEST_NAME]}"
    return out.tables.op_id(name, "other") if name else None


def _rectangles(path: Path) -> Iterator[str]:
    """Text from one `<rect` to the next, in bounded memory."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with Content(path) as file:
        rest = ""
        while block := file.read(_CHUNK):
            pieces = _RECT.split(rest + decoder.decode(block))
            for piece in pieces[:-1]:
                yield piece[:_LONGEST]
            rest = "<rect" + pieces[-1][:_LONGEST] if len(pieces) > 1 else pieces[-1][-_LONGEST:]
        if rest.startswith("<rect"):
            yield rest


def _sum(text: str, units: dict[str, int]) -> int | None:
    """`3MB 12KB 5B ` as a number; None when it is something else or does not fit."""
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip() or any(unit not in units for _, unit in parts):
        return None
    total = sum(int(number) * units[unit] for number, unit in parts)
    return total if total < LARGEST else None


def _address(text: str) -> int | None:
    try:
        value = int(text, 16)
    except ValueError:
        return None
    return value if 0 <= value < LARGEST else None
