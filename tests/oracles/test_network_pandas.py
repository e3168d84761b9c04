"""A second, plain implementation of the parts of a step: nanosecond by nanosecond."""

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeprof.query.engine import Engine

random_rows = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

LENGTH, STEPS = 40, 3
PHASES = ["forward", "backward", "optimizer", "communication", "other", "gradients", "after", None]
COMPUTE = ["forward", "backward", "optimizer", "other", "gradients", "after"]
PARTS = [*COMPUTE, "communication_tail", "communication_exposed", "data_wait", "host_gap", "other_loader"]

interval = {"start": st.integers(-5, LENGTH), "dur": st.integers(0, LENGTH), "step": st.integers(0, STEPS - 1)}
intervals = st.lists(st.fixed_dictionaries({"rank": st.integers(0, 1), **interval}), max_size=12)
operators = st.lists(
    st.fixed_dictionaries({"rank": st.integers(0, 1), "op_id": st.integers(0, len(PHASES) - 1), **interval}),
    max_size=20,
)
points = st.lists(st.none() | st.integers(0, LENGTH), min_size=STEPS, max_size=STEPS)


def placed(row):
    """A row of hypothesis in the time of its step."""
    start = row["step"] * LENGTH + row["start"]
    return {"rank": row["rank"], "step": row["step"], "start_ns": start}


def make_tables(ops, events, fetches, backward):
    ranks = (0, 1)
    return {
        "step": [
            {
                "rank": rank, "step": n, "kind_step": n, "kind": "train", "start_ns": n * LENGTH,
                "end_ns": (n + 1) * LENGTH, "bp_ns": None if bp is None else n * LENGTH + bp,
            }
            for rank in ranks for n, bp in enumerate(backward)
        ],
        "op": [{**placed(r), "op_id": r["op_id"], "dur_ns": r["dur"], "self_ns": r["dur"], "track": "0"} for r in ops],
        "op_info": [{"rank": rank, "op_id": n, "phase": phase} for rank in ranks for n, phase in enumerate(PHASES)],
        "collective": [{**placed(r), "dur_ns": r["dur"]} for r in events],
        "fetch": [{**placed(r), "wait_ns": r["dur"]} for r in fetches],
    }  # fmt: skip


def seen(rows, rank, step, moment):
    return [r for r in rows if (r["rank"], r["step"]) == (rank, step) and r["start"] <= moment < r["start"] + r["dur"]]


def part_at(moment, ops, events, fetches, backward, rank, step):
    """What a moment of a step counts as, and whether communication runs beside operators."""
    running = {PHASES[row["op_id"]] or "other" for row in seen(ops, rank, step, moment)}
    talking = "communication" in running or bool(seen(events, rank, step, moment))
    for phase in COMPUTE:
        if phase in running:
            return phase, talking
    if talking:
        tail = backward[step] is not None and moment >= backward[step]
        return ("communication_tail" if tail else "communication_exposed"), False
    return ("data_wait" if seen(fetches, rank, step, moment) else "host_gap"), False


def expected_shares(ops, events, fetches, backward):
    rows = [
        {"rank": rank, "step": step, "part": part, "overlapped": overlapped}
        for rank, step in sorted({(row["rank"], row["step"]) for row in ops})
        for part, overlapped in [part_at(t, ops, events, fetches, backward, rank, step) for t in range(LENGTH)]
    ]
    shares = {}
    if rows:
        for rank, group in pd.DataFrame(rows).groupby("rank"):
            counted = group.part.value_counts(normalize=True)
            shares |= {(rank, part): counted.get(part, 0.0) for part in PARTS}
            shares[rank, "communication_overlapped"] = group.overlapped.mean()
    return shares


@random_rows
@given(ops=operators, events=intervals, fetches=intervals, backward=points)
def test_shares_of_the_parts_of_a_step(make_run, ops, events, fetches, backward):
    tables = {name: rows for name, rows in make_tables(ops, events, fetches, backward).items() if rows}
    with Engine.open(make_run(tables)) as engine:
        found = {(row["rank"], row["part"]): row["share"] for row in engine.rows("diagnose/network_phase")}
    assert found == {
        key: pytest.approx(share, rel=1e-9) for key, share in expected_shares(ops, events, fetches, backward).items()
    }


@random_rows
@given(
    times=st.lists(st.integers(0, 500), min_size=3, max_size=12),
    gaps=st.lists(st.integers(1, 3), min_size=12, max_size=12),
)
def test_slope_and_its_variance(make_run, times, gaps):
    numbers = pd.Series(gaps[: len(times)]).cumsum().tolist()
    steps = [
        {"step": n, "kind_step": n, "kind": "train", "start_ns": 1000 * n, "end_ns": 1000 * n + 1000} for n in numbers
    ]
    ops = [
        {"op_id": 0, "step": n, "start_ns": 1000 * n, "dur_ns": time, "self_ns": time, "track": "0"}
        for n, time in zip(numbers, times, strict=True)
    ]
    with Engine.open(make_run({"step": steps, "op": ops})) as engine:
        (row,) = engine.rows("diagnose/op_growth", top=1)
    frame = pd.DataFrame({"x": numbers, "y": times}).astype(float)
    slope = frame.x.cov(frame.y) / frame.x.var()
    left = frame.y - frame.y.mean() - slope * (frame.x - frame.x.mean())
    variance = (left**2).sum() / (len(frame) - 2) / ((frame.x - frame.x.mean()) ** 2).sum()
    assert row["slope_ns"] == pytest.approx(slope, rel=1e-9, abs=1e-9)
    assert row["slope_variance"] == pytest.approx(variance, rel=1e-9, abs=1e-9)
    assert row["windows"] == 1 + sum(gap > 1 for gap in gaps[1 : len(times)])
