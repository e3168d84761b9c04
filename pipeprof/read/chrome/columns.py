"""Events of one batch as columns of numbers, a column at a time: a loop over one field is several times as fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.read.chrome.events import Args, int64
from pipeprof.read.chrome.spill import NONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from pipeprof.read.chrome.events import Event, Loose
    from pipeprof.read.chrome.gather import Gathered

MOST_PERCENT = 100
_NO_ARGS = Args()
_ELEMENT_BYTES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "long": 8, "int": 4, "short": 2, "byte": 1, "char": 1, "bool": 1,
}  # fmt: skip


def arguments(events: Sequence[Event]) -> list[Args]:
    """The arguments of each event; empty ones where it has none."""
    return [event.args or _NO_ARGS for event in events]


def ids(values: Sequence[Loose]) -> NDArray[np.int64]:
    """Ids and counts, from numbers or text; NONE for what is none, or does not fit."""
    try:
        return np.array([value if value.__class__ is int else number_of(value) for value in values], np.int64)
    except OverflowError:
        return np.array([number_of(value) for value in values], np.int64)


def number_of(value: Loose) -> int:
    """One id or count; NONE for what is none."""
    if value is None:
        return NONE
    number = int64(value)
    return NONE if number is None else number


def tracks(gathered: Gathered, events: Sequence[Event]) -> NDArray[np.int64]:
    """The thread or stream of each event."""
    pairs = [(event.pid, event.tid) for event in events]
    numbers = list(map(gathered.tracks.numbers.get, pairs))
    if None in numbers:
        numbers = [gathered.tracks.number(*pair) for pair in pairs]
    return np.array(numbers, np.int64)


def texts(gathered: Gathered, values: Sequence[str]) -> NDArray[np.int64]:
    """The number of each text."""
    numbers = list(map(gathered.texts.numbers.get, values))
    if None in numbers:
        numbers = [gathered.texts.number(value) for value in values]
    return np.array(numbers, np.int64)


def groups(gathered: Gathered, args: Iterable[Args]) -> list[int]:
    """The communication group of each event; NONE for none."""
    return [NONE if one.group is None else gathered.texts.number(str(one.group)) for one in args]


def payloads(args: Iterable[Args]) -> list[int]:
    """Bytes that each event copied or sent; NONE when it does not say."""
    return [
        NONE if one.moved_bytes is None and one.size is None and one.elements is None else _payload(one) for one in args
    ]


def _payload(args: Args) -> int:
    for value in (args.moved_bytes, args.size):
        number = int64(value)
        if number is not None and number >= 0:
            return number
    elements = int64(args.elements)
    width = _ELEMENT_BYTES.get(str(args.element_type).lower()) if elements is not None else None
    return elements * width if elements is not None and width and 0 <= elements < 2**56 else NONE


def occupancies(args: Iterable[Args]) -> list[int]:
    """Estimated occupancy of each kernel in percent, which the profiler rounds; NONE when it does not say."""
    return [
        NONE if one.occupancy is None or not 0 <= (number := number_of(one.occupancy)) <= MOST_PERCENT else number
        for one in args
    ]


def is_backward(args: Args, name: str) -> bool:
    """Whether a call is a node of the backward graph itself: those have their forward operator's thread."""
    return args.forward_thread not in (None, 0, "0") and not name.startswith("autograd::engine::")


def beside_shapes(args: Args) -> bytes:
    """What the number of a call's operations needs beside its shapes; see kinds.Info."""
    return bytes(args.concrete) if args.flops is None else str(int64(args.flops) or "").encode()


def stacked(*columns: Any) -> NDArray[np.int64]:
    """Rows from columns, some of which may be one number for all rows; the result's columns lie in one piece each."""
    length = max(np.size(column) for column in columns)
    table: NDArray[np.int64] = np.empty((len(columns), length), np.int64)
    for number, column in enumerate(columns):
        table[number] = column
    rows: NDArray[np.int64] = table.T
    return rows
