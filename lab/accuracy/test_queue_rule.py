"""The rule of the queues that the diagnosis is held against: what it names, and how far depths drop there."""

import pytest
from run_files import write
from score import queue_rule

from pipeprof.query.engine import Engine
from pipeprof.record.run import Manifest, Run

GIVE = "position op_id place input_ratio output_ratio flag drop_ratio"


@pytest.fixture
def ask(tmp_path):
    def rows_of(tables, skip_share, give=""):
        run = Run(tmp_path / "run", Manifest(run_id="x", started_at="2026-01-01T00:00:00Z", pipeprof_version="0"))
        run.path.mkdir()
        for table, listed in tables.items():
            if listed:
                write(run, table, **{column: [row[column] for row in listed] for column in listed[0]})
        run.save()
        with Engine.open(run) as engine:
            rows = queue_rule(engine, skip_share)
        columns = give.split()
        return [tuple(row[column] for column in columns) for row in rows] if columns else rows

    return rows_of


def train(ops, edges, depths, *, role="train", key="a", pipeline=0):
    """A pipeline of operators named in `ops`; `depths` are the samples (of 4) of those that have a queue."""
    return {
        "pipeline": [{"pipeline_id": pipeline, "pipeline_key": key, "role": role}],
        "pipeline_op": [
            {"pipeline_id": pipeline, "op_id": number, "op_type": kind, "name": kind.lower()}
            | {"capacity": 4 if number in depths else None, "inlined": number not in depths}
            for number, kind in enumerate(ops)
        ],
        "pipeline_edge": [{"pipeline_id": pipeline, "producer_id": up, "consumer_id": down} for up, down in edges],
        "queue": [
            {"pipeline_id": pipeline, "op_id": op, "t_ns": 10 * number, "depth": depth, "capacity": 4}
            for op, series in depths.items()
            for number, depth in enumerate(series)
        ],
    }


CHAIN = (["BatchOp", "MapOp", "GeneratorOp"], [(1, 0), (2, 1)])


def test_a_slow_map_has_a_full_input_and_an_empty_output(ask):
    tables = train(*CHAIN, {0: [0, 0], 1: [0, 0], 2: [4, 2]})
    assert ask(tables, skip_share=0.0, give=GIVE) == [
        (1, 1, "inner", 0.75, 0.0, "inner", 0.75),
        (2, 2, "source", None, 0.75, None, 0.25),
        (3, -1, "consumer", 0.0, None, None, 0.0),
        (4, 0, "sink", 0.0, 0.0, None, 0.0),
    ]


def test_a_slow_source_leaves_everything_behind_it_empty(ask):
    tables = train(*CHAIN, {0: [0, 0], 1: [1, 1], 2: [0, 0]})
    rows = ask(tables, skip_share=0.0, give="op_id flag drop_ratio")
    assert rows == [(2, "source", 1.0), (0, None, 0.25), (-1, None, 0.0), (1, None, -0.25)]


def test_a_slow_training_loop_leaves_every_queue_full(ask):
    tables = train(*CHAIN, {0: [4, 4], 1: [4, 4], 2: [4, 4]})
    rows = ask(tables, skip_share=0.0, give="op_id op_type flag drop_ratio")
    assert rows == [
        (-1, "consumer", "sink", 1.0),
        (0, "BatchOp", None, 0.0),
        (1, "MapOp", None, 0.0),
        (2, "GeneratorOp", None, 0.0),
    ]


def test_inlined_operators_are_looked_through(ask):
    ops = (["BatchOp", "RenameOp", "MapOp", "ProjectOp", "GeneratorOp"], [(1, 0), (2, 1), (3, 2), (4, 3)])
    tables = train(*ops, {0: [0], 2: [0], 4: [4]})
    rows = ask(tables, skip_share=0.0, give="op_id input_ratio output_ratio flag drop_ratio")
    assert rows == [
        (2, 1.0, 0.0, "inner", 1.0),
        (-1, 0.0, None, None, 0.0),
        (0, 0.0, 0.0, None, 0.0),
        (4, None, 1.0, None, 0.0),
    ]


def test_a_sink_without_a_queue_is_listed_and_shares_the_loops_flag(ask):
    tables = train(["DataQueueOp", "BatchOp"], [(1, 0)], {1: [3, 3]})
    rows = ask(tables, skip_share=0.0, give="op_id place input_ratio output_ratio flag drop_ratio")
    assert rows == [
        (-1, "consumer", 0.75, None, "sink", 0.75),
        (1, "source", None, 0.75, None, 0.25),
        (0, "sink", 0.75, None, "sink", None),
    ]


def test_of_several_inputs_the_emptiest_counts(ask):
    zipped = (["BatchOp", "ZipOp", "MapOp", "GeneratorOp"], [(1, 0), (2, 1), (3, 1)])
    tables = train(*zipped, {0: [0], 2: [4], 3: [0]})
    rows = ask(tables, skip_share=0.0, give="op_id input_ratio flag")
    assert (0, 0.0, None) in rows
    assert rows[0] == (3, None, "source")


def test_drops_of_a_chain_add_up_to_one(ask):
    tables = train(*CHAIN, {0: [1, 2], 1: [3, 3], 2: [4, 1]})
    drops = ask(tables, skip_share=0.0, give="drop_ratio")
    assert sum(drop for (drop,) in drops) == pytest.approx(1.0)


def test_warm_up_samples_are_left_out(ask):
    tables = train(*CHAIN, {0: [4, 0, 0], 1: [4, 0, 0], 2: [0, 4, 4]})
    rows = ask(tables, skip_share=0.25, give="op_id flag drop_ratio")
    assert rows[0] == (1, "inner", 1.0)


def test_only_training_pipelines_are_judged(ask):
    assert ask(train(*CHAIN, {0: [0]}, role="eval"), skip_share=0.0) == []


def test_the_same_pipeline_again_is_judged_once_over_all_samples(ask):
    first, second = train(*CHAIN, {0: [0], 1: [0], 2: [4]}), train(*CHAIN, {0: [0], 1: [0], 2: [2]}, pipeline=1)
    tables = {name: first[name] + second[name] for name in first}
    rows = ask(tables, skip_share=0.0, give="op_id drop_ratio")
    assert rows == [(1, 0.75), (2, 0.25), (-1, 0.0), (0, 0.0)]


def test_nothing_is_said_without_samples(ask):
    tables = train(*CHAIN, {0: [], 1: [], 2: []})
    assert ask(tables, skip_share=0.25) == []
