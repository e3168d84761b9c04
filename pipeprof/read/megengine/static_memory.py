"""MegEngine's StaticMemoryInfo.json (`--get-static-mem-info DIR`): the memory plan of a static graph.

`chunk`: id -> type (static_mem, weight_mem), time_begin and time_end (positions in the order of execution), and
logical addresses; `opr`: id -> name. Every value is text. There are no clock times: positions stand in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.megengine.file_rows import FileRows
from pipeprof.read.source.content import Content
from pipeprof.read.source.document import text
from pipeprof.read.source.json_stream import Scan, of_map
from pipeprof.read.source.numbers import integer

if TYPE_CHECKING:
    from pathlib import Path


class _Chunk(msgspec.Struct):
    time_begin: str | int | None = None
    time_end: str | int | None = None
    logic_addr_begin: str | int | None = None
    logic_addr_end: str | int | None = None


class _Opr(msgspec.Struct):
    id: str | int | None = None
    name: str | None = None


_CHUNKS, _OPRS = of_map(_Chunk), of_map(_Opr)


def read_static_memory(path: Path) -> FileRows:
    """Rows of `allocation` (times are positions in the order of execution) and `op_info`.

    Raises SourceError when no chunk can be read.
    """
    out = FileRows()
    out.problems["memory plan without clock times: positions in the order of execution stand in their place"] += 1
    with Content(path) as file:
        scan = Scan(file, path)
        try:
            _read(scan, out)
        except SourceError as error:
            out.damage = error
    if not out.tables.rows.get("allocation"):
        raise out.damage or SourceError(f"no memory chunk in `{path}`", "was it written to the end?")
    out.problems += scan.problems
    return out


def _read(scan: Scan, out: FileRows) -> None:
    for key in scan.members():
        if key == "chunk":
            for batch in scan.maps(*_CHUNKS):
                for chunk in batch.values():
                    _add(out, chunk)
        elif key == "opr":
            for batch in scan.maps(*_OPRS):
                for key_of, opr in batch.items():
                    number = _number(opr.id if opr.id is not None else key_of)
                    if number is not None:
                        out.tables.add("op_info", op_id=number, name=opr.name, source_id=str(number))
        else:
            scan.skip()


def _add(out: FileRows, chunk: _Chunk) -> None:
    begin, end = _number(chunk.logic_addr_begin), _number(chunk.logic_addr_end)
    produced, released = _number(chunk.time_begin), _number(chunk.time_end)
    if begin is None or end is None or end < begin or produced is None:
        out.problems["chunks without an address or a time"] += 1
        return
    out.tables.add("allocation", address=begin, bytes=end - begin, produced_ns=produced, released_ns=released)


def _number(value: str | int | None) -> int | None:
    return integer(text(value))
