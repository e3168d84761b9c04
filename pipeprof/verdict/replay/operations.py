"""Rows of rank/operation as arrays: one entry for each operation of a step, one column for each step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

PASSES = ("forward", "backward")
BETWEEN_TWO = ("send", "receive")
_CHUNK = re.compile(r"chunk[^0-9]?([0-9]{1,9})[/_. ]*")
_COLUMNS = ("rank", "name", "track", "group_name", "kind", "is_comm")


@dataclass(frozen=True)
class Operations:
    """n operations of a step in s steps, all of which have the same ones; by rank, then by begin.

    `start` and `end`: (n, s) in ns from the begin of the step. `type`: index into `types`, the same for operations
    that are peers. `stem`: 0 forward, 1 backward, -1 neither. `number`: which of its kind, stem and chunk on its rank,
    for a pass the microbatch. `group`: index into `groups`, the communication group.
    """

    positions: Ints
    rank: Ints
    stage: Ints
    type: Ints
    stem: Ints
    chunk: Ints
    number: Ints
    is_comm: Flags
    between_two: Flags
    is_send: Flags
    track: Ints
    group: Ints
    start: Floats
    end: Floats
    types: tuple[str, ...]
    groups: tuple[str, ...]
    dropped_steps: int

    @property
    def is_pass(self) -> Flags:
        """Forward and backward passes."""
        return ~self.is_comm & (self.stem >= 0)

    @property
    def step_ns(self) -> Floats:
        """(s,) from the first begin to the last end of each step."""
        taken: Floats = self.end.max(axis=0) - self.start.min(axis=0)
        return taken


def operations(columns: Mapping[str, Any]) -> Operations | None:
    """Of the rows of one repetition; None when no step has any.

    `columns`: arrays of position, rank, start_ns, end_ns, peers, is_comm; and name, track, group_name, kind as pairs of
    codes and texts. Steps whose operations are not those of most steps are left out, and counted in `dropped_steps`.
    """
    if not len(columns["position"]):
        return None
    key = combined([_codes(columns[name]) for name in _COLUMNS])
    steps, step = np.unique(columns["position"], return_inverse=True)
    order = np.lexsort((columns["end_ns"], columns["start_ns"], key, step))
    turn = np.empty(len(order), dtype=np.int64)
    turn[order] = _places(step[order], key[order])
    op = combined([key, turn])
    return _aligned(columns, steps, step, op, int(op.max()) + 1)


def _codes(column: Any) -> Any:
    return column[0] if isinstance(column, tuple) else column


def combined(columns: Sequence[Any]) -> Ints:
    """(n,) numbers from 0, equal where all columns are equal; in their order."""
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, code = np.unique(np.asarray(column), return_inverse=True)
        numbers = np.unique(numbers * len(values) + code.reshape(-1), return_inverse=True)[1].reshape(-1)
    return numbers


def _places(step: Ints, key: Ints) -> Ints:
    """Position among equal (step, key), which are together, from 0."""
    new = np.ones(len(step), dtype=bool)
    new[1:] = (step[1:] != step[:-1]) | (key[1:] != key[:-1])
    begin = np.flatnonzero(new)
    return np.arange(len(step)) - np.repeat(begin, np.diff(np.append(begin, len(step))))


def _aligned(columns: Mapping[str, Any], steps: Ints, step: Ints, op: Ints, count: int) -> Operations:
    """Operations that the usual step has, in the steps that have exactly those."""
    there = np.zeros((count, len(steps)), dtype=bool)
    there[op, step] = True
    patterns, of_step, often = np.unique(there, axis=1, return_inverse=True, return_counts=True)
    usual = int(np.argmax(often))
    chosen = np.flatnonzero(of_step.reshape(-1) == usual)
    in_usual = patterns[:, usual]
    start, end = (np.full((count, len(steps)), np.nan) for _ in range(2))
    zero = np.full(len(steps), np.iinfo(np.int64).max)
    np.minimum.at(zero, step, columns["start_ns"])
    start[op, step], end[op, step] = columns["start_ns"] - zero[step], columns["end_ns"] - zero[step]
    start, end = start[in_usual][:, chosen], end[in_usual][:, chosen]
    row = np.zeros(count, dtype=np.int64)
    row[op] = np.arange(len(op))
    row = row[in_usual]
    order = np.lexsort((end.mean(axis=1), start.mean(axis=1), columns["rank"][row]))
    return _described(columns, row[order], start[order], end[order], steps[chosen], len(steps) - len(chosen))


def _described(
    columns: Mapping[str, Any], row: Ints, start: Floats, end: Floats, positions: Ints, dropped: int
) -> Operations:
    code = {name: np.asarray(columns[name][0])[row] for name in ("name", "track", "group_name", "kind")}
    kinds = [str(text) for text in columns["kind"][1]]
    is_comm = np.asarray(columns["is_comm"])[row].astype(bool)
    parts = [parted(str(text)) for text in columns["name"][1]]
    stem = np.array([stem for _, _, stem in parts])[code["name"]]
    stem = np.where(is_comm, stem, np.array([_index(PASSES, kind) for kind in kinds])[code["kind"]])
    chunk = np.array([chunk for _, chunk, _ in parts])[code["name"]]
    texts = [
        kinds[kind] if not comm and kinds[kind] in PASSES else parts[name][0]
        for comm, kind, name in zip(is_comm, code["kind"], code["name"], strict=True)
    ]
    types = tuple(sorted(set(texts)))
    index_of = {text: index for index, text in enumerate(types)}
    kind_code = np.array([_index(BETWEEN_TWO, kind) for kind in kinds])[code["kind"]]
    rank = np.asarray(columns["rank"])[row]
    sort = np.where(is_comm, kind_code, -2)
    return Operations(
        positions=positions,
        rank=rank,
        stage=np.asarray(columns["peers"])[row],
        type=np.array([index_of[text] for text in texts]),
        stem=stem,
        chunk=chunk,
        number=_numbers(combined([rank, sort, stem, chunk])),
        is_comm=is_comm,
        between_two=is_comm & (kind_code >= 0),
        is_send=is_comm & (kind_code == 0),
        track=code["track"],
        group=code["group_name"],
        start=start,
        end=end,
        types=types,
        groups=tuple(str(text) for text in columns["group_name"][1]),
        dropped_steps=dropped,
    )


def parted(name: str) -> tuple[str, int, int]:
    """The name without chunk and numbers, its model chunk, and its stem: 0 forward, 1 backward, -1 neither."""
    match = _CHUNK.search(name)
    plain = re.sub(r"[0-9]+", "#", _CHUNK.sub("", name))
    stem = next((index for index, word in enumerate(PASSES) if word in plain), -1)
    return plain, int(match.group(1)) if match else 0, stem


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1


def _numbers(key: Ints) -> Ints:
    """Position of each row among those with the same key, from 0."""
    order = np.argsort(key, kind="stable")
    number = np.empty(len(key), dtype=np.int64)
    number[order] = _places(np.zeros(len(key), dtype=np.int64), key[order])
    return number
