"""Queries of queues."""

import pytest
from query_cases import answers, row
from table_rows import KEY, MS

# One queue, sampled five times.
SAMPLES = [(0, 0), (1, 4), (2, 2), (5, 4), (9, 4)]  # ns, depth
TABLES = {
    "pipeline": [KEY | {"pipeline_key": "k", "role": "train"}],
    "pipeline_op": [KEY | {"op_id": 1, "op_type": "MapOp"}],
    "queue": [KEY | {"op_id": 1, "t_ns": at, "depth": depth, "capacity": 4} for at, depth in SAMPLES],
}
cpu = row("t_ns user_ratio sys_ratio op_id scope", pipeline_id=0, op_id=1, scope="pipeline_op")


def tables(rows, role="eval"):
    return {
        "pipeline": [{"pipeline_id": 0, "pipeline_key": "a", "role": role}],
        "pipeline_op": [{"pipeline_id": 0, "op_id": 1, "op_type": "MapOp", "workers": 4}],
        "cpu": rows,
    }


pipeline = row("pipeline_id pipeline_key role", created_ns=0, ready_ns=5, pipeline_key="a", role="train")
fetch = row("pipeline_id fetch wait_ns")
op = row("pipeline_id op_id op_type capacity")
service = row("t_ns avg_ns rows op_id pipeline_id source", op_id=1, pipeline_id=0, source="log")


def served(rows, role="train", op_type="MapOp", workers=2):
    return {
        "pipeline": [{"pipeline_id": number, "pipeline_key": "a", "role": role} for number in (0, 1)],
        "pipeline_op": [
            {"pipeline_id": number, "op_id": 1, "op_type": op_type, "workers": workers} for number in (0, 1)
        ],
        "op_service": rows,
    }


GIVE = "side part first_batch last_batch t_ns batches mean_depth low_depth capacity"


def sunk(number, side, depth, **more):
    row = {"fetch": number, "side": side, "depth": depth, "start_ns": number * 10, "capacity": 4}
    return KEY | row | more


def samples(depths, op=0, pipeline=0, start=0, **more):
    row = {"pipeline_id": pipeline, "op_id": op, "capacity": 4, **more}
    return [{**row, "t_ns": start + 10 * number, "depth": depth} for number, depth in enumerate(depths)]


def pipelines(*keys):
    return {
        "pipeline": [{"pipeline_id": number, "pipeline_key": key, "role": "train"} for number, key in enumerate(keys)],
        "pipeline_op": [{"pipeline_id": number, "op_id": 0, "op_type": "BatchOp"} for number in range(len(keys))],
    }


COLUMNS = "op_id samples mean_depth capacity mean_ratio empty_share full_share"

test_rows_of_queue_pipeline_cpu = answers("queue/pipeline_cpu", {
    "cores are user and system time": ("op_id op_type workers samples mean_cores max_cores",
        tables([cpu(0, 1.0, 0.5), cpu(1, 2.0, 0.5)]), [(1, "MapOp", 4, 2, 2.0, 2.5)]),
    "processes and the host are no operators": ("",
        tables([cpu(0, 1.0, 1.0, scope=scope) | {"pipeline_id": None, "op_id": None} for scope in ("process", "host")]),
        []),
    "half a reading is not counted": ("samples mean_cores", tables([cpu(0, 1.0, None), cpu(1, 0.5, 0.25)]),
        [(1, 0.75)]),
})  # fmt: skip

test_rows_of_queue_curve = answers("queue/curve", {
    "each part of the time has its mean and its extremes": (
        "pipeline_key op_id part op_type t_ns samples mean_depth low_depth high_depth mean_ratio", TABLES,
        [("k", 1, 0, "MapOp", 0, 3, 2.0, 0, 4, 0.5), ("k", 1, 1, "MapOp", 5, 2, 4.0, 4, 4, 1.0)]),
    "another rank has none": ("", TABLES, [], {"rank": 1}),
}, points=2, rep=0, rank=0)  # fmt: skip

test_rows_of_queue_edges = answers("queue/edges", {
    "every consumer of an operator is named once": ("producer_id consumer_id",
        {"pipeline_edge": [{"pipeline_id": 0, "producer_id": up, "consumer_id": down}
                           for up, down in [(2, 1), (1, 0), (2, 0), (2, 1)]]}, [(1, 0), (2, 0), (2, 1)]),
    "an edge without an end is none": ("producer_id consumer_id",
        {"pipeline_edge": [{"pipeline_id": 0, "producer_id": 1}, {"pipeline_id": 0, "consumer_id": 1}]}, []),
})  # fmt: skip

test_rows_of_queue_histogram = answers("queue/histogram", {
    "a full queue is in the last class": ("op_id bin samples share", TABLES,
        [(1, 0, 1, 0.2), (1, 2, 1, 0.2), (1, 3, 3, 0.6)]),
    "another rank has none": ("", TABLES, [], {"bins": 2, "rank": 1}),
}, rep=0, bins=4, rank=0)  # fmt: skip

test_rows_of_queue_pipelines = answers("queue/pipelines", {
    "iterators of the same pipeline are one row": (
        "pipeline_key iterators batches wait_ns first_batch_ns build_ns queues batch_size",
        {"pipeline": [pipeline(0, batch_size=8, queues="recorded"),
                      pipeline(1, batch_size=8, queues="not_recorded: x")],
         "fetch": [fetch(0, 0, 100), fetch(0, 1, 10), fetch(1, 0, 50)]}, [("a", 2, 3, 160, 100, 10, "recorded", 8)]),
    "a pipeline that was never fetched from waited for nothing": ("batches wait_ns first_batch_ns",
        {"pipeline": [pipeline(0)]}, [(0, 0, None)]),
    "a pipeline without a key stands for itself": ("pipeline_key role",
        {"pipeline": [pipeline(3, pipeline_key=None), pipeline(4, pipeline_key=None, role="eval")]},
        [("3", "train"), ("4", "eval")]),
})  # fmt: skip

test_rows_of_queue_tree = answers("queue/tree", {
    "a key is shown once with the tree whose queues are known": ("pipeline_key op_id op_type capacity consumer_id",
        {"pipeline": [{"pipeline_id": n, "pipeline_key": "a", "role": "train"} for n in (0, 1)],
         "pipeline_op": [op(0, 0, "BatchOp"), op(0, 1, "MapOp"), op(1, 0, "BatchOp", 16), op(1, 1, "MapOp", 4)],
         "pipeline_edge": [{"pipeline_id": n, "producer_id": 1, "consumer_id": 0} for n in (0, 1)]},
        [("a", 0, "BatchOp", 16, None), ("a", 1, "MapOp", 4, 0)]),
    "of equal trees the first is shown": ("workers",
        {"pipeline": [{"pipeline_id": n, "pipeline_key": "a", "role": "train"} for n in (0, 1)],
         "pipeline_op": [op(0, 0, "BatchOp", 8, workers=1), op(1, 0, "BatchOp", 8, workers=2)]}, [(1,)]),
})  # fmt: skip

test_rows_of_queue_service = answers("queue/service", {
    "a row of several batches counts for as many": ("source batches rows rows_per_batch mean_ns work_per_batch_ns",
        served([service(n, 10, 8 * batches, source="hook", batches=batches) for n, batches in enumerate((1, 4, 2, 1))]),
        [("hook", 7, 56, 8.0, 10.0, 80.0)]),
    # A row takes 10 ns by the lines, 7 of them in its Python; that Python goes on to take 7 for batches without lines.
    "timed calls and timing lines are not two pieces of work": ("source batches mean_ns work_per_batch_ns",
        served([service(n, 10, 8, batches=1) for n in range(4)]
               + [service(n, 7, 16, source="hook", batches=2) for n in range(40)]), [("both", 60, 10.0, 80.0)]),
    "the first quarter is left out": ("batches mean_ns max_ns",
        served([service(0, 900, 1), service(1, 10, 1), service(2, 10, 1), service(3, 10, 1)]), [(3, 10.0, 10)]),
    "the only row of a batch can be the longest": ("max_ns", served([service(0, 90, 1), service(1, 20, 3, max_ns=50)]),
        [(90,)]),
    "reading is a share of the work that says so": ("io_share",
        served([service(0, 10, 2, io_ns=5), service(1, 1000, 2, io_ns=None)]), [(0.5,)]),
    "equal keys are pooled and operators named": ("pipeline_key op_type workers batches mean_ns",
        served([service(0, 10, 1), service(9, 30, 1, pipeline_id=1)]), [("a", "MapOp", 2, 2, 20.0)]),
})  # fmt: skip

test_rows_of_queue_sink_curve = answers("queue/sink_curve", {
    "both queues in equal parts of their batches": (GIVE,
        {"fetch": [sunk(number, "host_queue", depth, wait_ns=2) for number, depth in enumerate((0, 2, 4, 4, 3))]
         + [sunk(number, "data_queue", depth, start_ns=None, capacity=None) for number, depth in enumerate((1, 0))]
         + [sunk(0, "iterator", 9), sunk(5, "host_queue", None)]},
        [("data_queue", 0, 0, 0, None, 1, 1.0, 1, None), ("data_queue", 1, 1, 1, None, 1, 0.0, 0, None),
         ("host_queue", 0, 0, 2, 2, 3, 2.0, 0, 4), ("host_queue", 1, 3, 4, 32, 2, 3.5, 3, 4)]),
}, points=2)  # fmt: skip

test_rows_of_queue_utilisation = answers("queue/utilisation", {
    "how full each queue was": (COLUMNS,
        {"queue": samples([3, 0, 4, 2, 2]) + samples([0, 4, 4, 4, 4], op=1), **pipelines("a")},
        [(0, 4, 2.0, 4, 0.5, 0.25, 0.25), (1, 4, 4.0, 4, 1.0, 0.0, 1.0)]),
    "the start is left out by time the border kept": ("samples mean_depth",
        {"queue": samples([4, 2, 0, 0, 0]), **pipelines("a")}, [(4, 0.5)]),
    # the batches came at 20 and at 60 ns
    "the start counts from the first batch that the loop had": ("samples mean_depth",
        {"queue": samples([4, 4, 4, 0, 1, 2]),
         "fetch": [{"pipeline_id": 0, "fetch": n, "start_ns": at, "wait_ns": 5, "side": "iterator"}
                   for n, at in ((0, 15), (1, 55))], **pipelines("a")}, [(3, 1.0)]),
    "fewer than three samples of the steady state are too few to choose from": ("samples mean_depth",
        {"queue": samples([4, 1, 1]), **pipelines("a")}, [(3, 2.0)]),
    "samples of an unknown pipeline all count": ("samples", {"queue": samples([4, 2, 0, 0, 0])}, [(5,)]),
    "each pipeline leaves out its own start and equal keys are pooled": ("pipeline_key op_type role samples mean_depth",
        {"queue": (samples([4, 1, 1], pipeline=0) + samples([4, 3, 3], pipeline=1, start=1000))
         + samples([0, 2, 2, 2], pipeline=2), **pipelines("a", "a", "b")},
        [("a", "BatchOp", "train", 4, 2.0), ("b", "BatchOp", "train", 3, 2.0)]),
    "pipelines without a key stay apart": ("pipeline_key op_type mean_depth",
        {"queue": samples([1], pipeline=0) + samples([3], pipeline=1)}, [("0", None, 1.0), ("1", None, 3.0)]),
    "an unknown capacity gives no ratio": (COLUMNS, {"queue": samples([0, 2], capacity=None)},
        [(0, 2, 1.0, None, None, 0.5, None)]),
    "a sample without depth is no reading": (COLUMNS, {"queue": samples([None, 4])}, [(0, 1, 4.0, 4, 1.0, 0.0, 1.0)]),
})  # fmt: skip


def test_timed_calls_add_what_the_samples_of_a_training_pipeline_miss(ask):
    known = {"pipeline_id": 0, "op_id": 1, "source": "hook", "rows": 1, "batches": 1}
    found = tables([cpu(n, 0.0, 0.0) for n in range(0, 1000, 100)], role="train") | {
        "op_service": [{**known, "t_ns": n, "avg_ns": 40, "cpu_ns": 20} for n in range(0, 1000, 100)],
        "fetch": [
            {"pipeline_id": 0, "fetch": n, "start_ns": 100 * n, "wait_ns": 50, "side": "iterator"} for n in range(10)
        ],
    }
    # A batch each 100 ns, for which its Python computes for 20 of 40 ns.
    (mean,) = ask("queue/pipeline_cpu", found, give="mean_cores")
    assert mean == (0.2,)
    assert mean in ask("diagnose/load", found, give="cores")


@pytest.mark.parametrize("role", ["train", "eval", None])
def test_times_are_weighted_by_rows(ask, role):
    rows = [service(0, 10, 1, max_ns=None), service(1, 20, 3, max_ns=50)]
    give = "op_id source batches rows rows_per_batch mean_ns p90_ns max_ns work_per_batch_ns io_share"
    assert ask("queue/service", served(rows, role), give=give) == [
        (1, "log", 2, 4, 2.0, 17.5, 19.0, 50, 35.0, None),
    ]


def test_the_lines_of_a_source_with_several_workers_are_of_its_output(ask):
    rows = [service(n, 90, 8, batches=1) for n in range(4)]
    rows += [service(n, 7, 8, source="hook", batches=1) for n in range(4)]
    found = ask("queue/service", served(rows, op_type="GeneratorOp"), give="work_per_batch_ns")
    assert found == [(56.0,)]
    assert ask("queue/service", served(rows, op_type="GeneratorOp", workers=1), give="work_per_batch_ns") == [(720.0,)]


def test_the_work_is_the_one_that_the_diagnosis_and_the_comparison_use(ask):
    calls = [service(n * MS, 10, 8 * batches, source="hook", batches=batches) for n, batches in enumerate((1, 4, 2, 1))]
    found = served([*calls, *(service(n * MS, 13, 8) for n in range(4))])
    (work,) = ask("queue/service", found, give="op_id work_per_batch_ns")
    assert work in ask("diagnose/load", found, give="op_id work_ns")
    assert work in ask("compare/rep_pipeline_op", found, give="op_id work_ns")


def test_the_fill_is_the_one_that_the_diagnosis_uses(ask):
    tables = {"queue": samples([4, 0, 1, 2, 3]), **pipelines("a")}
    (fill,) = ask("queue/utilisation", tables, give="mean_ratio samples")
    assert fill in ask("diagnose/load", tables, give="output_ratio samples")
