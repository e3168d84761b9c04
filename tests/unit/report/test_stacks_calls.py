"""Chains of calls in bounded memory: the same as the query says, in whatever order the executions are stored."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pipeprof.errors import RunError
from pipeprof.query.engine import Engine
from pipeprof.report.stacks import calls as stacks_calls
from pipeprof.report.stacks import paged as stacks_paged
from pipeprof.report.stacks.calls import Steps, call_stacks
from pipeprof.report.stacks.folded import Question, stacks
from pipeprof.report.stacks.paged import NONE, Paged

EVERYTHING = Steps(-1, 2**62)
COLUMNS = {"host": "host_ns", "device": "device_ns", "count": "count", "memory": "memory_bytes"}


@pytest.fixture
def small_pages(monkeypatch):
    """Pages so small that most do not fit into memory."""
    for module in (stacks_calls, stacks_paged):
        monkeypatch.setattr(module, "PAGE", 8)
    monkeypatch.setattr(stacks_paged, "_HELD", 2)


def calls(chance, count, rank=0):
    """A forest whose callers have smaller numbers or larger ones, some without an execution of their own."""
    rows = []
    for number in range(count):
        parent = chance.choice([None, chance.randrange(number), chance.randrange(number)]) if number else None
        dur = chance.randrange(1000)
        rows.append(
            {
                "rank": rank, "exec_id": number, "parent_id": parent, "op_id": chance.randrange(4),
                "step": chance.choice([None, 0, 1, 2]), "side": chance.choice(["host", "device", None]),
                "dur_ns": dur, "self_ns": chance.choice([None, dur // 2]), "start_ns": number,
                "self_memory_bytes": chance.choice([None, chance.randrange(-9, 99)]),
            }
        )  # fmt: skip
    rows += [{"rank": rank, "op_id": chance.choice([None, 1, 9]), "start_ns": 0, "dur_ns": 5} for _ in range(3)]
    backwards = chance.sample(range(count), count)
    if chance.random() < 0.5:
        for row in rows[:count]:
            row["exec_id"] = backwards[row["exec_id"]]
            row["parent_id"] = None if row["parent_id"] is None else backwards[row["parent_id"]]
    return chance.sample(rows, len(rows))


@pytest.mark.parametrize("seed", range(6))
def test_it_is_what_the_query_says(make_run, small_pages, seed):
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    described = (("a", None), ("b", "AI_CORE"), ("a", "CPU"), (None, "AI_CPU"))
    info = [{"rank": rank, "op_id": n, "name": name, "device": device}
            for rank in (0, 3) for n, (name, device) in enumerate(described)]  # fmt: skip
    run = make_run({"op": calls(chance, 90) + calls(chance, 60, rank=3), "op_info": info})
    steps = chance.choice([EVERYTHING, Steps(0, 1)])
    with Engine.open(run) as engine:
        expected = engine.rows("stack/by_call", first_step=steps.first, last_step=steps.last)
    assert len(expected) > 20
    for weight, column in COLUMNS.items():
        for rank in (0, 3):
            theirs = {tuple(row["path"].split("\n")): row[column] for row in expected if row["rank"] == rank}
            theirs = {path: value for path, value in theirs.items() if value}
            assert dict(call_stacks(run, 0, rank, weight, steps)) == theirs


def test_names_may_hold_line_breaks(make_run):
    ops = [{"exec_id": n, "parent_id": n - 1 if n else None, "op_id": n, "start_ns": n, "dur_ns": 1} for n in range(2)]
    run = make_run({"op": ops, "op_info": [{"op_id": 0, "name": "a\nb"}, {"op_id": 1, "name": "c"}]})
    assert dict(call_stacks(run, 0, 0, "count", EVERYTHING)) == {("a\nb",): 1, ("a\nb", "c"): 1}


@pytest.mark.parametrize(
    ("parents", "numbers", "message"),
    [
        ([1, 0, None], [0, 1, 2], "2 executions call each other"),
        ([0, None], [0, 1], "1 executions call each other"),
        ([None, None], [4, 4], "two executions have the same number"),
    ],
)
def test_damaged_calls_are_an_error_and_not_left_out(make_run, parents, numbers, message):
    rows = [
        {"exec_id": number, "parent_id": parent, "op_id": 0, "start_ns": 0, "dur_ns": 1}
        for number, parent in zip(numbers, parents, strict=True)
    ]
    with pytest.raises(RunError, match=message):
        stacks(make_run({"op": rows}), Question("call"))


def test_pages_keep_what_was_put(small_pages):
    chance = np.random.default_rng(3)
    expected = np.full((1000, 2), NONE)
    with Paged(2) as paged:
        for _ in range(50):
            numbers = chance.integers(0, 1000, 20)
            numbers = np.unique(numbers)
            rows = chance.integers(0, 99, (len(numbers), 2))
            expected[numbers] = rows
            paged.put(numbers, rows)
            asked = chance.integers(0, 1000, 30)
            assert (paged.get(asked) == expected[asked]).all()
            assert len(paged._held) <= 2
        assert (paged.get(np.arange(1000)) == expected).all()
