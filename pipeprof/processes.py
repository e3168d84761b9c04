"""Processes of this machine that share work: each does one part after the other of what a function of ours is given.

They are not those of `multiprocessing`, which run the program that asks once more: it may be a user's script. None
outlives `each`, nor the process that asks, and what they leave in the temporary folder goes with them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from itertools import islice
from typing import IO, Any, NamedTuple, TypeVar

from pipeprof.errors import RunError

Part = TypeVar("Part")
Answer = TypeVar("Answer")

MOST = 8  # each needs some 200 MiB
_SHARED = "PIPEPROF_SHARES_MACHINE"
_PROGRAM = "import sys; sys.path[:] = {!r}; from pipeprof import processes; processes.serve()"
_SAY: ContextVar[Callable[[str], None] | None] = ContextVar("say", default=None)


class ProcessEndedError(RunError):
    """A process was ended from outside, with this status, while it did the part of this number."""

    part = status = -1


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_one_of_several() -> bool:
    """Whether this process shares the machine with others that do the same, here or as a worker of a cluster."""
    return _SHARED in os.environ or multiprocessing.parent_process() is not None


def say(text: str) -> None:
    """Progress, to whoever asked for the part that is being done."""
    progress = _SAY.get()
    if progress is not None:
        progress(text)


def listener() -> Callable[[str], None]:
    """What hears `say` at this moment, also while a part of the part that is being done has its own."""
    return _SAY.get() or (lambda _text: None)


def here(
    function: Callable[[Part], Answer], parts: Sequence[Part], progress: Callable[[str], None] | None = None
) -> Iterator[tuple[int, Answer]]:  # fmt: skip
    """As `each`, in this process."""
    for number, part in enumerate(parts):
        token = _SAY.set(progress)
        try:
            answer = function(part)
        finally:
            _SAY.reset(token)
        yield number, answer


def each(
    function: Callable[[Part], Answer], parts: Sequence[Part], count: int, progress: Callable[[str], None] | None = None
) -> Iterator[tuple[int, Answer]]:  # fmt: skip
    """The number of each part with its answer, as they are done by so many processes, which begin with the first parts.

    What the function raises is raised, once, and ends them all. Raises ProcessEndedError.
    """
    answers: queue.SimpleQueue[_Said] = queue.SimpleQueue()
    with contextlib.ExitStack() as exits:
        folder = exits.enter_context(tempfile.TemporaryDirectory(prefix="pipeprof-", ignore_cleanup_errors=True))
        waiting = enumerate(parts)
        for number, part in islice(waiting, count):
            process = _Process(folder, answers)
            exits.callback(process.stop)
            process.ask(number, (function, part))
        left = len(parts)
        while left:
            process, kind, value = answers.get()
            if kind == "answer":
                left -= 1
                number = process.part
                for task in islice(waiting, 1):
                    process.ask(task[0], (function, task[1]))
                yield number, value
            elif kind == "error":
                error, text = value
                raise error from _ElsewhereError(text)
            elif kind == "end":
                raise process.ended()
            elif progress is not None:
                progress(value)


class _ElsewhereError(Exception):
    """The traceback of the process that raised: shown above that of this one."""


class _Process:
    """One process, and a thread that listens to it."""

    def __init__(self, folder: str, answers: queue.SimpleQueue[_Said]) -> None:
        self.part = -1
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, _SHARED: "1", "TMPDIR": folder},
        )  # fmt: skip
        self._thread = threading.Thread(target=self._listen, args=(self._process.stdout, answers), daemon=True)
        self._thread.start()

    def ask(self, number: int, task: tuple[Callable[[Part], Answer], Part]) -> None:
        """Have a part done."""
        self.part = number
        try:
            if self._process.stdin is not None:
                pickle.dump(pickle.dumps(task), self._process.stdin)  # twice: what takes it does not import
                self._process.stdin.flush()
        except OSError as error:
            raise self.ended() from error

    def ended(self) -> ProcessEndedError:
        """The error for a process that ended while it was needed."""
        status = self._process.wait()
        error = ProcessEndedError(
            f"a process that did a part of the work was ended (status {status})", "is there enough memory?"
        )
        error.part, error.status = self.part, status
        return error

    def stop(self) -> None:
        """End the process, whatever it does, and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what could not be sent to a process that died
                    pipe.close()

    def _listen(self, pipe: IO[bytes], answers: queue.SimpleQueue[_Said]) -> None:
        last = _Said(self, "end", None)
        try:
            while True:
                answers.put(_Said(self, *pickle.load(pipe)))  # noqa: S301 - from a process of our own
        except (EOFError, pickle.UnpicklingError):
            pass
        except Exception as error:  # noqa: BLE001 - its class's own; whoever waits must be told
            last = _Said(self, "error", (error, "what a process answered cannot be read"))
        answers.put(last)


class _Said(NamedTuple):
    """What a process said: progress, an answer, an error with its traceback, or its end."""

    process: _Process
    kind: str
    value: Any


def serve() -> None:
    """Do the parts that come on stdin, until it ends: so this process does not outlive the one that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what else is printed must not get between the answers
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_take, args=(tasks,), daemon=True).start()

    def tell(kind: str, value: Any) -> None:
        answers.write(pickle.dumps((kind, value)))
        answers.flush()

    _SAY.set(lambda text: tell("progress", text))
    while True:
        try:
            function, part = pickle.loads(tasks.get())  # noqa: S301 - from the process that started this one
            tell("answer", function(part))
        except Exception as error:  # noqa: BLE001 - raised where the part was asked for
            tell("error", (_portable(error), traceback.format_exc()))


def _portable(error: Exception) -> Exception:
    """The error, or one that says the same where it cannot be made again elsewhere."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - what was just written
    except Exception:  # noqa: BLE001 - its class's own
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _take(tasks: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            tasks.put(pickle.load(sys.stdin.buffer))  # noqa: S301 - as above
    os._exit(0)
