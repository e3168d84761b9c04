"""The user's source: which call at a recorded line makes an operator, and with which arguments. Without libcst."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeprof.collect.probe.arguments import NAMES
from pipeprof.collect.probe.describe import READERS
from pipeprof.record.plain_file import read_file
from pipeprof.verdict.loader import STAGES

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 4 << 20
BOM = "\ufeff"
CALLS = {"MapOp": "map", "BatchOp": "batch", "MindRecordOp": "MindDataset"}  # what is no class of the operator's name
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
