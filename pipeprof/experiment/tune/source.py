"""The user's source: the call at a recorded line that makes an operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeprof.collect.probe.arguments import NAMES
from pipeprof.collect.probe.describe import READERS
from pipeprof.record.plain_file import read_file
from pipeprof.verdict.loader import STAGES

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    import libcst

MOST_BYTES = 4 << 20
BOM = "\ufeff"
CALLS = {"MapOp": "map", "BatchOp": "batch", "MindRecordOp": "MindDataset"}  # what is no class of the operator's name
METHODS = frozenset({"map", "batch"})
OF_OPERATOR = {"workers": "num_parallel_workers", "processes": "python_multiprocessing", "max_rowsize": "max_rowsize"}
OF_LOADER = {"prefetch_factor" if name == "prefetch" else name: keyword for name, keyword in NAMES.items()}
KEYWORDS = frozenset({*OF_OPERATOR.values(), *OF_LOADER.values()})
PLACES = {"num_workers": 5}  # of arguments that may be given by their place


class UnclearError(Exception):
    """It is not clear which call is meant, or what it is given."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Argument:
    """An argument of the call of one of these names at a place (file:line); `number`: where it may stand without one.

    `steps`: how many functions hand it on to the operator's own call; `does_more`: one of them reads it for more.
    """

    place: str
    names: frozenset[str]
    keyword: str
    number: int | None = None
    steps: int = field(default=0, compare=False)
    does_more: bool = field(default=False, compare=False)


def keywords_of(op_type: str) -> dict[str, str]:
    """The arguments of the call that makes an operator of that type, by setting; of a stage those of its DataLoader."""
    return OF_LOADER if op_type in STAGES else OF_OPERATOR


def own_argument(place: str, op_type: str, setting: str) -> Argument:
    """The argument of the call that makes an operator."""
    keyword = keywords_of(op_type)[setting]
    return Argument(place, calls_of(op_type), keyword, PLACES.get(keyword))


def calls_of(op_type: str) -> frozenset[str]:
    """Names of the calls that make an operator of that type."""
    if op_type in STAGES:
        return frozenset({"DataLoader"})
    if op_type in CALLS:
        return frozenset({CALLS[op_type]})
    made = [name for name, executed in READERS.items() if executed == op_type] or [op_type]
    return frozenset(f"{name.removesuffix('Op')}Dataset" for name in made)


def read_source(path: Path) -> str:
    """The text of a file, as it is written. Raises OSError, ValueError and PipeprofError."""
    return read_file(path, MOST_BYTES).decode("utf-8")


def calls_on(wrapper: libcst.metadata.MetadataWrapper, place: str) -> list[libcst.Call]:
    """The calls whose name stands at the line of a place (file:line)."""
    import libcst  # noqa: PLC0415 - an extra
    from libcst import metadata  # noqa: PLC0415

    line = place.rpartition(":")[2]
    positions = wrapper.resolve(metadata.PositionProvider)
    calls = [node for node in positions if isinstance(node, libcst.Call)]
    return [one for one in calls if line == str(positions[_named(one)].start.line)]


def call_at(wrapper: libcst.metadata.MetadataWrapper, place: str, names: Collection[str]) -> libcst.Call:
    """The only call of one of these names at the line of a place (file:line). Raises UnclearError."""
    calls = [one for one in calls_on(wrapper, place) if _name_of(one) in names]
    if len(calls) != 1:
        raise UnclearError("several_calls" if calls else "no_call")
    return calls[0]


def _named(call: libcst.Call) -> libcst.CSTNode:
    """The name of what is called, whose line is that of the call in a traceback."""
    import libcst  # noqa: PLC0415

    return call.func.attr if isinstance(call.func, libcst.Attribute) else call.func


def _name_of(call: libcst.Call) -> str:
    """What is called; "" for a function that has the name of a method of a dataset, such as `map`."""
    import libcst  # noqa: PLC0415

    named = _named(call)
    name = str(named.value) if isinstance(named, libcst.Name) else ""
    return "" if named is call.func and name in METHODS else name


def is_plain(value: libcst.BaseExpression) -> bool:
    """Whether a value is written out: a number, a truth value or None."""
    import libcst  # noqa: PLC0415

    return isinstance(value, libcst.Integer) or (
        isinstance(value, libcst.Name) and value.value in ("True", "False", "None")
    )
