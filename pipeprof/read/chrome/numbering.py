"""Texts, descriptions and tracks as small numbers, in bounded memory. A track is a thread or a stream: (pid, tid)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from pipeprof.read.chrome.dialect import DEVICE_PROCESS, STREAM

if TYPE_CHECKING:
    import re
    from collections.abc import Hashable, Sequence

    from pipeprof.read.chrome.events import Event, Loose
    from pipeprof.read.source.numbers import Ints

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

    def number(self, value: _Key) -> int:
        """The number of a value."""
        number = self.numbers.get(value)
        return self.add(value, 0) if number is None else number

    def of(self, values: Sequence[_Key]) -> Ints:
        """The numbers of many values."""
        numbers = list(map(self.numbers.get, values))
        return np.array(list(map(self.number, values)) if None in numbers else numbers, np.int64)

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


class Tracks(Numbers["tuple[Loose, Loose]"]):
    """Numbers from 0 in order of appearance. `plain`: a track is named as its thread is, without the process."""

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__(("(other)", "(other)"))
        self._plain = plain
        self.processes: dict[Loose, str] = {}
        self.devices: dict[Loose, bool] = {}  # processes that are devices, and whether they have streams
        self.labels: dict[Loose, str] = {}
        self.threads: dict[tuple[Loose, Loose], str] = {}

    def of_events(self, events: Sequence[Event]) -> Ints:
        """The thread or stream of each event."""
        return self.of([(event.pid, event.tid) for event in events])

    def describe(self, event: Event) -> None:
        """Take in a metadata event."""
        args = event.args
        if args is None or len(self.threads) + len(self.processes) >= MOST:
            return
        if event.name == "process_name" and args.name is not None:
            self.processes[event.pid] = name = shortened(str(args.name))
            if name.startswith(DEVICE_PROCESS):
                self.devices.setdefault(event.pid, False)
        elif event.name == "process_labels" and args.labels is not None:
            self.labels[event.pid] = shortened(str(args.labels))
        elif event.name == "thread_name" and args.name is not None:
            self.threads[event.pid, event.tid] = name = shortened(str(args.name)).strip()
            if event.pid in self.devices:
                self.devices[event.pid] |= name.startswith(STREAM)

    def process(self, number: int) -> str:
        """Name of the process that a track belongs to; empty when unknown."""
        return self.processes.get(self.values[number][0], "")

    def named(self, pattern: re.Pattern[str]) -> set[int]:
        """The tracks whose thread has such a name."""
        return {number for number, pair in enumerate(self.values) if pattern.search(self.threads.get(pair, ""))}

    def names(self) -> list[str]:
        """`process pid / thread` per track, as in a trace viewer; equal names in a process with the number."""
        if self._plain:
            return [self.threads.get(pair) or f"{pair[1]}" for pair in self.values]
        names = []
        alike = Counter((pair[0], self.threads.get(pair)) for pair in self.values)
        for pid, tid in self.values:
            label = self.labels.get(pid, "")
            process = label if label and label != "CPU" else self.processes.get(pid, "")
            name = self.threads.get((pid, tid))
            thread = name if name and alike[pid, name] == 1 else _joined(name, tid)
            shown = process if process and (label == process or type(pid) is not int) else _joined(process, pid)
            names.append(shortened(" / ".join(filter(None, (shown, thread))) or "(none)"))
        return names


def _joined(name: str | None, number: Loose) -> str:
    """A name with its number, as far as an event has them."""
    return " ".join(str(part) for part in (name or None, number) if part is not None)
