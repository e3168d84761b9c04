"""Graphs as MindSpore compiled them (`graph-N.anf`): tensors and attributes of each operator, by its full name.

The files are protocol buffers of MindSpore's anf_ir.proto, of which only the fields below are read. They are decoded
here: the classes for them come with MindSpore, which need not be installed where a run is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeprof.read.flops import Call, Tensor
from pipeprof.read.spool.lines import SpoolNotes, content, shown

MOST_FILES = 64
_DTYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 43: "complex64", 44: "complex128", 46: "bfloat16",
}  # fmt: skip
_ATTRIBUTES = ("kernel_size", "is_training")
_GIVEN = {"BatchNorm": (5, "is_training")}  # attributes that are still inputs in a graph that has not run yet
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_LOAD = "Load"  # reads a parameter, and gives it on
_DEEPEST = 20  # tuples in tuples

# Field numbers of the messages.
_MODEL_GRAPH = 4
_GRAPH_NODE, _GRAPH_PARAMETER, _GRAPH_CONSTANT = 1, 3, 5
_NODE_INPUT, _NODE_NAME, _NODE_KIND, _NODE_ATTRIBUTE, _NODE_OUTPUT, _NODE_FULL_NAME = 1, 2, 3, 5, 6, 8
_NAME, _VALUE = 1, 2
_VALUE_BOOL, _VALUE_INT, _VALUE_TENSOR, _VALUE_VALUES = 2, 3, 8, 18
_TYPE_TENSOR, _TYPE_SEQUENCE = 2, 3


def load_graphs(folder: Path, notes: SpoolNotes) -> dict[str, Call]:
    """Operators of all graphs of a process by full name. Where two graphs differ in one, the name has none."""
    merged: dict[str, Call | None] = {}
    for path in sorted(folder.glob("graph-*.anf"))[:MOST_FILES]:
        try:
            calls = read_graph(content(path, notes))
        except (ValueError, IndexError, UnicodeDecodeError):
            notes.damaged(
                f"{shown(path)} is not a graph as MindSpore writes it: amounts of its operators are not known"
            )
            continue
        for name, call in calls.items():
            merged[name] = call if merged.get(name, call) == call else None
    return {name: call for name, call in merged.items() if call is not None}


def read_graph(data: bytes) -> dict[str, Call]:
    """Operators of one graph by full name. Raises ValueError, IndexError or UnicodeDecodeError for anything else."""
    nodes: list[bytes] = []
    parameters: dict[str, str] = {}  # by the name of what reads it as it is
    tensors: dict[str, tuple[Tensor, ...]] = {}
    constants: dict[str, Any] = {}
    for graph in _each(data, _MODEL_GRAPH):
        for number, value in _fields(graph):
            if number == _GRAPH_NODE:
                nodes.append(value)
            elif number == _GRAPH_PARAMETER:
                tensors[_text(value, _NAME)] = _typed(_first(value, _VALUE))
                parameters[_text(value, _NAME)] = _text(value, _NAME)
            elif number == _GRAPH_CONSTANT:
                tensors[_text(value, _NAME)] = _constant(_first(value, _VALUE))
                constants[_text(value, _NAME)] = _plain(_first(value, _VALUE))
    tensors.update((_text(node, _NODE_NAME), _typed(_first(node, _NODE_OUTPUT))) for node in nodes)
    for node in nodes:
        read = next(_each(node, _NODE_INPUT), b"") if _text(node, _NODE_KIND) == _LOAD else b""
        if read and (name := _text(read, _NAME)) in parameters:
            parameters[_text(node, _NODE_NAME)] = parameters[name]
    return {
        name: _call(node, tensors, constants, parameters) for node in nodes if (name := _text(node, _NODE_FULL_NAME))
    }


def _call(
    node: bytes, tensors: dict[str, tuple[Tensor, ...]], constants: dict[str, Any], parameters: dict[str, str]
) -> Call:
    kind, names = _text(node, _NODE_KIND), [_text(given, _NAME) for given in _each(node, _NODE_INPUT)]
    inputs = [tensor for name in names for tensor in tensors.get(name, ())]  # what is no tensor has none
    attributes = {
        name: _plain(_first(one, _VALUE))
        for one in _each(node, _NODE_ATTRIBUTE)
        if (name := _text(one, _NAME)) in _ATTRIBUTES
    }
    at, given = _GIVEN.get(kind, (0, ""))
    if given and len(names) > at and names[at] in constants:
        attributes.setdefault(given, constants[names[at]])
    read = tuple(parameters[name] for name in names if "." in parameters.get(name, ""))
    return Call(kind, tuple(inputs), _typed(_first(node, _NODE_OUTPUT)), attributes, read)


def _typed(message: bytes, depth: int = 0) -> tuple[Tensor, ...]:
    """The tensors of a TypeProto: one, those of a tuple, or none."""
    tensors: list[Tensor] = []
    for number, value in _fields(message):
        if number == _TYPE_TENSOR:
            sizes = [_number(size, 1) for dims in _each(value, 2) for size in _each(dims, 1)]
            shaped = bool(sizes) or not depth  # a part of a tuple has its type alone
            tensors.append(Tensor(tuple(sizes) if shaped else None, _DTYPES.get(_number(value, 1))))
        elif number == _TYPE_SEQUENCE and depth < _DEEPEST:
            tensors += [tensor for part in _each(value, 1) for tensor in _typed(part, depth + 1)]
    return tuple(tensors)


def _constant(value: bytes) -> tuple[Tensor, ...]:
    """The tensor that a constant is; plain numbers and tuples are no tensors."""
    return tuple(Tensor(tuple(_varints(one, 1)), _DTYPES.get(_number(one, 2))) for one in _each(value, _VALUE_TENSOR))


def _plain(value: bytes, depth: int = 0) -> Any:
    """A number, a truth or a tuple of them."""
    parts = [_plain(one, depth + 1) for one in _each(value, _VALUE_VALUES)] if depth < _DEEPEST else []
    numbers = [number for field in (_VALUE_INT, _VALUE_BOOL) for number in _varints(value, field)]
    return tuple(parts) if parts else next(iter(numbers), 0)


def _text(message: bytes, field: int) -> str:
    return _first(message, field).decode()


def _first(message: bytes, field: int) -> bytes:
    return next(_each(message, field), b"")


def _number(message: bytes, field: int) -> int:
    return next(iter(_varints(message, field)), 0)


def _varints(message: bytes, field: int) -> Iterator[int]:
    """Numbers of a field, whether each stands alone or all are packed into one."""
    for number, value in _fields(message):
        if number != field:
            continue
        if isinstance(value, int):
            yield _signed(value)
            continue
        at = 0
        while at < len(value):
            varint, at = _varint(value, at)
            yield _signed(varint)


def _each(message: bytes, field: int) -> Iterator[bytes]:
    """The messages, or texts, of a field."""
    return (value for number, value in _fields(message) if number == field and not isinstance(value, int))


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers with their bytes, or with their number."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(kind)
        if at + length > len(message):
            raise ValueError(length)
        if kind == _BYTES:
            yield key >> 3, message[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(_LONGEST_VARINT):
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError(at)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
