"""Rows of whole numbers by their number, on disk: a few pages of them are in memory at a time."""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.errors import RunError

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray
    from typing_extensions import Self

NONE = -1
PAGE = 1 << 14  # rows
_HELD = 64  # pages


class Paged:
    """`columns` integers per number (0 and above); NONE where nothing was put. The file goes with the `with` block.

    Numbers that lie near each other are cheap to use together. Raises RunError when the disk is full.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._file = tempfile.TemporaryFile(prefix="pipeprof-")  # noqa: SIM115 - closed by __exit__
        self._slots: dict[int, int] = {}
        self._held: OrderedDict[int, NDArray[np.int64]] = OrderedDict()
        self._changed: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def pages(self) -> list[int]:
        """Those in which something was put, from the first number to the last."""
        return sorted(self._slots)

    def page(self, number: int) -> NDArray[np.int64]:
        """Rows PAGE * number and on, shape (PAGE, columns); `put` changes what is stored, not this array."""
        rows = self._held.get(number)
        if rows is None:
            rows = self._held[number] = self._read(number)
            self._shrink()
        self._held.move_to_end(number)
        return rows

    def get(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows by number, shape (len(numbers), columns)."""
        rows = np.full((len(numbers), self._columns), NONE, np.int64)
        for page, places in _by_page(numbers):
            if page in self._slots:
                rows[places] = self.page(page)[numbers[places] % PAGE]
        return rows

    def put(self, numbers: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Store rows, shape (len(numbers), columns)."""
        for page, places in _by_page(numbers):
            self._slots.setdefault(page, len(self._slots))
            held = self.page(page)
            self._changed.add(page)
            held[numbers[places] % PAGE] = rows[places]

    def _read(self, number: int) -> NDArray[np.int64]:
        rows = np.full((PAGE, self._columns), NONE, np.int64)
        slot = self._slots.get(number)
        if slot is not None:
            self._file.seek(slot * rows.nbytes)
            stored = np.frombuffer(self._file.read(rows.nbytes), np.int64)
            if stored.size == rows.size:
                rows = stored.reshape(rows.shape).copy()
        return rows

    def _shrink(self) -> None:
        while len(self._held) > _HELD:
            page, rows = self._held.popitem(last=False)
            if page in self._changed:
                self._changed.discard(page)
                self._write(self._slots[page] * rows.nbytes, rows)

    def _write(self, at: int, rows: NDArray[np.int64]) -> None:
        try:
            self._file.seek(at)
            self._file.write(rows.data)
        except OSError as error:
            where = f"a temporary file in `{tempfile.gettempdir()}`"
            hint = "free some space, or set TMPDIR to a folder on another disk"
            raise RunError(f"cannot write {where}: {error.strerror}", hint) from error


def _by_page(numbers: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    """Each page with the places in `numbers` that lie on it."""
    if not len(numbers):
        return []
    pages = numbers // PAGE
    order = np.argsort(pages, kind="stable")
    edges = np.flatnonzero(np.diff(pages[order])) + 1
    return [(int(pages[part[0]]), part) for part in np.split(order, edges)]
