"""What a static-graph profile holds, as compact columns: it may have 200,000 operators."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeprof.errors import SourceError

UNKNOWN = -1
_WORDS_AT_MOST = 255


class Side:
    """Executions on the device's or on the host's side: operator number, computing node, and seconds, in file order."""

    def __init__(self) -> None:
        self.op = array("q")
        self.comp_node = array("q")
        self.times = array("d")  # start, kern, end of each


class Texts:
    """Texts end to end: there may be 200,000."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.end = array("i")

    def add(self, texts: list[bytes]) -> None:
        """Put texts behind those that are there; `bytes` must not get longer than an `end` can say."""
        self.end.extend(accumulate(map(len, texts), initial=len(self.bytes)))
        del self.end[-len(texts) - 1]
        self.bytes += b"".join(texts)

    def __getitem__(self, number: int) -> bytes:
        return bytes(self.bytes[self.end[number - 1] if number else 0 : self.end[number]])


class Operators:
    """The operator object in file order."""

    def __init__(self) -> None:
        self.op = array("q")
        self.name = Texts()
        self.types: dict[str, int] = {}
        self.type = array("q")
        self.inputs = bytearray()  # ids of variables as text, each with a comma behind it
        self.inputs_count = array("q")
        self.outputs = bytearray()  # as `inputs`
        self.outputs_count = array("q")
        self.waiting = Texts()  # what each waits for on other devices, as JSON


class VariableWords:
    """A word about each variable, such as its type. Ids are small numbers in a real file; others count as unknown."""

    def __init__(self) -> None:
        self.codes = {"": 0}  # the first stands for a variable without one
        self.code: NDArray[np.uint8] = np.zeros(0, np.uint8)  # by id

    def add(self, ids: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
        """Note words by their codes; UNKNOWN ids, and words past the 255th, are left out."""
        usable = (ids != UNKNOWN) & (codes <= _WORDS_AT_MOST)
        ids, codes = ids[usable], codes[usable]
        if not len(ids):
            return
        least = int(ids.max()) + 1
        if least > len(self.code):
            grown = np.zeros(max(least, 2 * len(self.code)), np.uint8)
            grown[: len(self.code)] = self.code
            self.code = grown
        self.code[ids] = codes


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
        self.dtypes = VariableWords()
        self.flags = VariableWords()  # each a list as JSON
        self.ended = (array("q"), array("q"))  # variables, and where the memory that each had before ends
        self.texts: dict[bytes, int] = {}
        self.footprint_op = array("q")
        # computation, memory; texts: in_shapes, out_shapes, in_layouts; object
        self.footprint = [array("q") for _ in range(6)]
        self.objects: dict[bytes, int] = {}  # parameters as JSON
        self.chunk_bytes, self.chunk_address, self.chunk_owner = array("q"), array("q"), array("q")
        self.compat = False
        self.damage: SourceError | None = None
        self.problems: dict[str, int] = {}

    def op_numbers(self, keys: Iterable[str]) -> list[int]:
        """The numbers of operators' ids."""
        number = self.number
        return [number.setdefault(key, len(number)) for key in keys]

    def object_number(self, raw: bytes) -> int:
        """The number of an object as JSON, the same for the same text; UNKNOWN for null and an empty one."""
        if raw == b"null" or not raw.strip(b"{} \t\r\n"):
            return UNKNOWN
        return self.objects.setdefault(raw, len(self.objects))

    @property
    def measured(self) -> bool:
        """Whether any operator has a time."""
        return bool(len(self.device.op) or len(self.host.op))
