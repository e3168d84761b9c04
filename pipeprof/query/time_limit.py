"""How long a question may take: DuckDB is interrupted when its time is up, and by Ctrl-C at once."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import duckdb

from pipeprof.errors import QueryError
from pipeprof.record import limits


class _Question:
    """What a connection is asked, and when its time is up, on the monotonic clock."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, until: float) -> None:
        self.connection = connection
        self.until = until
        self.is_over = False


class _Watch:
    """Interrupts questions whose time is up. One thread for all: starting one takes longer than most questions."""

    def __init__(self) -> None:
        self.asked: set[_Question] = set()
        self._changed = threading.Condition()
        self._wakes = math.inf  # when the thread looks again by itself
        self._thread: threading.Thread | None = None
        self._keys = _Keys()

    def begin(self, question: _Question) -> None:
        with self._changed:
            self.asked.add(question)
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="pipeprof-time-limit", daemon=True)
                self._thread.start()
                self._keys.begin(self.interrupt_all)
            elif question.until < self._wakes:
                self._changed.notify()

    def end(self, question: _Question) -> None:
        """Stop watching: the query is not interrupted after this."""
        with self._changed:
            self.asked.discard(question)

    def close(self) -> None:
        """End the thread: one that is there when Python ends keeps DuckDB, which complains of that."""
        thread, self._thread = self._thread, None
        self._keys.end()
        if thread is not None:
            with self._changed:
                self._changed.notify()
            thread.join()

    def interrupt_all(self) -> None:
        """Interrupt all running queries, as Ctrl-C does."""
        with self._changed:
            for question in self.asked:
                with contextlib.suppress(duckdb.Error):
                    question.connection.interrupt()

    def forget(self) -> None:
        """In a child, which has neither the threads nor the keys of its parent."""
        self._keys.forget()

    def _look(self) -> None:
        with self._changed:
            while self._thread is threading.current_thread():
                now = time.monotonic()
                self._interrupt(now)
                self._wakes = min((one.until for one in self.asked), default=math.inf)
                self._changed.wait(None if self._wakes == math.inf else self._wakes - now)

    def _interrupt(self, now: float) -> None:
        for question in [one for one in self.asked if one.until <= now]:
            question.is_over = True
            self.asked.remove(question)
            with contextlib.suppress(duckdb.Error):  # it may be closed by now
                question.connection.interrupt()


class _Keys:
    """Hears of Ctrl-C while the main thread is inside DuckDB, which looks for signals only between pieces of its work.

    Python's own handler writes a byte for each signal, where nothing else of the program has it write already.
    """

    def __init__(self) -> None:
        self._ends: tuple[int, int] | None = None  # of a pipe: read, write
        self._thread: threading.Thread | None = None

    def begin(self, pressed: Callable[[], None]) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        read, write = os.pipe()
        os.set_blocking(write, False)
        before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        if before != -1:  # a loop of asyncio's, for one
            signal.set_wakeup_fd(before)
            os.close(read)
            os.close(write)
            return
        self._ends = read, write
        self._thread = threading.Thread(target=_hear, args=(read, pressed), name="pipeprof-keys", daemon=True)
        self._thread.start()

    def end(self) -> None:
        ends, self._ends = self._ends, None
        if ends is None or self._thread is None:
            return
        with contextlib.suppress(ValueError):  # not in the main thread
            if signal.set_wakeup_fd(-1) != ends[1]:
                return  # of somebody else by now: the bytes of ours, should any come, are nobody's
        os.close(ends[1])
        self._thread.join()

    def forget(self) -> None:
        """In a child: signals of its own are none of its parent's."""
        if self._ends is not None:
            with contextlib.suppress(ValueError):
                signal.set_wakeup_fd(-1)
            for end in self._ends:
                os.close(end)


def _hear(read: int, pressed: Callable[[], None]) -> None:
    while heard := os.read(read, 64):
        if signal.SIGINT in heard:
            pressed()
    os.close(read)


_watch = _Watch()


def _of_a_child() -> None:
    """A child has none of its parent's threads, and maybe a lock that one of them holds."""
    global _watch  # noqa: PLW0603 - one for each process
    _watch.forget()
    _watch = _Watch()


os.register_at_fork(after_in_child=_of_a_child)
atexit.register(lambda: _watch.close())  # noqa: PLW0108 - the one of that time


@contextlib.contextmanager
def in_time(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let DuckDB work for so long as a question may take.

    Raises QueryError when it was interrupted for that; what is interrupted by a key is told as before.
    """
    watch, question = _watch, _Question(connection, time.monotonic() + limits.most_query_seconds())
    watch.begin(question)
    try:
        yield
    except (duckdb.Error, OSError, ValueError, RuntimeError) as error:  # Arrow hands errors of a stream on as its own
        if question.is_over and "interrupt" in str(error).lower():
            raise taken_too_long() from error
        raise
    finally:
        watch.end(question)


def taken_too_long() -> QueryError:
    """Error for a query whose time is up."""
    return QueryError(
        f"the query took longer than {limits.most_query_seconds():,} s",
        f"ask for fewer rows at once, or set {limits.QUERY_SECONDS} to allow more",
    )
