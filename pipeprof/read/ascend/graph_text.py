"""Descriptions of a graph as the device's host wrote them: `Framework.host.vm.{graph_desc_info,task_desc_info}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.read.ascend.graph_ops import describe
from pipeprof.read.source.content import LONG_LINE, lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

_FIELD = re.compile(r'(\w+):("[^"]*"|\S*)')
_TYPES = (
    "BOOL", "INT", "INT8", "INT16", "INT32", "INT64", "UINT", "UINT8", "UINT16", "UINT32", "UINT64", "FLOAT", "FLOAT16",
    "FLOAT32", "FLOAT64",
)  # fmt: skip
_FIRST_TYPE = 27  # number of BOOL in MindSpore's list of types at that time


class Task(NamedTuple):
    """One operator: its task and stream on the device, and its tensors as in the column `op_info`."""

    task_id: int
    stream_id: int
    block_dim: int
    full_name: str
    type: str
    tensors: dict[str, Any]

    @property
    def name(self) -> str:
        """The last part of the full name."""
        return self.full_name.rpartition("/")[2]

    @property
    def subgraph(self) -> str:
        """The first part of the full name."""
        return self.full_name.partition("/")[0]


def tasks(graph: Sequence[Path], task: Sequence[Path]) -> Iterator[Task]:
    """Operators that have a task, in the order of the task files."""
    described = {name: (type_, tensors) for path in graph for name, type_, tensors in _graph(path)}
    for path in task:
        for line in lines(path, longest=LONG_LINE):
            parts = line.split()
            if len(parts) == 4 and all(part.isdecimal() and len(part) < 10 for part in parts[1:]):
                type_, tensors = described.get(parts[0], ("", {}))
                yield Task(int(parts[2]), int(parts[3]), int(parts[1]), parts[0], type_, tensors)


def read_descriptions(graph: Sequence[Path], out: Out) -> None:
    """Remember types and tensors of all operators of a graph."""
    for path in graph:
        for name, type_, tensors in _graph(path):
            describe(name, type_ or None, tensors, out)


def _graph(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for line in lines(path, longest=LONG_LINE):
        fields = _FIELD.findall(line)
        known = dict(fields[:2])
        if known.get("op_name"):
            yield known["op_name"], known.get("op_type", ""), _tensors(fields[2:])


def _tensors(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`input_id:0 input_format:A input_data_type:40 input_shape:"1,2"` and so on."""
    found: dict[str, Any] = {}
    current: dict[str, Any] = {}
    for name, value in fields:
        side, _, what = name.partition("_")
        if what == "id":
            current = found.setdefault(f"{side}_{value}", {})
        elif what in ("format", "data_type", "shape"):
            current[what] = data_type(value) if what == "data_type" else value.strip('"')
    return found


def data_type(number: str) -> str:
    """Name of MindSpore's data type with this number, else the number itself."""
    index = int(number) - _FIRST_TYPE if number.isdecimal() and len(number) < 6 else -1
    return f"NUMBER_TYPE_{_TYPES[index]}" if 0 <= index < len(_TYPES) else number
