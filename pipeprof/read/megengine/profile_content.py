"""What a static-graph profile holds, as compact columns: it may have 200,000 operators."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.errors import SourceError

UNKNOWN = -1


class Side:
    """Executions on the device's or on the host's side: operator number, place, and seconds, in file order."""

    def __init__(self) -> None:
        self.op = array("q")
        self.place = array("q")
        self.times = array("d")  # start, kern, end of each


class Operators:
    """The operator object in file order. Texts are kept end to end: there may be 200,000 of each."""

    def __init__(self) -> None:
        self.op = array("q")
        self.name = bytearray()
        self.name_end = array("i")
        self.types: dict[str, int] = {}
        self.type = array("q")
        self.inputs = bytearray()  # ids of variables as text, each with a comma behind it
        self.inputs_count = array("q")


class DTypes:
    """Data type of each variable. Ids are small numbers in a real file; others count as unknown."""

    def __init__(self) -> None:
        self.names = [""]  # the first stands for a variable whose type is not known
        self.code = bytearray()  # by id: position in `names`


class Profile:
    """What a file holds. Operators are numbered by first appearance; `number` maps their ids to those numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number: dict[str, int] = {}
        self.order: list[int] = []
        self.places: dict[str, int] = {}
        self.device = Side()
        self.host = Side()
        self.operators = Operators()
        self.dtypes = DTypes()
        self.texts: dict[bytes, int] = {}
        self.footprint_op = array("q")
        self.footprint = array("q")  # computation, memory, and text numbers of in_shapes, out_shapes, in_layouts
        self.compat = False
        self.damage: SourceError | None = None
        self.problems: dict[str, int] = {}

    def op_number(self, key: str) -> int:
        """The number of an operator's id."""
        return self.number.setdefault(key, len(self.number))

    @property
    def measured(self) -> bool:
        """Whether any operator has a time."""
        return bool(len(self.device.op) or len(self.host.op))
