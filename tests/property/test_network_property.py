"""The parts of a step add up to it, and the verdict holds together, whatever the rows."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typed_rows import of_dicts

from pipeprof.query.engine import Engine
from pipeprof.verdict import network
from pipeprof.verdict.network import PARTS

diagnose_network = of_dicts(network.diagnose_network)

random_rows = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

times = st.integers(0, 2**50)
spans = st.lists(st.tuples(times, times, st.integers(0, 5), st.integers(0, 1)), min_size=1, max_size=30)
PHASES = ["forward", "backward", "optimizer", "communication", "other"]


def tables_of(start, length, backward, rows):
    step = {"step": 0, "kind_step": 0, "kind": "train", "start_ns": start, "end_ns": start + length, "bp_ns": backward}
    found = {"step": [{**step, "rank": rank} for rank in (0, 1)], "op": [], "fetch": []}
    for begin, dur, number, rank in rows:
        here = {"rank": rank, "step": 0, "start_ns": begin}
        if number == 5:
            found["fetch"].append({**here, "wait_ns": dur})
        else:
            found["op"].append({**here, "op_id": number, "dur_ns": dur, "self_ns": dur, "track": "0"})
    found["op_info"] = [{"rank": rank, "op_id": n, "phase": phase} for rank in (0, 1) for n, phase in enumerate(PHASES)]
    return {name: rows for name, rows in found.items() if rows}


@random_rows
@given(start=times, length=times, backward=st.none() | times, rows=spans)
def test_the_parts_of_a_step_add_up_to_it_exactly(make_run, start, length, backward, rows):
    with Engine.open(make_run(tables_of(start, length, backward, rows))) as engine:
        found = engine.rows("diagnose/network_phase")
    for rank in {row["rank"] for row in found}:
        mine = [row for row in found if row["rank"] == rank]
        assert sum(row["total_ns"] for row in mine if row["adds_up"]) == length
        assert all(0 <= row["total_ns"] <= length for row in mine)


weights = st.fixed_dictionaries({part: st.integers(0, 1000) for part in PARTS})


def phase_rows(parts, rank, kind):
    step_ns = sum(parts.values())
    common = {"rep": 0, "rank": rank, "kind": kind, "steps": 12, "step_ns": step_ns, "inside_work_ns": 1.0}
    return [
        {**common, "part": part, "adds_up": True, "total_ns": time, "outside_work_ns": None}
        for part, time in parts.items()
    ]


@given(ranks=st.lists(weights, min_size=1, max_size=3), kind=st.sampled_from(["train", "warmup"]))
def test_a_verdict_names_the_largest_part_and_its_shares_add_up(ranks, kind):
    rows = [row for rank, parts in enumerate(ranks) for row in phase_rows(parts, rank, kind)]
    found = diagnose_network(rows)
    if found["limit"] == "not_measured":
        assert found["shares"] is None
        assert found["confidence"] == "low"
        return
    assert sum(found["shares"][part] for part in PARTS) == pytest.approx(1)
    assert found["limit_share"] == max(found["weights"].values())
    assert found["candidates"][0] == found["limit"]
    assert len(found["candidates"]) == 1 or found["confidence"] == "low"
    assert all(0 <= item["value"] <= 1 for item in found["evidence"])
    assert found["actions"]
