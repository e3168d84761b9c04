"""What a report asks of a very large run, answered part by part: memory is that of a part, however many there are.

Most queries look at each rank alone: they are asked of some ranks after the others. What compares ranks within a step
is asked of some steps after the others; it gives the middle of all ranks, with which each is compared then.
Answers are equal to those of the whole run.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pipeprof import cluster
from pipeprof.query import catalog
from pipeprof.query.answers import Answers, Question
from pipeprof.query.engine import Engine
from pipeprof.query.part import ALL, Part
from pipeprof.query.tables import absolute
from pipeprof.record.run import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

RANK_ROWS = 1 << 19  # of all tables, in a part of the ranks; queries keep up to 1 KiB for each
STEP_ROWS = 1 << 21  # of the steps, in a part of them; each part reads all steps anew
OF_ALL = ("phase_source", "phase_group", "phase_turn", "rank_peer")  # views with few rows, of all ranks and steps
OF_STEPS, CURVE, COMPARED = "phase_middle", "rank/curve", "rank/phase_diff"
OF_RANKS, SPREAD = "rank_median", "step/rank_spread"


class Task(NamedTuple):
    """A part of a run, what views hold in it, what is asked, and the view whose rows come back with the answers."""

    run: Path
    part: Part
    given: dict[str, pa.Table]
    questions: Sequence[Question]
    view: str


def answered(run: Run, questions: Sequence[Question]) -> Answers:
    """The answers to those of a report's questions that can be asked of parts of a run."""
    answers = Answers(filling=True)
    with Engine.open(run, lazily=True, part=Part(steps=ALL)) as engine:
        given = {name: engine.view(name) for name in OF_ALL}
    path = absolute(run.path)
    curve = [one for one in questions if one[0] == CURVE]
    ends = _ends_of_points(given["phase_turn"], curve[0][1]["points"] if curve else 1)
    steps = [Part(steps=part) for part in _ranges(ends, -(-run.manifest.tables["step"] // STEP_ROWS))]
    given[OF_STEPS] = _asked([Task(path, part, given, curve, OF_STEPS) for part in steps], answers)
    apart = [one for one in questions if one[0] == COMPARED or catalog.find(one[0]).apart]
    numbers = sorted(set(given["rank_peer"].column("rank").to_pylist()))
    ranks = [Part(ranks=part) for part in _ranges(numbers, -(-sum(run.manifest.tables.values()) // RANK_ROWS))]
    medians = _asked([Task(path, part, given, apart, OF_RANKS) for part in ranks], answers)
    with Engine.of_tables({}) as engine:
        engine.register_rows(OF_RANKS, medians)
        answers.note(SPREAD, {}, engine.rows(SPREAD))
    return answers


def _asked(tasks: Sequence[Task], answers: Answers) -> pa.Table:
    """Take the answers to the tasks, in order. Returns the rows of their views together."""
    done = dict(cluster.each(answer, tasks))
    parts = [done[number] for number in range(len(tasks))]
    answers.join([part for part, _rows in parts])
    return pa.concat_tables([rows for _part, rows in parts])


def answer(task: Task) -> tuple[Answers, pa.Table]:
    """The answers to a task's questions, and the rows of its view."""
    answers = Answers(filling=True)
    with Engine.open(load(task.run), lazily=True, part=task.part) as engine:
        for name, rows in task.given.items():
            engine.register_rows(name, rows)
        for name, params in task.questions:
            answers.note(name, params, engine.rows(name, **params))
        return answers, engine.view(task.view)


def _ends_of_points(turns: pa.Table, points: int) -> list[int]:
    """Positions at which a point of the curve ends for all groups of ranks, in order: there steps may be parted."""
    last: dict[tuple[int, int], dict[int, int]] = {}
    for row in turns.to_pylist():
        point = row["turn"] if row["turns"] <= points else floor(row["turn"] * points / row["turns"])
        ends = last.setdefault((row["rep"], row["peers"]), {})
        ends[point] = max(ends.get(point, row["position"]), row["position"])
    shared = [set(ends.values()) for ends in last.values()]
    return sorted(set.intersection(*shared)) if shared else []


def _ranges(numbers: Sequence[int], parts: int) -> list[tuple[int, int]]:
    """All numbers in so many parts, if there are as many: from the first to the last number of each."""
    parts = max(min(parts, len(numbers)), 1)
    cuts = [numbers[len(numbers) * part // parts - 1] for part in range(1, parts)]
    return list(zip([ALL[0], *(cut + 1 for cut in cuts)], [*cuts, ALL[1]], strict=True))
