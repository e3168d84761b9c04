"""Events as JSON text, a column at a time: no Python per event.

The format is the Trace Event Format of chrome://tracing, which Perfetto reads: `ts` and `dur` are microseconds, here
with the three digits of the nanoseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.escape import json_string

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

NONE = -(2**63)
ROWS = 1 << 16
_TEXT_BYTES = 1 << 25
_OTHER_BYTES = 96
_THOUSAND = 1000
_FRACTIONS = pa.array([f".{number:03d}" for number in range(_THOUSAND)])
_BETWEEN = pa.array([f'.{number:03d},"dur":' for number in range(_THOUSAND)])


def quoted(text: object) -> str:
    """A JSON string; None is empty."""
    return json_string(text)


def args(**values: object) -> str:
    """Members of a JSON object without the braces; those that are None are left out."""
    members = ((key, value) for key, value in values.items() if value is not None)
    return ",".join(f'"{key}":{value if isinstance(value, int) else quoted(value)}' for key, value in members)


class Body(NamedTuple):
    """What stands behind `dur` in an event: `before`, a number that differs from row to row, `after`.

    Without `numbered` the number is left out.
    """

    before: str
    after: str
    numbered: bool


def body(category: str, name: str, arguments: str = "", *, with_step: bool = False) -> Body:
    """Category, name and arguments of an event. With `with_step` the row's number is the last argument."""
    start = f',"cat":{quoted(category)},"name":{quoted(name)},"args":{{{arguments}'
    if not with_step:
        return Body(start, "}}", numbered=False)
    return Body(start + ("," if arguments else "") + '"step":', "}}", numbered=True)


class Bodies:
    """The different bodies, numbered from 0."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._made: list[Body] = []
        self._columns: tuple[pa.Array, pa.Array, NDArray[np.bool_], NDArray[np.int64]] | None = None

    def number(self, made: Body) -> int:
        """The number of a body."""
        index = self._numbers.get(made)
        if index is None:
            index = self._numbers[made] = len(self._made)
            self._made.append(made)
            self._columns = None
        return index

    def columns(self) -> tuple[pa.Array, pa.Array, NDArray[np.bool_], NDArray[np.int64]]:
        """`before`, `after`, `numbered` and the length in bytes, by number."""
        if self._columns is None:
            before = pa.array([made.before for made in self._made], pa.string())
            after = pa.array([made.after for made in self._made], pa.string())
            sizes = np.array([len(f"{made.before}{made.after}".encode()) for made in self._made], np.int64)
            self._columns = (before, after, np.array([made.numbered for made in self._made]), sizes)
        return self._columns


class Slices(NamedTuple):
    """Complete events: times in ns, `tid` and `body` by number, the number inside the body (or NONE), and `order`.

    Of events with equal times the one with the smaller `order` contains the other.
    """

    start: NDArray[np.int64]
    dur: NDArray[np.int64]
    tid: NDArray[np.int64]
    body: NDArray[np.int64]
    number: NDArray[np.int64]
    order: NDArray[np.int64]

    def take(self, chosen: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Slices:
        """Some of the rows."""
        return Slices(*(column[chosen] for column in self))

    @staticmethod
    def joined(parts: Sequence[Slices]) -> Slices:
        """All rows of several."""
        return (
            parts[0] if len(parts) == 1 else Slices(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        )


def slice_texts(pid: int, rows: Slices, bodies: Bodies) -> Iterator[memoryview]:
    """Text of complete events (`ph` X), each with a comma and a line break in front, in pieces of bounded size."""
    before, after, numbered, sizes = bodies.columns()
    at = 0
    while at < len(rows.start):
        largest = int(sizes[rows.body[at : at + ROWS]].max()) + _OTHER_BYTES
        part = rows.take(slice(at, at + min(ROWS, max(1, _TEXT_BYTES // largest))))
        at += len(part.start)
        tids, heads = np.unique(part.tid, return_inverse=True)
        head = pa.array([f',\n{{"ph":"X","pid":{pid},"tid":{tid},"ts":' for tid in tids])
        micros, fraction = _microseconds(part.start)
        long, rest = _microseconds(part.dur)
        numbers = pa.array(part.number, mask=~numbered[part.body]).cast(pa.string())
        yield _joined(
            head.take(pa.array(heads)), micros, _BETWEEN.take(fraction), long, _FRACTIONS.take(rest),
            before.take(pa.array(part.body)), numbers, after.take(pa.array(part.body)),
        )  # fmt: skip


def counter_text(times: NDArray[np.int64], heads: pa.Array, tails: pa.Array, values: pa.Array) -> memoryview:
    """Text of counters (`ph` C): `heads` end before the time, `tails` before the value. No value may be null."""
    micros, fraction = _microseconds(times)
    return _joined(heads, micros, _FRACTIONS.take(fraction), tails, values.cast(pa.string()), pa.scalar("}}"))


def flow_text(times: NDArray[np.int64], heads: pa.Array, tails: pa.Array, ids: pa.Array) -> memoryview:
    """Text of ends of arrows (`ph` s, t, f): `heads` end before the time, `tails` before the id, a JSON string."""
    micros, fraction = _microseconds(times)
    return _joined(heads, micros, _FRACTIONS.take(fraction), tails, ids, pa.scalar("}"))


def microseconds_text(values: NDArray[np.int64]) -> pa.Array:
    """Nanoseconds as decimal text in us."""
    micros, fraction = _microseconds(values)
    return pc.binary_join_element_wise(micros, _FRACTIONS.take(fraction), "")


def _microseconds(values: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    """Whole us as text, and the number of the fraction."""
    micros, fraction = np.divmod(np.abs(values), _THOUSAND)
    text = pa.array(micros).cast(pa.string())
    if len(values) and values.min() < 0:
        text = pc.binary_join_element_wise(pa.array(np.where(values < 0, "-", "")), text, "")
    return text, pa.array(fraction)


def _joined(*parts: pa.Array | pa.Scalar) -> memoryview:
    """All rows, one behind the other: the values of the joined column lie so in memory. A null part is empty."""
    options = {"null_handling": "replace", "null_replacement": ""}
    column = pc.binary_join_element_wise(*parts, "", **options)
    if not len(column):
        return memoryview(b"")
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    return memoryview(column.buffers()[2])[int(offsets[0]) : int(offsets[-1])]
