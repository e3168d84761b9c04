"""Signals that wait while threads are started."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

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
