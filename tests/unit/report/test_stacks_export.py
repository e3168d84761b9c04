"""Folded text and speedscope's JSON."""

import json

import pytest
from click.testing import CliRunner

from pipeprof.cli.timeline import stacks as verb
from pipeprof.errors import RunError, UsageError
from pipeprof.query.engine import Engine
from pipeprof.report.stacks.folded import Question, folded, speedscope, stacks

STACK = [
    {"stack_id": 0, "frame": "train.py(9): <module>"},
    {"stack_id": 1, "parent_id": 0, "frame": "net.py(3): forward; x"},
    {"stack_id": 2, "parent_id": 1, "frame": "<built-in method conv2d>"},
]
TABLES = {
    "stack": STACK,
    "op_info": [{"op_id": 0, "name": "conv", "stack_id": 2}, {"op_id": 1, "name": "relu", "stack_id": 1}, {"op_id": 2, "name": "add"}],
    "op": [
        {"op_id": n, "step": n, "exec_id": n, "parent_id": 0 if n else None, "start_ns": n, "dur_ns": 10 + n, "self_ns": 10 + n}
        for n in range(3)
    ],
}  # fmt: skip
SCOPES = {
    "op_info": [{"op_id": n, "name": f"Default/net/{name}"} for n, name in enumerate(("conv/Conv2D-op0", "Add-op1"))],
    "op": [{"op_id": n % 2, "start_ns": n, "dur_ns": 5, "self_ns": 5} for n in range(3)],
}


def test_folded_by_source_location(make_run):
    way, found = stacks(make_run(TABLES), Question())
    assert way == "stack"
    assert folded(found) == (
        "(no stack);add 12\n"
        "train.py(9): <module>;net.py(3): forward: x;<built-in method conv2d>;conv 10\n"
        "train.py(9): <module>;net.py(3): forward: x;relu 11\n"
    )


def test_depth_keeps_the_innermost_frames_as_the_operator_table_does(make_run):
    run = make_run(TABLES)
    _, found = stacks(run, Question(depth=2))
    ours = {(one.frames[-1], "\n".join(reversed(one.frames[:-1]))): one.weight for one in found[0, 0]}
    with Engine.open(run) as engine:
        rows = engine.rows("op/key_averages", group_by="stack", stack_depth=2, python_functions=True)
    assert ours == {(row["key"], row["stack"] or "(no stack)"): row["self_ns"] for row in rows}


def test_by_call_and_by_scope(make_run):
    run = make_run(TABLES)
    assert folded(stacks(run, Question("call"))[1]) == "conv 10\nconv;add 12\nconv;relu 11\n"
    way, found = stacks(make_run(SCOPES), Question())
    assert (way, folded(found)) == ("scope", "Default;net;Add-op1 5\nDefault;net;conv;Conv2D-op0 10\n")


def test_ranks_are_frames_of_folded_text(make_run):
    ops = [{**row, "rank": rank} for rank in (0, 1) for row in SCOPES["op"][:1]]
    info = [{**row, "rank": rank} for rank in (0, 1) for row in SCOPES["op_info"]]
    _, found = stacks(make_run({"op": ops, "op_info": info}), Question())
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


def test_only_chosen_steps(make_run):
    _, found = stacks(make_run(TABLES), Question(steps=(1, 2)))
    assert [one.weight for one in found[0, 0]] == [11]


@pytest.mark.parametrize("weight", ["device", "memory"])
def test_what_was_not_recorded_is_an_error(make_run, weight):
    with pytest.raises(UsageError, match=f"the run has nothing for --weight {weight}"):
        stacks(make_run(TABLES), Question(weight=weight))


def test_frames_that_call_each_other_are_an_error(make_run):
    looped = [{"stack_id": 0, "parent_id": 1, "frame": "a"}, {"stack_id": 1, "parent_id": 0, "frame": "b"}]
    run = make_run({**TABLES, "stack": looped})
    with pytest.raises(RunError, match="frames call each other"):
        stacks(run, Question())


def test_the_name_says_the_format(make_run, tmp_path):
    run = make_run(TABLES)
    run.manifest.state = "complete"
    run.save()
    for name in ("a.folded", "a.speedscope.json"):
        answer = CliRunner().invoke(verb, [str(run.path), "-o", str(tmp_path / name)], catch_exceptions=False)
        assert answer.exit_code == 0
        assert "3 stacks by stack" in answer.stderr
    assert (tmp_path / "a.folded").read_text().endswith("relu 11\n")
    assert json.loads((tmp_path / "a.speedscope.json").read_text())["profiles"]
