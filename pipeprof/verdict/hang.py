"""Whether a training that did not end well had stood still before its end, and what each of its ranks was in.

How a command ended. Pure: exit codes as the shell, Python and containers give them.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeprof.verdict import waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeprof.record.run import Rank, Rep
    from pipeprof.record.whereabouts import Last, Live


LEAST_S = 5.0  # shorter than that nobody calls it a hang
TIMES = 5  # the longest training step: one that takes that much longer is no step
EARLY_S = 2.0  # a process that ended so long before its command was not ended with it


@dataclass(frozen=True)
class Hang:
    """`rows`: of each rank what it was in at its end, as verdict/waiting.judge tells it; first the one to look at.

    `for_s`: how long that one had been in it. `stepped`: whether training steps were complete before.
    """

    rep: int
    for_s: float
    stepped: bool
    rows: Sequence[dict[str, Any]]


def hang_of(reps: Sequence[Rep]) -> Hang | None:
    """Of the first repetition that did not end well; None where no rank had stood still."""
    rep = next((rep for rep in reps if rep.exit_code != 0), None)
    if rep is None:
        return None
    ends = [(rank, rank.last) for rank in rep.ranks if rank.last is not None]
    rows = waiting.judge([_live(rep.rep, rank, last) for rank, last in ends])
    still = [row for row, (_, last) in zip(rows, ends, strict=True) if _is_still(row, last)]
    if not still:
        return None
    first = min(still, key=lambda row: (_is_of_others(row), -row["for_s"]))
    others = [row for row in rows if row is not first]
    stepped = any(last.longest_step_ns is not None for _, last in ends)
    return Hang(rep.rep, first["for_s"], stepped, [first, *others])


def _live(rep: int, rank: Rank, last: Last) -> Live:
    """The rank as it was when its command ended; one that had ended long before is gone then."""
    early = last.gone_s > EARLY_S
    return last.as_live(rep, rank.rank, rank.pid, alive=not early, ended=early and rank.ended == "normal")


def _is_still(row: dict[str, Any], last: Last) -> bool:
    return row["for_s"] is not None and row["for_s"] >= max(LEAST_S, TIMES * (last.longest_step_ns or 0) / 1e9)


def _is_of_others(row: dict[str, Any]) -> bool:
    """Whether it waited for another rank, or may have."""
    return row["code"] in (waiting.COLLECTIVE, *waiting.ON_DEVICE)


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
