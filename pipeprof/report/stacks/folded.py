"""Stacks of operators for flame graphs: folded text and speedscope's JSON.

Folded text has one line per stack, `outermost;...;innermost weight`, as flamegraph.pl and its relatives read it.
Speedscope's format: https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof import escape
from pipeprof.errors import RunError, UsageError
from pipeprof.query.engine import Engine
from pipeprof.query.part import Part
from pipeprof.report.stacks.calls import Steps, call_stacks
from pipeprof.report.timeline.clock import no_such_steps, stored_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipeprof.record.run import Run

WAYS = ("stack", "call", "scope")
UNITS = {"host": "nanoseconds", "device": "nanoseconds", "count": "none", "memory": "bytes"}
COLUMNS = {"host": "host_ns", "device": "device_ns", "count": "count", "memory": "memory_bytes"}
NO_STACK = "(no stack)"
_LAST = 2**62
_CYCLE = 10_000  # frames: more than any real stack has


class Stack(NamedTuple):
    """Frames, the outermost first, and what was spent in the last of them."""

    frames: tuple[str, ...]
    weight: int


class Question(NamedTuple):
    """What is drawn. `way`: stack (source locations), call (operators that call operators), scope (modules of the net).

    `depth` keeps that many innermost frames of the source location (None: all), as `group_by_stack_n` does. `steps`
    is from the first up to, and without, the second; None: everything. `only` the stacks of one (rep, rank).
    """

    way: str | None = None
    weight: str = "host"
    depth: int | None = None
    steps: tuple[int | None, int | None] | None = None
    only: tuple[int, int] | None = None


Profiles = dict[tuple[int, int], list[Stack]]
_Weighted = tuple[tuple[int, int], tuple[str, ...], int]


def stacks(run: Run, question: Question) -> tuple[str, Profiles]:
    """The way that was taken, and the stacks of each (rep, rank), by frames; weights are positive.

    Without a way: the first of WAYS that the run has. Raises UsageError when there is nothing to draw,
    RunError when frames of a location, or executions, call each other.
    """
    first, last = question.steps or (None, None)
    steps = Steps(-1 if question.steps is None else first or 0, _LAST if last is None else last - 1)
    way = question.way or _best(run, question.only)
    if question.depth is not None and way != "stack":
        raise UsageError(
            f"--depth keeps frames of source locations, and these stacks are by {way}", "leave --depth out"
        )
    weighted = _by_call(run, question, steps) if way == "call" else _by_location(run, way, question, steps)
    profiles = _summed(weighted)
    if not profiles:
        _check_steps(run, steps)
        raise UsageError(f"no stacks: the run has nothing for --weight {question.weight}", _hint(question))
    return way, profiles


def _by_call(run: Run, question: Question, steps: Steps) -> Iterator[_Weighted]:
    for rep, rank in [question.only] if question.only else stored_ranks(run, ("op",)):
        for frames, weight in call_stacks(run, rep, rank, question.weight, steps):
            yield (rep, rank), frames, weight


def _by_location(run: Run, way: str, question: Question, steps: Steps) -> list[_Weighted]:
    with Engine.open(run, lazily=True, part=question.only and Part.of_rank(*question.only)) as engine:
        frames = _Frames(engine.rows("stack/frames"), question.depth) if way == "stack" else None
        rows = engine.rows("stack/by_location", first_step=steps.first, last_step=steps.last)
    column = COLUMNS[question.weight]
    return [((row["rep"], row["rank"]), _path(row, frames), row[column]) for row in rows if row[column]]


def folded(profiles: Profiles) -> str:
    """Folded text; the repetition and rank are the outermost frames where there is more than one."""
    lines = []
    for (rep, rank), profile in profiles.items():
        before = [f"rep {rep}", f"rank {rank}"] if len(profiles) > 1 else []
        lines += [f"{';'.join(_plain(frame) for frame in (*before, *one.frames))} {one.weight}" for one in profile]
    return "\n".join(lines) + "\n"


def speedscope(profiles: Profiles, name: str, weight: str) -> str:
    """Speedscope's JSON: one profile per repetition and rank."""
    numbers: dict[str, int] = {}
    drawn = []
    for (rep, rank), profile in profiles.items():
        samples = [[numbers.setdefault(frame, len(numbers)) for frame in one.frames] for one in profile]
        weights = [one.weight for one in profile]
        drawn.append(
            {
                "type": "sampled",
                "name": f"rep {rep}, rank {rank}",
                "unit": UNITS[weight],
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "pipeprof",
        "name": escape.line(name),
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": escape.line(frame)} for frame in numbers]},
        "profiles": drawn,
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


class _Frames:
    """Chains of frames by (rep, rank) and stack_id, the outermost first."""

    def __init__(self, rows: Iterable[dict[str, object]], depth: int | None) -> None:
        self._rows = {((row["rep"], row["rank"]), row["stack_id"]): row for row in rows}
        self._depth = depth
        self._chains: dict[tuple[tuple[int, int], object], tuple[str, ...]] = {}

    def of(self, key: tuple[int, int], stack_id: object) -> tuple[str, ...]:
        stack = (key, stack_id)
        if stack not in self._chains:
            self._chains[stack] = self._chain(key, stack_id)
        return self._chains[stack]

    def _chain(self, key: tuple[int, int], stack_id: object) -> tuple[str, ...]:
        most = self._depth or 2 * _CYCLE
        frames: list[str] = []
        row = self._rows.get((key, stack_id))
        while row is not None and len(frames) < most:
            frames.append(str(row["frame"]))
            if len(frames) > _CYCLE:
                raise RunError(f"frames call each other in table `stack`: {frames[-1]}", "import the profile again")
            row = self._rows.get((key, row["parent_id"]))
        return tuple(reversed(frames)) if frames else (NO_STACK,)


def _path(row: dict[str, Any], frames: _Frames | None) -> tuple[str, ...]:
    """The operator below the frames that called it, or the parts of its name."""
    if frames is None:
        return tuple(row["name"].split("/"))
    return (*frames.of((row["rep"], row["rank"]), row["stack_id"]), row["name"])


def _best(run: Run, only: tuple[int, int] | None) -> str:
    """The first of WAYS that the run has."""
    with Engine.open(run, lazily=True, part=only and Part.of_rank(*only)) as engine:
        rows = engine.rows("stack/coverage")
    if any(row["located"] for row in rows):
        return "stack"
    return "call" if any(row["called"] for row in rows) else "scope"


def _check_steps(run: Run, steps: Steps) -> None:
    """Raise UsageError when the run has none of these steps."""
    if steps.first < 0:
        return
    with Engine.open(run, lazily=True) as engine:
        if not engine.rows("timeline/step_window", first=steps.first, last=steps.last):
            raise no_such_steps(engine)


def _summed(weighted: Iterable[_Weighted]) -> Profiles:
    """Stacks of equal frames added up, by frames; what is not above 0 (more freed than allocated) is left out."""
    totals: dict[tuple[int, int], dict[tuple[str, ...], int]] = {}
    for key, frames, weight in weighted:
        mine = totals.setdefault(key, {})
        mine[frames] = mine.get(frames, 0) + weight
    profiles = {key: [Stack(*pair) for pair in sorted(totals[key].items()) if pair[1] > 0] for key in sorted(totals)}
    return {key: profile for key, profile in profiles.items() if profile}


def _hint(question: Question) -> str:
    others: Sequence[str] = [name for name in UNITS if name != question.weight]
    return f"try --weight {others[0]}, or see `pipeprof report` for what was recorded"


def _plain(frame: str) -> str:
    """A frame without what separates frames, lines, and the weight."""
    return " ".join(escape.line(frame).replace(";", ":").split()) or "-"
