"""Operations of one's own training of ResNet-50 on an image of 224 x 224: the published figure, in a graph and in PyNative."""

import json

import pytest

pytestmark = [pytest.mark.mindspore, pytest.mark.real]

PUBLISHED = 8.2e9  # 4.1 billion multiply-adds
SCHEDULE = ("--schedule", "wait=1,active=2,repeat=1")


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_convolutions_of_resnet_50_have_the_published_operations(recorded, pipeprof, mode):
    recording = recorded("resnet50.py", mode, options=SCHEDULE)
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


def test_gradients_of_resnet_50_in_pynative_have_the_operations_of_their_layers(recorded):
    recording = recorded("resnet50.py", "pynative", options=SCHEDULE)
    rows = recording.sql("""
        SELECT type, phase, count(*) AS calls, count(flops) AS known, sum(flops) AS operations
        FROM op JOIN op_info USING (rep, rank, op_id)
        WHERE step = (SELECT max(step) FROM op) GROUP BY ALL
    """)
    found = {(row["type"], row["phase"]): row for row in rows}
    sums = {key: int(float(row["operations"])) for key, row in found.items() if int(row["known"]) == int(row["calls"])}
    first = 2 * 64 * 112 * 112 * 3 * 49  # the image has no gradient
    layers = sums["Conv2D", "forward"]
    assert sums["Conv2DBackpropFilter", "backward"] == layers == sums["Conv2DBackpropInput", "backward"] + first
    assert sums["MatMul", "backward"] == 2 * sums["MatMul", "forward"]
    assert sums["ReluGrad", "backward"] == sums["ReLU", "forward"]
