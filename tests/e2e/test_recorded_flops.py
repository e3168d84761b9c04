"""Operations of one's own training of ResNet-50 on an image of 224 x 224: the published figure, in a graph and in PyNative."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.mindspore, pytest.mark.real]

PUBLISHED = 8.2e9  # 4.1 billion multiply-adds


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_convolutions_of_resnet_50_have_the_published_operations(recorded, pipeprof, mode):
    recording = recorded("resnet50.py", mode, options=("--schedule", "wait=1,active=2,repeat=1"))
    rows = recording.sql("""
        SELECT op.step, count(*) AS calls, sum(flops) AS operations FROM op
        JOIN op_info USING (rep, rank, op_id)
        JOIN step USING (rep, rank, step)
        WHERE op_info.type = 'Conv2D'
        GROUP BY op.step ORDER BY op.step
    """)
    assert rows
    for row in rows:
        assert row["calls"] == 53
        assert float(row["operations"]) == pytest.approx(PUBLISHED, rel=0.01)
    done = pipeprof.run(
        "ops", str(recording.path), "--order-by", "FLOPS", "--type", "Conv2D", "--format", "json", "-t", "0"
    )
    table = json.loads(done.stdout)["rows"]
    assert sum(row["computation"] for row in table) == pytest.approx(PUBLISHED * len(rows), rel=0.01)
    assert [row["flops"] for row in table] == sorted((row["flops"] for row in table), reverse=True)


@pytest.mark.parametrize(("mode", "line"), [("graph", "def construct"), ("pynative", "found = self.three(")])
def test_operators_have_the_stack_of_the_program(recorded, pipeprof, mode, line):
    recording = recorded("resnet50.py", mode, options=("--schedule", SCHEDULE))
    done = pipeprof.run("ops", str(recording.path), "--group-by", "stack 5", "--top", "0", "--format", "json")
    stacks = [row["stack"].split("\n") for row in json.loads(done.stdout)["rows"] if "Conv2D" in row["name"]]
    frames = {frame for stack in stacks for frame in stack}
    text = SOURCE.read_text(encoding="utf-8").splitlines()
    block = next(at for at, words in enumerate(text, 1) if words.strip().startswith(line))
    assert f"{SOURCE}({block}): Block.construct" in frames
    assert any(": ResNet50.construct" in stack[1] for stack in stacks if "Block.construct" in stack[0])
    assert not any("site-packages" in frame for frame in frames)
    assert sum(1 for stack in stacks if stack == [""]) < len(stacks) / 4
    folded = recording.path.with_suffix(".folded")
    pipeprof.run("stacks", str(recording.path), "-o", str(folded))
    assert "ResNet50.construct;" in folded.read_text(encoding="utf-8")


def test_modules_of_a_pynative_step_are_blocks_that_hold_their_operators(recorded, pipeprof):
    recording = recorded("resnet50.py", "pynative", options=("--schedule", SCHEDULE))
    rows = recording.sql("SELECT name, scope, start_ns, dur_ns FROM span WHERE category = 'cell'")
    (network,) = [row for row in rows if row["name"] == "ResNet50"]
    layers = [row for row in rows if row["name"].endswith("-Conv2d")]
    assert (network["scope"] or "") == ""
    assert len(layers) == 53
    assert {row["scope"].partition("/")[0] for row in layers} == {"ResNet50"}
    end = int(network["start_ns"]) + int(network["dur_ns"])
    convolutions = recording.sql(
        "SELECT op.start_ns, op.dur_ns FROM op JOIN op_info USING (rep, rank, op_id) WHERE type = 'Conv2D'"
    )
    inside = [row for row in convolutions if int(network["start_ns"]) <= int(row["start_ns"]) <= end]
    assert len(inside) == 53
    for row in inside:
        start, last = int(row["start_ns"]), int(row["start_ns"]) + int(row["dur_ns"])
        assert sum(int(c["start_ns"]) <= start and last <= int(c["start_ns"]) + int(c["dur_ns"]) for c in layers) == 1
    drawn = recording.path.with_suffix(".json")
    pipeprof.run("timeline", str(recording.path), "-o", str(drawn))
    assert sum(event.get("cat") == "cell" for event in json.loads(drawn.read_bytes())["traceEvents"]) == len(rows)
