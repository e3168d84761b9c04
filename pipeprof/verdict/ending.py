"""Whether a command ended with an error. Pure: exit codes as the shell, Python and containers give them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

STOPPED = (124, 128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP)  # 124: by timeout(1)
INTERRUPTED = (-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP, *STOPPED)
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # by the kernel, or in a shell or container
INTERRUPT = "KeyboardInterrupt"


def has_failed(state: str, codes: Sequence[int | None]) -> bool:
    """Whether a repetition ended with an error; a training that somebody stopped is still worth its report."""
    was_stopped = any(code in STOPPED for code in codes)
    return any(map(is_bad, codes)) or (state == "failed" and not was_stopped)


def is_bad(code: int | None) -> bool:
    """Whether an exit code is an error; None: nobody knows it."""
    return code not in (0, None, *INTERRUPTED)


def was_an_error(error: str | None) -> bool:
    """Whether an exception ended it; one that came of Ctrl-C says only that somebody saw it hang."""
    return error is not None and not error.startswith(INTERRUPT)
