"""Texts and descriptions as small numbers, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

LONGEST = 4_000  # characters of one text that are kept
MOST = 200_000  # different ones
MOST_BYTES = 48 << 20

_Key = TypeVar("_Key", bound="Hashable")


class Numbers(Generic[_Key]):
    """Different values, numbered from 0. Past the limits every new one gets the number of `other`."""

    def __init__(self, other: _Key) -> None:
        self.values: list[_Key] = []
        self.numbers: dict[_Key, int] = {}
        self.left_out = 0
        self._bytes = 0
        self._other = other

    def add(self, value: _Key, size: int) -> int:
        """The number of a value that has none yet; `size` is about how many bytes it takes."""
        if len(self.values) >= MOST or self._bytes + size > MOST_BYTES:
            self.left_out += 1
            value, size = self._other, 0
            if value in self.numbers:
                return self.numbers[value]
        self._bytes += size
        self.numbers[value] = len(self.values)
        self.values.append(value)
        return len(self.values) - 1


class Texts(Numbers[str]):
    """Different texts, numbered; long ones are cut."""

    def __init__(self) -> None:
        super().__init__("(other)")

    def number(self, text: str) -> int:
        """The number of a text."""
        number = self.numbers.get(text)
        if number is not None:
            return number
        short = shortened(text)
        return self.numbers[short] if short in self.numbers else self.add(short, len(short))


def shortened(text: str) -> str:
    """A text of at most LONGEST characters; a cut one ends in `...`."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
