"""Signals that wait while threads are started.

A time limit for what is started meanwhile.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

import psutil

from pipeprof.collect.launch import FORWARDED

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals back. Threads that are started meanwhile never take them, so they go on reaching the launcher."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


GRACE_S = 10.0  # from the request to end to the end


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[threading.Event]:
    """End what was started meanwhile when it takes longer; the event says whether that happened."""
    expired, over = threading.Event(), threading.Event()
    if seconds is None:
        yield expired
        return

    def watch() -> None:
        if not over.wait(seconds):
            expired.set()
            end_all(kill=False)
            if not over.wait(GRACE_S):
                end_all(kill=True)

    thread = threading.Thread(target=watch, daemon=True)
    with signals_held():  # or it would take the signals that are for the launcher
        thread.start()
    try:
        yield expired
    finally:
        over.set()
        thread.join()


def end_all(*, kill: bool) -> None:
    """End the processes that this one started, and theirs."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill() if kill else process.terminate()
