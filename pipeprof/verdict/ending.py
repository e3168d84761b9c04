"""How a command ended. Pure: exit codes as the shell, Python and containers give them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STOPPED = (124, 128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP)  # 124: by timeout(1)
INTERRUPTED = (-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP, *STOPPED)
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # by the kernel, or in a shell or container
CPU_LIMIT = (-signal.SIGXCPU, 128 + signal.SIGXCPU)
INTERRUPT = "KeyboardInterrupt"
# Of the CPU time that a process was allowed. The kernel counts ticks for it: on a busy machine it ended processes
# that had used 1.77 and 1.85 s of 2 s.
NEAR_LIMIT = 0.85


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


def ran_out_of_cpu(code: int | None, used: Iterable[tuple[float, int]]) -> bool:
    """Whether a limit of CPU time ended it: by a signal of its own, or by a kill when all of it was used.

    `used`: CPU seconds of its processes, each with how many it was allowed.
    """
    if code in KILLED:
        return any(cpu_s >= NEAR_LIMIT * limit_s for cpu_s, limit_s in used)
    return code in CPU_LIMIT
