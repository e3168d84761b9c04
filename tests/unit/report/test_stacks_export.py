"""Folded text and speedscope's JSON; chains of calls in bounded memory are the same as in plain Python."""

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner

from pipeprof.cli.timeline import stacks as verb
from pipeprof.errors import RunError, UsageError
from pipeprof.query.engine import Engine
from pipeprof.report.stacks import folded as module
from pipeprof.report.stacks.folded import NONE, Paged, Question, Steps, call_stacks, folded, speedscope, stacks

STACK = [
    {"stack_id": 0, "frame": "train.py(9): <module>"},
    {"stack_id": 1, "parent_id": 0, "frame": "net.py(3): forward; x"},
    {"stack_id": 2, "parent_id": 1, "frame": "<built-in method conv2d>"},
]
TABLES = {
    "stack": STACK,
    "op_info": [{"op_id": 0, "name": "conv", "stack_id": 2}, {"op_id": 1, "name": "relu", "stack_id": 1},
                {"op_id": 2, "name": "add"}],
    "op": [
        {"op_id": n, "step": n, "exec_id": n, "parent_id": 0 if n else None, "start_ns": n, "dur_ns": 10 + n,
         "self_ns": 10 + n} for n in range(3)
    ],
}  # fmt: skip
SCOPES = {
    "op_info": [{"op_id": n, "name": f"Default/net/{name}"} for n, name in enumerate(("conv/Conv2D-op0", "Add-op1"))],
    "op": [{"op_id": n % 2, "start_ns": n, "dur_ns": 5, "self_ns": 5} for n in range(3)],
}


def test_folded_by_source_location(make_run):
    way, found = stacks(make_run(TABLES), Question())
    assert (way, folded(found)) == (
        "stack",
        (
            "(no stack);add 12\n"
            "train.py(9): <module>;net.py(3): forward: x;<built-in method conv2d>;conv 10\n"
            "train.py(9): <module>;net.py(3): forward: x;relu 11\n"
        ),
    )


def test_depth_keeps_the_innermost_frames_as_the_operator_table_does(make_run):
    run = make_run(TABLES)
    _, found = stacks(run, Question(depth=2))
    ours = {(one.frames[-1], "\n".join(reversed(one.frames[:-1]))): one.weight for one in found[0, 0]}
    with Engine.open(run) as engine:
        rows = engine.rows("op/key_averages", group_by="stack", stack_depth=2, python_functions=True)
    assert ours == {(row["key"], row["stack"] or "(no stack)"): row["self_ns"] for row in rows}


def test_by_call_by_scope_of_chosen_steps_and_with_ranks_as_frames(make_run):
    run = make_run(TABLES)
    assert folded(stacks(run, Question("call"))[1]) == "conv 10\nconv;add 12\nconv;relu 11\n"
    assert [one.weight for one in stacks(run, Question(steps=(1, 2)))[1][0, 0]] == [11]
    way, found = stacks(make_run(SCOPES), Question())
    assert (way, folded(found)) == ("scope", "Default;net;Add-op1 5\nDefault;net;conv;Conv2D-op0 10\n")
    both = {name: [row | {"rank": rank} for rank in (0, 1) for row in rows] for name, rows in SCOPES.items()}
    _, found = stacks(make_run(both | {"op": both["op"][::3]}), Question())
    assert folded(found).splitlines()[1] == "rep 0;rank 1;Default;net;conv;Conv2D-op0 5"


def test_speedscope_has_every_frame_and_weight(make_run):
    _, found = stacks(make_run(TABLES), Question())
    document = json.loads(speedscope(found, "run", "host"))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    (profile,) = document["profiles"]
    assert (profile["type"], profile["unit"]) == ("sampled", "nanoseconds")
    assert profile["endValue"] - profile["startValue"] == sum(profile["weights"]) == 33
    assert len(profile["samples"]) == len(profile["weights"]) == 3
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    assert [[frames[n] for n in sample] for sample in profile["samples"]] == [list(one.frames) for one in found[0, 0]]
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])


@pytest.mark.parametrize("weight", ["device", "memory"])
def test_what_was_not_recorded_is_an_error(make_run, weight):
    with pytest.raises(UsageError, match=f"the run has nothing for --weight {weight}"):
        stacks(make_run(TABLES), Question(weight=weight))


def test_frames_that_call_each_other_are_an_error(make_run):
    looped = [{"stack_id": 0, "parent_id": 1, "frame": "a"}, {"stack_id": 1, "parent_id": 0, "frame": "b"}]
    with pytest.raises(RunError, match="frames call each other"):
        stacks(make_run({**TABLES, "stack": looped}), Question())


def test_the_name_says_the_format(make_run, tmp_path):
    run = make_run(TABLES, state="complete")
    for name in ("a.folded", "a.speedscope.json"):
        answer = CliRunner().invoke(verb, [str(run.path), "-o", str(tmp_path / name)], catch_exceptions=False)
        assert answer.exit_code == 0
        assert "3 stacks by stack" in answer.stderr
    assert (tmp_path / "a.folded").read_text().endswith("relu 11\n")
    assert json.loads((tmp_path / "a.speedscope.json").read_text())["profiles"]


EVERYTHING = Steps(-1, 2**62)
DESCRIBED = (("a", None), ("b", "AI_CORE"), ("a", "CPU"), (None, "AI_CPU"))


@pytest.fixture
def small_pages(monkeypatch):
    """Pages so small that most do not fit into memory."""
    monkeypatch.setattr(module, "PAGE", 8)
    monkeypatch.setattr(module, "_HELD", 2)


def calls(chance, count, rank=0):
    """A forest whose callers have smaller numbers or larger ones, some without an execution of their own."""
    rows = []
    for number in range(count):
        parent = chance.choice([None, chance.randrange(number), chance.randrange(number)]) if number else None
        dur = chance.randrange(1000)
        rows.append({
            "rank": rank, "exec_id": number, "parent_id": parent, "op_id": chance.randrange(4),
            "step": chance.choice([None, 0, 1, 2]), "side": chance.choice(["host", "device", None]),
            "dur_ns": dur, "self_ns": chance.choice([None, dur // 2]), "start_ns": number,
            "self_memory_bytes": chance.choice([None, chance.randrange(-9, 99)]),
        })  # fmt: skip
    rows += [{"rank": rank, "op_id": chance.choice([None, 1, 9]), "start_ns": 0, "dur_ns": 5} for _ in range(3)]
    backwards = chance.sample(range(count), count)
    if chance.random() < 0.5:
        for row in rows[:count]:
            row["exec_id"] = backwards[row["exec_id"]]
            row["parent_id"] = None if row["parent_id"] is None else backwards[row["parent_id"]]
    return chance.sample(rows, len(rows))


def walked(rows, weight, steps):
    """Chain of names -> what was spent in its last, 0 left out."""
    chosen = [row for row in rows if steps.first <= (-1 if row.get("step") is None else row["step"]) <= steps.last]
    by_number = {row["exec_id"]: row for row in chosen if row.get("exec_id") is not None}
    spent = {}
    for row in chosen:
        side = row.get("side")
        on_device = side == "device" if side else described_at(row["op_id"])[1] not in (None, "CPU")
        own = row["dur_ns"] if row.get("self_ns") is None else row["self_ns"]
        value = {"host": 0 if on_device else own, "device": row["dur_ns"] if on_device else 0, "count": 1,
                 "memory": row.get("self_memory_bytes") or 0}[weight]  # fmt: skip
        chain, at = [], row
        while at is not None:
            name = described_at(at["op_id"])[0]
            chain.append(name if name is not None else "" if at["op_id"] is None else str(at["op_id"]))
            at = by_number.get(at.get("parent_id"))
        path = tuple(reversed(chain))
        spent[path] = spent.get(path, 0) + value
    return {path: value for path, value in spent.items() if value}


def described_at(number):
    return DESCRIBED[number] if number in range(len(DESCRIBED)) else (None, None)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("small_pages")
def test_chains_and_weights_are_those_of_a_walk_from_each_execution_to_the_outermost(make_run, seed):
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    info = [{"rank": rank, "op_id": n, "name": name, "device": device}
            for rank in (0, 3) for n, (name, device) in enumerate(DESCRIBED)]  # fmt: skip
    ops = {0: calls(chance, 90), 3: calls(chance, 60, rank=3)}
    run = make_run({"op": ops[0] + ops[3], "op_info": info})
    steps = chance.choice([EVERYTHING, Steps(0, 1)])
    for rank, rows in ops.items():
        for weight in ("host", "device", "count", "memory"):
            expected = walked(rows, weight, steps)
            assert dict(call_stacks(run, 0, rank, weight, steps)) == expected
            assert weight != "count" or len(expected) > 6


def execution(number, parent, op_id=0):
    return {"exec_id": number, "parent_id": parent, "op_id": op_id, "start_ns": 0, "dur_ns": 1}


def test_names_may_hold_line_breaks(make_run):
    infos = [{"op_id": 0, "name": "a\nb"}, {"op_id": 1, "name": "c"}]
    run = make_run({"op": [execution(0, None), execution(1, 0, 1)], "op_info": infos})
    assert dict(call_stacks(run, 0, 0, "count", EVERYTHING)) == {("a\nb",): 1, ("a\nb", "c"): 1}


@pytest.mark.parametrize(("parents", "numbers", "message"), [
    ([1, 0, None], [0, 1, 2], "2 executions call each other"), ([0, None], [0, 1], "1 executions call each other"),
    ([None, None], [4, 4], "two executions have the same number"),
])  # fmt: skip
def test_damaged_calls_are_an_error_and_not_left_out(make_run, parents, numbers, message):
    with pytest.raises(RunError, match=message):
        stacks(make_run({"op": list(map(execution, numbers, parents))}), Question("call"))


@pytest.mark.usefixtures("small_pages")
def test_pages_keep_what_was_put():
    chance = np.random.default_rng(3)
    expected = np.full((1000, 2), NONE)
    with Paged(2) as paged:
        for _ in range(50):
            numbers = np.unique(chance.integers(0, 1000, 20))
            expected[numbers] = chance.integers(0, 99, (len(numbers), 2))
            paged.put(numbers, expected[numbers])
            asked = chance.integers(0, 1000, 30)
            assert (paged.get(asked) == expected[asked]).all()
            assert len(paged._held) <= 2
        assert (paged.get(np.arange(1000)) == expected).all()
