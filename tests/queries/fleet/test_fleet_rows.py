"""Queries over many runs."""

import pytest
from query_cases import answers

HOUR = 3_600_000_000_000


def rank(run, **facts):
    """A rank that trained for an hour."""
    usual = {
        "run": run, "run_id": run, "state": "complete", "started_at": "2026-11-02T00:00:00Z", "week": "2026-11-02",
        "workload": "train", "machine": "m", "conditions": "c", "mindspore": "2.7", "kind": "train", "steps": 10,
        "median_ns": 100.0, "training_ns": HOUR, "wait_ns": 0, "verdict": "consumer_bound",
        "cause": "compute",
    }  # fmt: skip
    return usual | facts


BOUND = {"cause": "input_bound", "op_type": "MapOp", "op_name": "decode"}
FIX = BOUND | {"advice": "workers", "parameter": "num_parallel_workers", "call": "t.py:9"}


def rows_of(times, **facts):
    """One run for each host of a job."""
    return [rank(f"{facts}{host}", host=host, median_ns=ns, **facts) for host, ns in times.items()]


GIVE = "place workload runs input_bound rank_hours wait_hours data_wait_share"

test_rows_of_fleet_cause = answers("fleet/cause", {
    "the same code is one cause in all workloads": (
        "place op_type op_name code op_kind runs workloads rank_hours wait_hours",
        {"fleet_rank": [rank("a", **BOUND, code="t.py:3", op_kind="cpu", wait_ns=HOUR // 2),
                        rank("b", **BOUND, code="t.py:3", op_kind="cpu", wait_ns=HOUR // 2, workload="other"),
                        rank("c", **BOUND, code="t.py:3", op_kind="gil", wait_ns=HOUR // 4),
                        rank("d", **BOUND, call="t.py:9", wait_ns=HOUR // 4), rank("e", wait_ns=HOUR)]},
        [(1, "MapOp", "decode", "t.py:3", "cpu", 3, 2, 3.0, 1.25),
         (2, "MapOp", "decode", "t.py:9", None, 1, 1, 1.0, 0.25)]),
}, top=5)  # fmt: skip

test_rows_of_fleet_fix = answers("fleet/fix", {
    "hours are saved by the predicted speed up": (
        "code runs rank_hours saved_hours least_hours most_hours median_gain all_hours",
        {"fleet_rank": [rank("a", **FIX, gain=2.0, gain_low=1.0, gain_high=4.0),
                        rank("a", rank=1, **FIX, gain=2.0, gain_low=1.0, gain_high=4.0),
                        rank("b", **FIX, gain=1.25, gain_low=0.9, gain_high=1.25),
                        rank("c", **FIX | {"call": "u.py:1"}, gain=4.0), rank("d", **FIX, gain=None),
                        rank("e", **FIX, gain=0.5)]},
        [("t.py:9", 2, 3.0, pytest.approx(1.2), pytest.approx(0.0), pytest.approx(1.7), pytest.approx(1.625),
          pytest.approx(1.95)),
         ("u.py:1", 1, 1.0, pytest.approx(0.75), None, None, pytest.approx(4.0), pytest.approx(1.95))]),
    "the sum counts what is not listed": ("all_hours",
        {"fleet_rank": [rank(name, **FIX | {"call": name}, gain=2.0) for name in "abc"]}, [(1.5,)], {"top": 1}),
    "advice on a pipeline that does not lead saves nothing": ("",
        {"fleet_rank": [rank("a", **FIX | {"cause": "host_gap"}, gain=2.0)]}, []),
}, top=5)  # fmt: skip

test_rows_of_fleet_lead = answers("fleet/lead", {
    "what costs most hours is first and what costs nobody knows last": ({"fleet_rank": [
            rank("a", cause="part", cause_detail="evaluation", cause_share=0.5),
            rank("b", cause="part", cause_detail="evaluation", cause_share=0.25, workload="other"),
            rank("c", cause="input_bound", cause_detail="cpu", cause_share=0.6),
            rank("d", cause="input_bound", cause_detail="wait", cause_share=0.1), rank("e"),
            {"run": "f", "state": "damaged"}]},
        ("place cause detail runs workloads rank_hours lost_hours",
         [(1, "part", "evaluation", 2, 2, 2.0, pytest.approx(0.75)),
          (2, "input_bound", None, 2, 1, 2.0, pytest.approx(0.7)), (3, "compute", None, 1, 1, 1.0, None)]),
        ("place", [(1,)], {"top": 1})),
}, top=5)  # fmt: skip

test_rows_of_fleet_left_out = answers("fleet/left_out", {
    "damaged running failed and empty runs are listed": ("state run problem measured",
        {"fleet_rank": [rank("whole"), {"run": "b", "state": "damaged", "problem": "why"},
                        {"run": "a", "state": "running"}, rank("f", state="failed", problem="it fell"),
                        rank("empty", training_ns=None, steps=None)]},
        [("complete", "empty", None, False), ("damaged", "b", "why", False), ("failed", "f", "it fell", True),
         ("running", "a", None, False)]),
})  # fmt: skip

test_rows_of_fleet_machine = answers("fleet/machine", {
    "jobs of fewer than three hosts and of other conditions are not compared": ("",
        {"fleet_rank": rows_of({"a": 100.0, "b": 200.0}, workload="x")
         + rows_of({"a": 100.0, "b": 200.0}, workload="y", conditions="one")
         + [*rows_of({"c": 100.0}, workload="y", conditions="two"), rank("u", host=None)]}, []),
}, slow=1.05)  # fmt: skip

test_rows_of_fleet_series = answers("fleet/series", {
    "oldest first within conditions by the slowest rank": ("conditions run step_ns ranks",
        {"fleet_rank": [rank("late", started_at="2026-11-09T00:00:00Z", median_ns=5.0),
                        rank("late", rank=1, started_at="2026-11-09T00:00:00Z", median_ns=7.0),
                        rank("early", median_ns=3.0), rank("warm", rep=1, kind="warmup", median_ns=9.0),
                        rank("other", conditions="b", median_ns=1.0), rank("failed", state="failed"),
                        {"run": "x", "state": "damaged"}]},
        [("b", "other", 1.0, 1), ("c", "early", 3.0, 1), ("c", "warm", 9.0, 1), ("c", "late", 7.0, 2)]),
    "one slow repetition is no slow run": ("step_ns",
        {"fleet_rank": [rank("run", rep=rep, rank=number, median_ns=step)
                        for rep, steps in enumerate([(4.0, 5.0), (9.0, 2.0), (6.0, 1.0)])
                        for number, step in enumerate(steps)]}, [(6.0,)]),
})  # fmt: skip

test_rows_of_fleet_state = answers("fleet/state", {
    "runs and rank hours by state": ("state runs workloads measured rank_hours wait_hours",
        {"fleet_rank": [rank("a", wait_ns=HOUR // 2), rank("a", rank=1, wait_ns=HOUR // 4), rank("b", workload="other"),
                        {"run": "c", "state": "damaged"}, {"run": "d", "state": "running", "workload": "train"}]},
        [("complete", 2, 2, 2, 3.0, 0.75), ("damaged", 1, 0, 0, None, None), ("running", 1, 1, 0, None, None)]),
})  # fmt: skip

test_rows_of_fleet_version = answers("fleet/version", {
    "versions in the order of their first use": ("machine turn mindspore runs step_ns before ratio",
        {"fleet_rank": [rank("a", mindspore="2.10", started_at="2026-11-01T00:00:00Z", median_ns=100.0),
                        rank("b", mindspore="2.9", started_at="2026-11-03T00:00:00Z", median_ns=150.0),
                        rank("c", mindspore="2.9", started_at="2026-11-04T00:00:00Z", median_ns=250.0),
                        rank("d", mindspore=None), rank("e", mindspore="2.9", machine="other")]},
        [("m", 1, "2.10", 1, 100.0, None, None), ("m", 2, "2.9", 2, 200.0, "2.10", 2.0),
         ("other", 1, "2.9", 1, 100.0, None, None)]),
})  # fmt: skip

test_rows_of_fleet_wait = answers("fleet/wait", {
    "ranks and repetitions add up": (GIVE,
        {"fleet_rank": [rank("a", rep=rep, rank=at, wait_ns=HOUR // 2, cause="input_bound") for rep in (0, 1)
                        for at in (0, 1)] + [rank("b", wait_ns=0), rank("c", workload="other", wait_ns=HOUR)]},
        [(1, "train", 2, 1, 5.0, 2.0, 0.4), (2, "other", 1, 0, 1.0, 1.0, 1.0)]),
    "waiting that was not seen is unknown and last": ({"fleet_rank": [rank("a", wait_ns=None),
            rank("b", workload="other", wait_ns=0), {"run": "c", "state": "damaged"}]},
        ("workload wait_hours data_wait_share", [("other", 0.0, 0.0), ("train", None, None)]),
        ("place", [(1,)], {"top": 1})),
}, top=5)  # fmt: skip


def test_a_host_is_slow_by_the_middle_of_the_hosts_of_each_job(ask):
    rows = [
        row
        for job in "xyz"
        for row in rows_of({"a": 100.0, "b": 102.0, "slow": 125.0, "c": 98.0, "d": 100.0}, workload=job)
    ]
    found = ask("fleet/machine", {"fleet_rank": rows}, give="host slow_jobs jobs lost_hours", slow=1.05)
    lost = pytest.approx(3 * 0.2)
    assert found == [("a", 0, 3, 0), ("b", 0, 3, 0), ("c", 0, 3, 0), ("d", 0, 3, 0), ("slow", 3, 3, lost)]
    assert ask("fleet/machine", {"fleet_rank": rows}, give="median_ratio", slow=1.05)[-1] == (pytest.approx(1.25),)
