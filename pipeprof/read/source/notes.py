"""What was odd in the files, for the user."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Notes:
    """What was odd, for the user: `add` says it at once, `count` gathers equal oddities of one file into one line."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], None] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, code: str, message: str) -> None:
        """Say a thing once."""
        self._said[code, message] = None

    def count(self, path: Path, what: str, times: int = 1) -> None:
        """One more value of this file that was left out, for this reason."""
        if times:
            self._counts[path.name, what] += times

    def all(self) -> list[tuple[str, str]]:
        """(code, message) of everything, in the order it was found; left-out values last."""
        return list(self._said) + [
            ("bad_value", f"`{name}`: {'1 entry was' if times == 1 else f'{times:,} entries were'} left out: {what}")
            for (name, what), times in self._counts.items()
        ]
