"""Ranks on one clock, and the part of each that is drawn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import UsageError
from pipeprof.report.words import ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeprof.query.engine import Engine
    from pipeprof.record.run import Manifest, Rank, Run

FIRST, LAST = -(2**62), 2**62
_STEPS = re.compile(r"([0-9]{0,18}):([0-9]{0,18})")
_RANKS = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*")


class Process(NamedTuple):
    """A rank of a repetition. `offset_ns` is added to its times; drawn is what touches `first_ns` to `last_ns`."""

    rep: int
    rank: int
    pid: int
    title: str
    host: str
    offset_ns: int
    first_ns: int = FIRST
    last_ns: int = LAST


def parse_steps(text: str) -> tuple[int | None, int | None]:
    """`A:B`: from step A up to, and without, step B; either may be left out. Raises UsageError otherwise."""
    match = _STEPS.fullmatch(text.strip())
    first, last = (None if not part else int(part) for part in (match.groups() if match else ("", "")))
    if match is None or (first is not None and last is not None and first >= last):
        raise UsageError(
            f"--steps is `{text}`, expected FIRST:END with FIRST < END", "for steps 10 to 19: --steps 10:20"
        )
    return first, last


def parse_ranks(text: str) -> frozenset[int]:
    """`0,2,4-7` as a set. Raises UsageError when it is not of this form."""
    parts = text.strip().split(",") if _RANKS.fullmatch(text.strip()) else []
    ends = [(int(first), int(last or first)) for first, _, last in (part.partition("-") for part in parts)]
    if not ends or any(first > last for first, last in ends):
        raise UsageError(
            f"--ranks is `{text}`, expected numbers and ranges FIRST-LAST, of at most six digits",
            "such as: --ranks 0,2,4-7",
        )
    return frozenset(rank for first, last in ends for rank in range(first, last + 1))


def numbers_text(numbers: Iterable[int]) -> str:
    """Numbers in order, neighbours as a range: `0-3, 7`."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges(numbers))


def check_stored(what: str, wanted: Iterable[int], stored: Iterable[int]) -> None:
    """Raise UsageError when a repetition or rank is wanted that the run does not have."""
    there = set(stored)
    missing = set(wanted) - there
    if missing:
        lack, have = (f"{what}{'' if len(set(some)) == 1 else 's'} {numbers_text(some)}" for some in (missing, there))
        raise UsageError(f"the run has no {lack}: it has {have}", "choose among these")


def aligned(manifest: Manifest, stored: Sequence[tuple[int, int]]) -> tuple[int, list[Process]]:
    """Wall-clock time (ns) of the trace's zero, and the process of each (rep, rank) in `stored`.

    Ranks of one host are laid on each other by the monotonic clock, which never jumps; hosts by the wall clock. A rank
    that the manifest does not name is taken to begin with its repetition.
    """
    ranks = {(rep.rep, rank.rank): rank for rep in manifest.reps for rank in rep.ranks}
    starts = {rep.rep: rep.zero_realtime_ns for rep in manifest.reps}
    anchors: dict[tuple[int, str], Rank] = {}
    zeros = {}
    for rep, number in stored:
        rank = ranks.get((rep, number))
        if rank is None:
            zeros[rep, number] = starts.get(rep, 0)
            continue
        anchor = anchors.setdefault((rep, rank.host), rank)
        zeros[rep, number] = rank.zero_realtime_ns
        if rank.zero_monotonic_ns and anchor.zero_monotonic_ns:
            apart = rank.zero_monotonic_ns - anchor.zero_monotonic_ns
            zeros[rep, number] = anchor.zero_realtime_ns + apart
    base = min(zeros.values(), default=0)
    several = len({rep for rep, _ in stored}) > 1
    processes = []
    for pid, (rep, number) in enumerate(stored, 1):
        rank = ranks.get((rep, number))
        title, host = _title(rep, number, rank, several=several), "" if rank is None else rank.host
        processes.append(Process(rep, number, pid, title, host, zeros[rep, number] - base))
    return base, processes


def within_steps(processes: Sequence[Process], engine: Engine, steps: tuple[int | None, int | None]) -> list[Process]:
    """Each process cut to the time of these steps; those without any are left out. Raises UsageError when none has."""
    first, last = steps
    wanted = {"first": 0 if first is None else first, "last": LAST if last is None else last - 1}
    windows = {(row["rep"], row["rank"]): row for row in engine.rows("timeline/step_window", **wanted)}
    cut = [
        process._replace(first_ns=windows[key]["start_ns"], last_ns=windows[key]["end_ns"])
        for process in processes
        if (key := (process.rep, process.rank)) in windows
    ]
    if not cut:
        raise no_such_steps(engine)
    return cut


def no_such_steps(engine: Engine) -> UsageError:
    """The error for --steps that a run does not have."""
    there = engine.rows("timeline/step_window", first=0, last=LAST)
    if not there:
        return UsageError("--steps: the run has no steps", "leave --steps out")
    first, last = min(row["first_step"] for row in there), max(row["last_step"] for row in there)
    return UsageError(
        f"--steps matches no step: the run has steps {first} to {last}", f"for all: --steps {first}:{last + 1}"
    )


def stored_ranks(run: Run, tables: Sequence[str]) -> list[tuple[int, int]]:
    """Every (rep, rank) that has rows in one of the tables."""
    from pipeprof.record.store import places  # noqa: PLC0415 - slow to import

    return sorted({rank for table in tables for path in run.files(table) for rank in places(path)})


def _title(rep: int, number: int, rank: Rank | None, *, several: bool) -> str:
    parts = [f"rep {rep}"] if several else []
    parts.append(f"rank {number}")
    if rank is not None:
        parts += [part for part in (rank.host, f"pid {rank.pid}" if rank.pid else "") if part]
    return " · ".join(parts)
