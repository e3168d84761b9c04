"""Descriptions of a graph as the device's host wrote them: `Framework.host.vm.graph_desc_info`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipeprof.read.ascend.graph_ops import describe
from pipeprof.read.source.content import LONG_LINE, lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

_FIELD = re.compile(r'(\w+):("[^"]*"|\S*)')
_TYPES = (
    "BOOL", "INT", "INT8", "INT16", "INT32", "INT64", "UINT", "UINT8", "UINT16", "UINT32", "UINT64", "FLOAT", "FLOAT16",
    "FLOAT32", "FLOAT64",
)  # fmt: skip
_FIRST_TYPE = 27  # number of BOOL in MindSpore's list of types at that time


def read_descriptions(path: Path, out: Out) -> None:
    """Remember types and tensors of all operators of a graph."""
    for name, kind, tensors in descriptions(path):
        describe(name, kind or None, tensors, out)


def descriptions(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Full name, type and tensors (as in the column `op_info`) of each operator of a graph."""
    for line in lines(path, longest=LONG_LINE):
        fields = _FIELD.findall(line)
        name, kind = (dict(fields[:2]).get(part, "") for part in ("op_name", "op_type"))
        if name:
            yield name, kind, _tensors(fields[2:])


def _tensors(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`input_id:0 input_format:A input_data_type:40 input_shape:"1,2"` and so on."""
    tensors: dict[str, Any] = {}
    current: dict[str, Any] = {}
    for name, value in fields:
        side, _, what = name.partition("_")
        if what == "id":
            current = tensors.setdefault(f"{side}_{value}", {})
        elif what in ("format", "data_type", "shape"):
            current[what] = data_type(value) if what == "data_type" else value.strip('"')
    return tensors


def data_type(number: str) -> str:
    """Name of MindSpore's data type with this number, else the number itself."""
    index = int(number) - _FIRST_TYPE if number.isdecimal() and len(number) < 6 else -1
    return f"NUMBER_TYPE_{_TYPES[index]}" if 0 <= index < len(_TYPES) else number
