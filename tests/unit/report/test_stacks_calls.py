"""Chains of calls in bounded memory: the same as in plain Python, in whatever order the executions are stored."""

import random

import numpy as np
import pytest

from pipeprof.errors import RunError
from pipeprof.report.stacks import folded as stacks_calls
from pipeprof.report.stacks.folded import NONE, Paged, Question, Steps, call_stacks, stacks

EVERYTHING = Steps(-1, 2**62)
WEIGHTS = ("host", "device", "count", "memory")


@pytest.fixture
def small_pages(monkeypatch):
    """Pages so small that most do not fit into memory."""
    for module in (stacks_calls, stacks_calls):
        monkeypatch.setattr(module, "PAGE", 8)
    monkeypatch.setattr(stacks_calls, "_HELD", 2)


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


def walked(rows, described, weight, steps):
    """Chain of names -> what was spent in its last, 0 left out."""
    chosen = [row for row in rows if steps.first <= (-1 if row.get("step") is None else row["step"]) <= steps.last]
    by_number = {row["exec_id"]: row for row in chosen if row.get("exec_id") is not None}
    spent = {}
    for row in chosen:
        number = row["op_id"]
        on_device = (
            row.get("side") == "device" if row.get("side") else described_at(described, number)[1] not in (None, "CPU")
        )
        own = row["dur_ns"] if row.get("self_ns") is None else row["self_ns"]
        value = {"host": 0 if on_device else own, "device": row["dur_ns"] if on_device else 0, "count": 1,
                 "memory": row.get("self_memory_bytes") or 0}[weight]  # fmt: skip
        chain, at = [], row
        while at is not None:
            name = described_at(described, at["op_id"])[0]
            chain.append(name if name is not None else "" if at["op_id"] is None else str(at["op_id"]))
            at = by_number.get(at.get("parent_id"))
        path = tuple(reversed(chain))
        spent[path] = spent.get(path, 0) + value
    return {path: value for path, value in spent.items() if value}


def described_at(described, number):
    return described[number] if number in range(len(described)) else (None, None)


@pytest.mark.parametrize("seed", range(6))
def test_chains_and_weights_are_those_of_a_walk_from_each_execution_to_the_outermost(make_run, small_pages, seed):
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    described = (("a", None), ("b", "AI_CORE"), ("a", "CPU"), (None, "AI_CPU"))
    info = [{"rank": rank, "op_id": n, "name": name, "device": device}
            for rank in (0, 3) for n, (name, device) in enumerate(described)]  # fmt: skip
    ops = {0: calls(chance, 90), 3: calls(chance, 60, rank=3)}
    run = make_run({"op": ops[0] + ops[3], "op_info": info})
    steps = chance.choice([EVERYTHING, Steps(0, 1)])
    for rank, rows in ops.items():
        for weight in WEIGHTS:
            expected = walked(rows, described, weight, steps)
            assert dict(call_stacks(run, 0, rank, weight, steps)) == expected
            assert weight != "count" or len(expected) > 6


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
