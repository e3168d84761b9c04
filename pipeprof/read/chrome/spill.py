"""Rows on disk between the two passes over a trace, so that memory does not grow with the trace."""

from __future__ import annotations

import contextlib
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeprof.errors import RunError
from pipeprof.record.store import not_written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import IO

    from typing_extensions import Self

    from pipeprof.read.source.numbers import Ints

NONE = -1  # no link, no sequence number, no group
# Kinds of rows of `call`, in their order at one time; what is LAUNCHED above a call belongs to the caller.
LAUNCH_ABOVE, CALL, ALLOCATE, LAUNCH = -1, 0, 1, 2

COLUMNS: dict[str, tuple[str, ...]] = {
    "call": (
        "kind", "start", "end", "track", "info", "link", "sequence", "backward", "delta", "address", "device",
    ),
    "other": ("start", "dur", "track", "category", "name", "link", "correlation", "bytes", "group", "occupancy"),
    "flow": ("id", "id_text", "category", "name", "side", "t", "track"),
    "counter": ("t", "track", "name", "series", "value"),
    "reading": ("t", "device", "allocated", "reserved"),
}  # fmt: skip

Columns = dict[str, "Ints"]


class _Part(NamedTuple):
    at: int  # byte
    rows: int
    first: int


class Spill:
    """Batches of rows of int64 per kind, written in order and read back in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self._parts: dict[str, list[_Part]] = {kind: [] for kind in COLUMNS}

    def add(self, kind: str, rows: Sequence[tuple[int, ...]] | Ints) -> None:
        """Append one batch; nothing for no rows. Raises RunError when the disk is full."""
        if not len(rows):
            return
        table = np.ascontiguousarray(np.asarray(rows, np.int64).T)
        try:
            if kind not in self._files:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._files[kind] = self._folder.joinpath(kind).open("ab")
            self._parts[kind].append(_Part(self._files[kind].tell(), table.shape[1], int(table[1].min())))
            self._files[kind].write(table.data)
        except OSError as error:
            raise not_written(self._folder, error) from error

    def finish(self) -> None:
        """Close the files: no batch will come soon. One that comes all the same opens its file again."""
        files, self._files = self._files, {}
        try:
            for file in files.values():
                file.close()
        except OSError as error:
            raise not_written(self._folder, error) from error

    def read(self, kind: str) -> Iterator[Columns]:
        """The batches of a kind, one at a time."""
        return (columns for columns, _ in self._read(kind, self._parts[kind]))

    def calls_by_start(self) -> Iterator[Columns]:
        """Blocks of `call`: all rows by start, then kind, then the longest first, then in the order of the file.

        Profilers write nearly in this order. Batches are read by their first start, and a row waits until no batch that
        is not read yet begins before it: several runs, each in order, are merged; rows of a batch may be in any order.
        """
        waiting: Columns = {}
        for block, limit in self._read("call", sorted(self._parts["call"], key=lambda part: (part.first, part.at))):
            rows = {name: np.concatenate([waiting[name], block[name]]) for name in block} if waiting else block
            order = np.lexsort((-rows["end"], rows["kind"], rows["start"]))
            ready = len(order) if limit is None else int(np.searchsorted(rows["start"][order], limit, "left"))
            if ready:
                yield {name: values[order[:ready]] for name, values in rows.items()}
            waiting = {name: values[order[ready:]] for name, values in rows.items()}

    def _read(self, kind: str, parts: Sequence[_Part]) -> Iterator[tuple[Columns, int | None]]:
        """Batches, each with the least value of the second column of the next one; None at the end."""
        if not parts:
            return
        names = COLUMNS[kind]
        with self._folder.joinpath(kind).open("rb") as file:
            for part, following in zip_longest(parts, parts[1:]):
                file.seek(part.at)
                table = np.frombuffer(file.read(part.rows * len(names) * 8), np.int64).reshape(len(names), -1)
                yield dict(zip(names, table, strict=True)), following.first if following else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(RunError):
            self.finish()
