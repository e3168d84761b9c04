"""What each thread of a training process is: by what the probe told, by its name, or by when it was made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.read.spool.process import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeprof.read.spool.process import Process

MAIN, MINDSPORE_THREAD, DATASET_THREAD = "main", "mindspore_thread", "dataset_thread"
PYTHON_THREAD, OTHER_THREAD, PROFILER = "python_thread", "other_thread", "profiler"

_MINDSPORE = re.compile(r"^(ActorThread|KernelThread|ParallelThread|ASYNC)_|_queue$")
_DATASET_MODULE = "mindspore.dataset"
_TICK_NS = 10_000_000  # the kernel tells a start in these


class ThreadKinds:
    """Kinds by thread id.

    Dataset operators' threads have no names of their own: they are made with an iterator's tree, while the iterator is
    built or its first batch is fetched.
    """

    def __init__(self, process: Process) -> None:
        self._pid = int(process.about["pid"])
        self._python = {int(event["tid"]): event for event in process.all("thread")}
        built = [(int(event["begin"]), int(event["end"])) for event in process.all("iterator") if "begin" in event]
        self._made = [*built, *_first_fetches(process)]
        self._named: dict[int, tuple[str, int]] = {}

    def learn(self, names: Iterable[tuple[int, str, int]]) -> None:
        """Take in names and starts that a sample tells."""
        for tid, name, start in names:
            self._named[tid] = (name, start)

    def kind(self, tid: int) -> str:
        """Of one thread."""
        if tid == self._pid:
            return MAIN
        event = self._python.get(tid)
        if event is not None:
            return self._of_python(event)
        name, start = self._named.get(tid, ("", None))
        if _MINDSPORE.search(name):
            return MINDSPORE_THREAD
        if start is not None and any(begin - _TICK_NS <= start <= end + _TICK_NS for begin, end in self._made):
            return DATASET_THREAD
        return OTHER_THREAD

    @staticmethod
    def _of_python(event: dict[str, object]) -> str:
        if event.get("ours"):
            return PROFILER
        module = str(event.get("module"))
        of_dataset = module == _DATASET_MODULE or module.startswith(_DATASET_MODULE + ".")
        return DATASET_THREAD if of_dataset else PYTHON_THREAD


def _first_fetches(process: Process) -> list[tuple[int, int]]:
    first: dict[int, tuple[int, int]] = {}
    for mark in process.marks:
        if mark.kind == Kind.FETCH:
            first.setdefault(mark.subject, (mark.begin, mark.end))
    return list(first.values())
