"""A second, plain implementation in pandas of the numbers that decide a verdict, on random rows."""

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeprof.query.engine import Engine

# `make_run` makes a new run folder each time, so one of them serves all examples.
random_rows = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

RANKS = {"rep": st.integers(0, 1), "rank": st.integers(0, 1)}


def unique_rows(key, **columns):
    return st.lists(st.fixed_dictionaries({**RANKS, **columns}), min_size=1, max_size=30, unique_by=key)


def answer(run, name, columns, **params):
    with Engine.open(run) as engine:
        return [tuple(row[column] for column in columns) for row in engine.rows(name, **params)]


def same(found, expected):
    """Whole numbers and text equal, floats to 1e-9, pandas' NaN as null."""
    clean = [tuple(None if pd.isna(value) else value for value in row) for row in expected]
    assert [tuple(map(type_free, row)) for row in found] == [tuple(map(type_free, row)) for row in clean]


def type_free(value):
    return pytest.approx(float(value), rel=1e-9) if isinstance(value, int | float) else value


@random_rows
@given(
    rows=unique_rows(
        lambda row: (row["rep"], row["rank"], row["step"]),
        step=st.integers(0, 20),
        kind=st.sampled_from(["warmup", "train", "eval"]),
        start_ns=st.integers(0, 100),
        dur_ns=st.integers(1, 1000),
        fetch_wait_ns=st.none() | st.integers(0, 500),
        in_window=st.sampled_from([True, False, None]),
    )
)
def test_data_wait_share(make_run, rows):
    steps = [
        {**{k: v for k, v in row.items() if k != "dur_ns"}, "end_ns": row["start_ns"] + row["dur_ns"]} for row in rows
    ]
    found = answer(make_run({"step": steps}), "step/data_wait", ["rep", "rank", "steps", "step_ns", "data_wait_share"])
    expected = []
    for (rep, rank), group in pd.DataFrame(rows).groupby(["rep", "rank"]):
        used = group[group.kind == "train"]
        if used.empty:
            used = group[group.kind == "warmup"]
        outside = used[used.in_window.map(lambda flag: flag is not True)]
        used = used if outside.empty else outside
        if not used.empty:
            waits = used.fetch_wait_ns.astype(float)
            expected.append((rep, rank, len(used), used.dur_ns.sum(), waits.sum(min_count=1) / used.dur_ns.sum()))
    same(found, expected)


@random_rows
@given(
    rows=unique_rows(
        lambda row: (row["rep"], row["rank"], row["pipeline_id"], row["op_id"], row["t_ns"]),
        pipeline_id=st.integers(0, 2),
        op_id=st.integers(0, 2),
        t_ns=st.integers(0, 8).map(lambda number: number * 125),
        depth=st.integers(0, 4),
        capacity=st.sampled_from([4, 8]),
    ),
)
def test_queue_utilisation(make_run, rows):
    keys = {0: "a", 1: "a", 2: "b"}
    places = {(row["rep"], row["rank"]) for row in rows}
    pipelines = [
        {"rep": rep, "rank": rank, "pipeline_id": number, "pipeline_key": key}
        for rep, rank in places
        for number, key in keys.items()
    ]
    run = make_run({"queue": rows, "pipeline": pipelines})
    columns = [
        "rep", "rank", "pipeline_key", "op_id", "samples", "mean_depth", "mean_ratio", "empty_share", "full_share",
    ]  # fmt: skip
    found = answer(run, "queue/utilisation", columns)

    frame = pd.DataFrame(rows)
    times = frame.groupby(["rep", "rank", "pipeline_id"]).t_ns
    first, last = times.transform("min"), times.transform("max")
    frame = frame.assign(
        key=frame.pipeline_id.map(keys),
        ratio=frame.depth / frame.capacity,
        steady=frame.t_ns >= first + (last - first) / 4,
    )
    frame = frame[frame.steady | (frame.groupby(["rep", "rank", "key", "op_id"]).steady.transform("sum") < 3)]
    expected = [
        (
            *place,
            len(group),
            group.depth.mean(),
            group.ratio.mean(),
            (group.depth == 0).mean(),
            (group.ratio >= 1).mean(),
        )
        for place, group in frame.groupby(["rep", "rank", "key", "op_id"])
    ]
    same(found, expected)


@random_rows
@given(
    kinds=st.lists(st.sampled_from(["warmup", "train", "eval"]), min_size=4, max_size=4),
    rows=unique_rows(
        lambda row: (row["rep"], row["rank"], row["start_ns"]),
        op_id=st.integers(0, 4),
        step=st.none() | st.integers(0, 3),
        start_ns=st.integers(0, 1000),
        self_ns=st.integers(0, 50),
    ),
)
def test_share_by_operator_type(make_run, rows, kinds):
    types = {0: "Add", 1: "MatMul", 2: "Add", 3: "ReLU"}  # 4 is an operator nothing is known of
    places = {(row["rep"], row["rank"]) for row in rows}
    at = [{"rep": rep, "rank": rank} for rep, rank in places]
    tables = {
        "op": [{**row, "dur_ns": row["self_ns"], "track": "0"} for row in rows],
        "op_info": [{**place, "op_id": op_id, "type": kind} for place in at for op_id, kind in types.items()],
        "step": [{**place, "step": step, "kind": kind} for place in at for step, kind in enumerate(kinds)],
    }
    found = answer(
        make_run(tables), "op/by_type", ["rep", "rank", "type", "count", "self_ns", "share", "cumulative_share"]
    )

    expected = []
    frame = pd.DataFrame(rows)
    known = dict(enumerate(kinds))
    frame = frame.assign(
        type=[types.get(op_id, "~") for op_id in frame.op_id],
        kind=["none" if pd.isna(step) else known[int(step)] for step in frame.step],
    )
    for (rep, rank), group in frame.groupby(["rep", "rank"]):
        used = next(
            (part for kind in ("train", "warmup", "none") if not (part := group[group.kind == kind]).empty), None
        )
        if used is None:
            continue
        total = used.self_ns.sum()
        sums = (
            used.groupby("type")
            .self_ns.agg(["size", "sum"])
            .reset_index()
            .sort_values(["sum", "type"], ascending=[False, True])
        )
        running = 0
        for row in sums.itertuples(index=False):
            running += row.sum
            shares = (row.sum / total, running / total) if total else (None, None)
            expected.append((rep, rank, None if row.type == "~" else row.type, row.size, row.sum, *shares))
    same(found, expected)
