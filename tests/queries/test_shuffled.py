"""The order of rows, and the files they are in, change no answer; on data with ties, nulls and zeros."""

from random import Random

import pyarrow.parquet as pq
import pytest

from pipeprof.query import catalog
from pipeprof.query.engine import Engine

pytestmark = pytest.mark.slow  # asks every query many times

VALUES = {"bigint": 3, "integer": 3, "double": 0.25, "boolean": False}
CHOICES = {
    "group_by": "name", "side": "device", "key": "total", "by": "type", "aggregate": "sum", "order_by": "self_ns",
    "rep": -1, "rank": -1, "library": "^torch/", "training": "train", "network": "net", "waits": "wait", "every": True,
    "bounded": False, "ascending": False, "made_of": "it", "most_bytes": 1000, "pipeline_id": 1, "first_ns": 10,
    "last_ns": 100,
}  # fmt: skip


def params_of(query):
    return {item.name: _choice(item) for item in query.takes}


def _choice(item):
    """-1 is all repetitions or ranks; a query of one is asked for the first."""
    if item.name in ("rep", "rank") and item.doc.startswith("this "):
        return 0
    return CHOICES[item.name] if item.name in CHOICES else VALUES[item.type]


FULL = 20260101  # with this seed every query has rows


def nasty_tables(seed=FULL):
    """Two repetitions of three ranks; values from few choices, so that there are ties, nulls and zeros."""
    chance = Random(seed)  # noqa: S311 - test data
    tables = {}

    def add(table, **row):
        tables.setdefault(table, []).append(row)

    for rep, rank in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]:
        here = {"rep": rep, "rank": rank}
        add_steps(add, chance, here)
        add_pipelines(add, chance, here)
        add_samples(add, chance, here)
        add_allocations(add, chance, here)
        add_other_profiler(add, Random(10 * rep + rank), here)  # noqa: S311 - test data
        add_account(add, Random(rank), here)  # noqa: S311 - test data
        add_passes(add, here)
        add_loading(add, here)
        add_syncs(add, Random(20 * rep + rank), here)  # noqa: S311 - test data
    add_facts(add, chance)
    add_fleet(add, Random(7))  # noqa: S311 - test data
    return tables


def add_fleet(add, chance):
    """Runs of many hosts that run the same, two ranks each."""
    for number in range(24):
        times = {"training_ns": chance.choice([None, 8, 8, 16]), "wait_ns": chance.choice([None, 0, 4])}
        cause = {
            "op_type": chance.choice(["Map", None]), "code": chance.choice(["a.py:1", None]),
            "advice": "workers", "gain": chance.choice([None, 1.5, 2.0]), "verdict": chance.choice(["input_bound", "balanced"]),
            "op_kind": chance.choice(["cpu", "wait"]), "cause": chance.choice(["input_bound", "input_bound", "part"]),
            "cause_detail": chance.choice(["evaluation", None]), "cause_share": chance.choice([None, 0.25, 0.5]),
        }  # fmt: skip
        job = {
            "workload": chance.choice("xy"), "conditions": "c", "machine": "m", "host": f"host{number % 4}",
            "mindspore": chance.choice(["2.7", "2.10", None]), "state": chance.choice(["complete", "complete", "damaged"]),
            "started_at": chance.choice(["2026-01-05", "2026-01-12"]), "kind": "train", "run": f"run{number}",
        }  # fmt: skip
        for rank in (0, 1):
            add("fleet_rank", rank=rank, median_ns=chance.choice([5.0, 5.0, 9.0]), **cause, **times, **job)


def add_loading(add, here):
    """Calls of a data loader, two of them at the same time, and of the host in a step."""
    add("op_info", op_id=8, name="read", phase="data", **here)
    add("op_info", op_id=7, name="ProfilerStep*", phase="other", category="user_annotation", **here)
    add("op_info", op_id=6, name="train.py(1): f", phase="other", category="python_function", **here)
    for number in (6, 7):
        add("op", op_id=number, step=2, exec_id=number, start_ns=20, dur_ns=4, self_ns=900, track="host", **here)
    for call in range(4):
        op = {"op_id": 8, "step": call, "exec_id": call, "start_ns": 10 * (2 + call), "dur_ns": 14}
        add("op", track=f"{call % 2}", **op, **here)


def add_passes(add, here):
    """What a replay of steps reads: a microbatch forward through the model."""
    add("op_info", op_id=9, name="pass", type="Pass", phase="forward", category="pass", **here)
    for step in range(4):
        add("op", op_id=9, step=step, start_ns=step, dur_ns=1, track="0", **here)


def add_syncs(add, chance, here):
    for number in range(24):
        names = {"call": chance.choice(["item", None]), "site": chance.choice(["a.py:1", "a.py:2", None])}
        times = {"step": chance.choice([number // 2, None]), "count": chance.choice([1, 2])}
        add("sync", total_ns=chance.choice([0, 5, 5]), max_ns=5, **times, **names, **here)


def add_steps(add, chance, here):
    clock = 0
    for number in range(12):
        first, second, third = (chance.choice([0, 10, 10, 30]) for _ in range(3))
        end = clock + first + second + third
        fp, bp = (chance.choice([at, None]) for at in (clock + first, clock + first + second))
        kind = "warmup" if number < 2 else chance.choice(["train", "train", "eval"])
        facts = {"fetch_wait_ns": chance.choice([None, 0, 5]), "in_window": chance.choice([True, False, None])}
        times = {"start_ns": clock, "fp_ns": fp, "bp_ns": bp, "end_ns": end}
        add("step", step=number, kind_step=number, kind=kind, **facts, **times, **here)
        for _ in range(4):
            start = clock + chance.choice([0, 5, 20])
            step = chance.choice([number, number, None])
            op = {
                "op_id": chance.randrange(4),
                "self_ns": chance.choice([None, 0, 5, 5]),
                "dur_ns": chance.choice([0, 5, 9]),
            }
            add("op", step=step, start_ns=start, track="0", **op, **here)
            kind = chance.choice(["all_reduce", "broadcast", None])
            name = ["x", "y", "y", None][number % 4]
            add("collective", step=step, kind=kind, name=name, start_ns=start, dur_ns=chance.choice([0, 5, 40]), **here)
        clock = end
    for op_id in range(3):
        facts = {"type": chance.choice(["Add", "MatMul"]), "phase": chance.choice(["forward", "backward"])}
        add("op_info", op_id=op_id, **facts, stack_id=chance.choice([None, 2, 3]), **here)


def add_pipelines(add, chance, here):
    for number in range(3):
        pipeline = {"pipeline_id": number, **here}
        add("pipeline", **pipeline, pipeline_key="a" if number < 2 else "b", role="train")
        for op_id in range(4):
            capacity = chance.choice([4, None]) if number == 2 else 4
            add("pipeline_op", **pipeline, op_id=op_id, op_type=f"Op{op_id}", workers=1, capacity=capacity)
        for op_id in range(1, 4):
            add("pipeline_edge", **pipeline, producer_id=op_id, consumer_id=op_id - 1)
        for fetch in range(20):
            op = {**pipeline, "op_id": chance.randrange(4), "t_ns": 40 * chance.randrange(6)}
            add("queue", **op, depth=chance.choice([0, 0, 2, 4, None]), capacity=chance.choice([4, 4, 0]))
            add("op_service", **op, avg_ns=chance.choice([None, 0, 7, 7]), rows=chance.choice([0, 1, 4]))
            side = chance.choice(["iterator", "host_queue", "data_queue"])
            times = {"fetch": fetch, "step": fetch % 4, "start_ns": 10 * fetch, "wait_ns": chance.choice([0, 5, 5])}
            add("fetch", **pipeline, depth=chance.choice([0, 1, None]), side=side, **times)


def add_samples(add, chance, here):
    for number in range(20):
        at = {"t_ns": number // 2, "name": chance.choice(["trainer", "worker", None]), "pid": chance.choice([1, 2])}
        ratios = {"user_ratio": chance.choice([0.0, 0.1, 0.7, None]), "sys_ratio": chance.choice([0.0, 0.3])}
        scope = chance.choice(["host", "process", "pipeline_op"])
        add("cpu", scope=scope, idle_ratio=chance.choice([0.2, None]), pipeline_id=0, op_id=1, **ratios, **at, **here)
        add("memory", device=chance.choice(["process", "CPU"]), rss_bytes=chance.choice([None, 5, 9]), **at, **here)


def add_allocations(add, chance, here):
    for number in range(12):
        at = number // 2 * 5
        released = chance.choice([None, at + 20, at + 20, at])
        op = {"op_id": chance.randrange(3), "bytes": chance.choice([8, 8, 0, 16])}
        known = ("matched", None, "earlier", "inferred")[number % 4]
        add("allocation", address=number % 4, produced_ns=at, released_ns=released, evidence=known, **op, **here)
    for number in range(24):
        add("memory", t_ns=15 * number, device="process", pid=1, rss_bytes=chance.choice([5, 9, 12]), **here)
    for number in range(4):
        add("stack", stack_id=number, parent_id=number - 1 if number else None, frame=f"f{number % 2}", **here)
    for number in range(24):
        add("stack_sample", t_ns=15 * number, dur_ns=number % 3 * 5, stack_id=number % 4, **here)


def add_other_profiler(add, chance, here):
    for number in range(6):
        parts = {f"{name}_ns": chance.choice([0, 10, 10, 30]) for name in ("computing", "exposed", "overlapped")}
        more = {f"{name}_ns": chance.choice([None, 0, 5]) for name in ("free", "bubble", "stage", "receive")}
        add("step_split", step=number, source_step=number, source="step_trace_time", **parts, **more, **here)
    for _ in range(20):
        at = {"step": chance.choice([2, 3, None]), "name": chance.choice("ab"), **here}
        ends = {"src_rank": chance.choice([0, 1, None]), "dst_rank": chance.choice([0, 1, 2])}
        times = {"bytes": chance.choice([0, 8, 8, None]), "dur_ns": chance.choice([0, 5, 5, 10])}
        group = {"group_name": "pair" if at["name"] == "a" else None}
        add("rank_link", transport=chance.choice(["HCCS", "RDMA", None]), **group, **ends, **times, **at)
        add("collective_cost", transit_ns=chance.choice([0, 5, None]), wait_ns=chance.choice([0, 5]), **at)
        kinds = {"type": chance.choice(["Add", "MatMul", None]), "device": chance.choice(["AI_CORE", "host", None])}
        amounts = {"count": chance.choice([None, 1, 2]), "total_ns": chance.choice([None, 0, 9, 9])}
        add("op_total", name=chance.choice(["x", "y", None]), source="aicore_type", **kinds, **amounts, **here)


def add_account(add, chance, here):
    for stage, start, dur in (("start", 0, 4), ("warmup", 4, 9), ("steady", 13, 20)):
        add("stage", stage=stage, start_ns=start, dur_ns=dur, **here)
    for number in range(6):
        cause = chance.choice(["again", "short_batch", None])
        part = {
            "part": chance.choice(["training", "recompile"]),
            "detail": chance.choice(["Net", None]),
            "cause": cause,
        }
        add("run_part", count=1, start_ns=8 * number, dur_ns=chance.choice([0, 8, 8]), **part, **here)
    for number in range(6):  # intervals of 8, so that their parts are exact
        times = {"start_ns": 8 * number, "end_ns": 8 * number + 8, **here}
        amounts = {name: chance.choice([None, 0, 5]) for name in ("idle_ns", "throttled_ns", "steal_ns", "pressure_ns")}
        add("cpu_room", cores=chance.choice([None, 2.0]), **amounts, **times)
        for part in ("main", "child", "child", "neighbour"):
            pid = chance.choice([None, 7, 8]) if part == "child" else None
            used = {"cpu_ns": chance.choice([0, 5, 5]), "wait_ns": chance.choice([None, 3])}
            add("cpu_use", part=part, pid=pid, **used, **times)
    for pid in (7, 8):
        names = {"what": chance.choice(["a", None]), "command": chance.choice(["c", None])}
        add("process", pid=pid, site="t.py:9", **names, **here)


def add_facts(add, chance):
    for name in "abcd":
        for side in ("base", "new"):
            if chance.random() < 0.8:
                add("side_fact", side=side, name=name, value=chance.choice(["x", "y"]))
    for place in range(4):
        for query in "ab":
            add("kept_answer", made_of=chance.choice(["it", "other"]), query=query, asked="", place=place, row_text="")


def shuffled(tables, seed):
    chance = Random(seed)  # noqa: S311 - test data
    return {name: chance.sample(rows, len(rows)) for name, rows in tables.items()}


def split_files(run):
    """Make two files of each, the second half first."""
    for path in run.path.glob("*/rep=*/rank=*/part-00000.parquet"):
        data = pq.ParquetFile(path).read()
        half = data.num_rows // 2
        pq.write_table(data.slice(half), path)
        pq.write_table(data.slice(0, half), path.with_name("part-00001.parquet"))


def answers(run):
    with Engine.open(run) as engine:
        return {query.name: engine.rows(query.name, **params_of(query)) for query in catalog.all_queries()}


def close(value):
    return pytest.approx(value, rel=1e-9, nan_ok=True) if isinstance(value, float) else value


@pytest.mark.parametrize("seed", [FULL, 1, 2, 3])
def test_shuffled_rows_in_other_files_give_the_same_answers(make_run, seed):
    tables = nasty_tables(seed)
    expected = answers(make_run(tables))
    other = make_run(shuffled(tables, seed))
    split_files(other)
    found = answers(other)
    for name, rows in expected.items():
        assert rows or seed != FULL, f"{name} was not tried: it has no rows"
        assert len(found[name]) == len(rows)
        for row, same in zip(rows, found[name], strict=True):
            assert same == {column: close(value) for column, value in row.items()}, name


@pytest.fixture(scope="module")
def whole(make_shared_run):
    """The answers of all queries over one run."""
    return answers(make_shared_run(nasty_tables()))


@pytest.mark.parametrize("query", catalog.all_queries(), ids=lambda query: query.name)
def test_keys_tell_rows_apart_and_sort_them(whole, query):
    keys = [tuple(row[column] for column in query.key) for row in whole[query.name]]
    assert keys == sorted(set(keys))
