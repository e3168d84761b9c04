"""Operators as numbers, in bounded memory."""

from __future__ import annotations

MOST = 200_000  # that are told apart by name; of more, only the types
MOST_TEXT = 64 << 20  # characters of names, types and shapes together
LONGEST = 4_000  # characters of one text
FULL = f"more than {MOST:,} operators: of the others only the type is known"
_SHORT = 100  # characters of a type that counts when there are so many

Key = tuple[str | None, ...]


class Operators:
    """Different operators, numbered from `first`. A key is all that tells one from the others."""

    def __init__(self, first: int = 0) -> None:
        self.numbers: dict[Key, int] = {}
        self.full = False  # whether some got the number of what is less exact
        self._first = first
        self._text = 0

    def take(self, *keys: Key) -> tuple[int, Key | None]:
        """The number of an operator, and the key that it has got when it is new.

        Keys are given from the exact one to what is always taken: a later one serves when there are too many.
        """
        for level, key in enumerate(keys):
            number = self.numbers.get(key)
            if number is not None:
                return number, None
            size = sum(map(len, filter(None, key)))
            if level == len(keys) - 1 or self._fits(level, size):
                self._text += size
                self.numbers[key] = self._first + len(self.numbers)
                return self.numbers[key], key
            self.full = True
        raise ValueError("no key")

    def _fits(self, level: int, size: int) -> bool:
        if level == 0:
            return len(self.numbers) < MOST and self._text + size <= MOST_TEXT
        return len(self.numbers) < 2 * MOST and size <= _SHORT
