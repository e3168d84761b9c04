"""Who is who among the sampled processes of one rank: trainer, dataset worker, other child, launcher, other rank."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeprof.read.spool.lines import SpoolNotes, content

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    Sample = Mapping[str, Any]

TRAINER, WORKER, CHILD, LAUNCHER, OTHER = "trainer", "worker", "child", "launcher", "other_rank"
_PID = re.compile("[0-9]{1,9}")


@dataclass(frozen=True)
class Origin:
    """The line of Python that made a process, as the probe noted it; texts are empty when there is nothing to say."""

    dataset: bool
    what: str
    site: str
    library: str


@dataclass(frozen=True)
class Member:
    """What a process is, and the process that it counts with: the first one below the trainer or the launcher."""

    part: str
    head: int


def read_origins(path: Path, notes: SpoolNotes) -> dict[int, Origin]:
    """Origins by process id; the first line of a process counts, a line that was cut off does not."""
    origins: dict[int, Origin] = {}
    text = content(path, notes).decode("utf-8", "replace")
    for line in text.split("\n"):
        fields = line.split("\t")
        if len(fields) == 7 and _PID.fullmatch(fields[0]):
            origins.setdefault(int(fields[0]), Origin(fields[3] == "1", *fields[4:]))
    return origins


def ancestors(pid: int, parents: Mapping[int, int]) -> list[int]:
    """A process and those above it, each once: in a damaged sample one may descend from itself."""
    passed: dict[int, None] = {}
    at: int | None = pid
    while at is not None and at not in passed:
        passed[at] = None
        at = parents.get(at)
    return list(passed)


class Family:
    """Places processes by their descent; one whose parent ended stays what it was."""

    def __init__(
        self, samples: Sequence[Sample], mine: Collection[int], others: Collection[int], origins: Mapping[int, Origin]
    ) -> None:
        self._mine = frozenset(mine)
        self._others = frozenset(others)
        self._origins = origins
        self._above: set[int] = set()
        for sample in samples:
            parents = {process["pid"]: process["ppid"] for process in sample["procs"]}
            for pid in self._mine | self._others:
                self._above.update(ancestors(pid, parents)[1:])
        self._members: dict[tuple[int, float], Member] = {}

    def members(self, sample: Sample) -> dict[int, Member]:
        """What each process of the sample is."""
        parents = {process["pid"]: process["ppid"] for process in sample["procs"]}
        members = {}
        for process in sample["procs"]:
            key = (process["pid"], process.get("born", 0.0))
            if key not in self._members:
                self._members[key] = self._member(process["pid"], parents)
            members[process["pid"]] = self._members[key]
        return members

    def _member(self, pid: int, parents: Mapping[int, int]) -> Member:
        head = pid
        for head in ancestors(pid, parents):
            if head in self._mine:
                return Member(TRAINER, head)
            if head in self._others:
                return Member(OTHER, head)
            if head in self._above:
                return Member(LAUNCHER, head)
            parent = parents.get(head)
            if parent in self._mine or parent in self._above:
                return Member(self._kind(head), head)
        return Member(CHILD, head)

    def origin(self, pid: int) -> dict[str, str | None]:
        """Columns `what`, `site` and `library` of a process."""
        origin = self._origins.get(pid, Origin(dataset=False, what="", site="", library=""))
        return {name: getattr(origin, name) or None for name in ("what", "site", "library")}

    def _kind(self, head: int) -> str:
        origin = self._origins.get(head)
        return WORKER if origin is not None and origin.dataset else CHILD
