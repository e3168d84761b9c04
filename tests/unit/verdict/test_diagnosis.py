"""The verdict on the data pipeline, put together from rows of the queries."""

from dataclasses import replace

import pytest
from typed_rows import of_dicts, rows

from pipeprof.query.rows import JudgedStage
from pipeprof.verdict import decision, pipeline
from pipeprof.verdict.decision import Decision
from pipeprof.verdict.facts import Facts
from pipeprof.verdict.rules import HIGH_WAIT, MODERATE_WAIT, RULES

diagnose = of_dicts(pipeline.diagnose)

decisions = of_dicts(decision.decisions)


def wait(share, steps=100, rep=0, rank=0, kind="train", step_ms=1):
    return {"rep": rep, "rank": rank, "kind": kind, "steps": steps, "data_wait_share": share,
            "step_ns": steps * step_ms * 1_000_000}  # fmt: skip


def decided(*ops, verdict="input_bound", share=0.6, rep=0, rank=0, batches=60, doubts=(), rule="busiest", kind="wait"):
    """A decision that names these stages in their order; it rests on nothing."""
    facts = Facts.of(rows(JudgedStage, [load(op, wait_share=share, batches=batches) for op in ops]), 8.0)
    stages = {stage.op_id: stage for stage in facts.stages}
    named = tuple(stages[op] for op in ops)
    (found,) = (item for item in RULES if item.name == rule)
    codes = tuple({"code": code} for code in doubts)
    return Decision(rep, rank, verdict, found, replace(facts, first=named[0]), named, (kind,) * len(ops), codes)


def load(op_id, rate=20.0, rep=0, rank=0, **more):
    row = {
        "rep": rep, "rank": rank, "pipeline_key": "a", "op_id": op_id, "op_type": "MapOp" if op_id >= 0 else "consumer",
        "workers": 1, "capacity": 4, "is_python": True, "uses_processes": False, "site": f"a.py:{op_id}",
        "code": "b.py:1", "source": "hook", "timed_batches": 60, "rows_per_batch": 8.0, "work_ns": 1e9 / rate,
        "row_ns": 1e9 / rate / 8, "rate": rate, "utilisation": 10.0 / rate, "kind": "wait", "below_concat": False,
        "cores": 0.1, "python_cores": 0.1, "cpu_share": 0.1, "samples": 60, "input_ratio": 1.0, "output_ratio": 0.0,
        "drop_ratio": 1.0, "batches": 60, "wait_share": 0.6, "loop_rate": 10.0, "consumer_rate": 25.0,
        "idle_share": 0.5, "process_cores": 1.0,
    }  # fmt: skip
    return row | more


@pytest.mark.parametrize("waits", [[], [wait(None)]])
def test_no_waits_and_no_batches_are_not_measured(waits):
    found = diagnose(waits, [], [])
    assert (found["verdict"], found["data_wait_share"], found["confidence"]) == ("not_measured", None, "low")


@pytest.mark.parametrize(
    ("share", "verdict", "severity"),
    [
        (MODERATE_WAIT - 1e-9, "consumer_bound", None),
        (MODERATE_WAIT, "input_bound", "moderate"),
        (HIGH_WAIT, "input_bound", "high"),
    ],
)
def test_without_batches_the_share_of_waiting_is_the_verdict_and_names_nobody(share, verdict, severity):
    found = diagnose([wait(share)], [], [])
    assert (found["verdict"], found["severity"], found["op_id"]) == (verdict, severity, None)
    assert (found["confidence"], [doubt["code"] for doubt in found["doubts"]]) == ("low", ["no_pipeline"])
    assert found["evidence"][0]["value"] == share


@pytest.mark.parametrize(
    ("utilisation", "longest", "doubted"), [(1.67, None, True), (1.1, None, False), (1.67, 5.0, False)]
)
def test_a_stage_never_works_more_than_all_the_time(utilisation, longest, doubted):
    rows = [load(1, 10.0, utilisation=utilisation, longest_batches=longest)]
    found = diagnose([wait(0.6)], decisions(rows, [], 8.0), rows, cores=8.0)
    (shown,) = [item for item in found["evidence"] if item["code"] == "utilisation"]
    assert (shown["value"], shown["measured_on"]) == (1.0, {"code": "prefilled", "times": utilisation})
    assert ("prefilled" in [doubt["code"] for doubt in found["doubts"]]) is doubted


def test_without_batches_the_worst_rank_of_the_middle_repetition_counts():
    waits = [wait(0.01), wait(0.3, rank=1), wait(0.9, rep=1), wait(0.02, rep=2)]
    assert diagnose(waits, [], [])["data_wait_share"] == 0.3


def test_the_operator_that_limits_is_named_with_its_place_and_evidence():
    found = diagnose([wait(0.6)], [decided(1, 0)], [load(-1), load(0, 90.0), load(1, 10.0)], cores=8.0)
    assert (found["op_id"], found["kind"], found["rule"], found["severity"]) == (1, "wait", "utilisation", "high")
    assert found["place"] == {"call": "a.py:1", "code": "b.py:1"}
    assert found["candidates"] == [1, 0]
    (busy,) = [item for item in found["evidence"] if item["code"] == "utilisation"]
    assert (busy["unit"], busy["value"], busy["facts"]["op"]["op_id"]) == ("share", 1.0, 1)
    assert busy["measured_on"] == {"code": "throughputs"}
    assert found["suggestions"][0]["parameter"] == "num_parallel_workers"


@pytest.mark.parametrize(
    ("doubts", "confidence"), [([], "high"), (["a"], "medium"), (["a", "b"], "low"), (["a", "b", "c"], "low")]
)
def test_doubts_make_the_verdict_less_sure(doubts, confidence):
    found = diagnose([], [decided(1, doubts=doubts)], [load(1)])
    assert (found["confidence"], [doubt["code"] for doubt in found["doubts"]]) == (confidence, doubts)


def test_repetitions_vote_and_the_least_disturbed_one_of_the_winners_is_shown():
    each = [
        decided(op, share=share, rep=rep) for rep, (op, share) in enumerate([(1, 0.9), (2, 0.95), (1, 0.5), (1, 0.7)])
    ]
    steps = [(0, 0, 9), (1, 0, 3), (2, 0, 4), (2, 1, 8), (3, 0, 5), (3, 1, 7)]  # each as long as its slowest rank's
    waits = [wait(0.7, rep=rep, rank=rank, step_ms=ms) for rep, rank, ms in steps]
    found = diagnose(waits, each, [load(1, rep=rep) for rep in range(4)])
    assert (found["op_id"], found["rep"], found["data_wait_share"]) == (1, 3, 0.7)
    assert found["repetitions"] == {"agree": 3, "of": 4}
    assert found["doubts"] == [{"code": "repetitions_differ", "agree": 3, "of": 4}]
    assert found["confidence"] == "medium"


def test_a_repetition_counts_with_the_rank_that_waits_most():
    loads = [load(1, rank=rank, rep=rep, wait_share=share) for rep, rank, share in
             [(0, 0, 0.01), (0, 1, 0.7), (0, 2, 0.4), (1, 0, 0.3)]]  # fmt: skip
    assert [(one.rep, one.rank) for one in decisions(loads, [], 8.0)] == [(0, 1), (1, 0)]


def test_a_pipeline_without_batches_is_not_decided():
    assert decisions([load(1, wait_share=None, batches=None)], [], 8.0) == []


def test_a_loop_that_limits_has_headroom_and_names_no_operator():
    rows = [load(-1, 10.2), load(0, 90.0), load(1, 40.0)]
    found = diagnose([wait(0.02)], [decided(-1, 1, verdict="consumer_bound", share=0.02)], rows)
    assert (found["verdict"], found["op_id"], found["severity"]) == ("consumer_bound", None, None)
    assert found["headroom"] == {"op_id": 1, "ratio": 4.0}


def test_of_a_balanced_pipeline_the_busier_operator_is_named():
    found = diagnose([], [decided(-1, 2, 0, verdict="balanced", share=0.1)], [load(2)])
    assert (found["verdict"], found["op_id"], found["severity"]) == ("balanced", 2, None)


def test_where_neither_times_nor_queues_of_any_operator_are_known_none_is_named():
    unknown = dict.fromkeys(("work_ns", "row_ns", "rate", "utilisation", "drop_ratio", "cores", "cpu_share"))
    rows = [load(-1, 25.0, drop_ratio=None), load(0) | unknown, load(1) | unknown | {"python_cores": 0.0}]
    found = diagnose([wait(0.6)], decisions(rows, [], 8.0), rows, cores=8.0)
    assert (found["verdict"], found["op_id"], found["kind"], found["candidates"]) == ("input_bound", None, None, [])
    assert (found["confidence"], [doubt["code"] for doubt in found["doubts"]]) == ("low", ["no_queues"])


def sink(stage):
    return [{"rep": 0, "rank": 0, "stage": stage, "host_empty_share": 0.1, "device_empty_share": 0.9, "batches": 60}]


def test_in_sink_mode_a_late_transfer_names_no_operator():
    doubts = ("not_busy", "close", "few_batches")
    found = diagnose([], [decided(1, doubts=doubts)], [load(1)], sink=sink("data_transmission"))
    assert (found["stage"], found["op_id"]) == ("data_transmission", None)
    assert (found["confidence"], found["doubts"]) == ("medium", [{"code": "few_batches"}])
    assert found["suggestions"][0]["code"] == "fewer_bytes"


def test_in_sink_mode_a_late_pipeline_names_its_operator():
    found = diagnose([], [decided(1)], [load(1)], sink=sink("data_processing"))
    assert (found["stage"], found["op_id"]) == ("data_processing", 1)


@pytest.mark.parametrize("stage", ["data_processing", "data_transmission", None])
def test_in_sink_mode_the_late_side_is_told_without_operators_too(stage):
    found = diagnose([wait(0.4)], [], [], sink=sink(stage))
    assert (found["verdict"], found["stage"], found["op_id"]) == ("input_bound", stage, None)
    assert ("host_queue_empty" in [item["code"] for item in found["evidence"]]) == (stage is not None)


def test_a_loop_that_does_not_wait_has_no_late_side():
    assert diagnose([wait(0.01)], [], [], sink=sink("data_processing"))["stage"] is None


def test_the_shape_is_always_the_same():
    keys = diagnose([], [], []).keys()
    assert keys == diagnose([], [decided(1)], [load(1)]).keys() == diagnose([wait(0.5)], [], []).keys()


@pytest.mark.parametrize(("op_type", "advice"), [("MapOp", "lock_to_processes"), ("GeneratorOp", "lock_ahead_of_time")])
def test_python_that_may_hold_up_a_slow_loop_comes_next_with_advice(op_type, advice):
    one = decided(-1, 2, 1, verdict="consumer_bound", share=0.02, rule="data_in_time", doubts=["holds_lock"])
    rows = [load(-1), load(1), load(2, op_type=op_type, python_cores=0.8, gil_share=0.3, name="f")]
    found = diagnose([wait(0.02)], [one], [row | {"gil_share": 0.3} for row in rows])
    assert (found["op_id"], found["candidates"], found["confidence"]) == (None, [2], "medium")
    assert [item["op_id"] for item in found["suggestions"] if item["code"] == advice] == [2]


def test_a_slow_loop_without_a_doubt_has_no_candidate():
    one = decided(-1, 1, verdict="consumer_bound", share=0.02, rule="data_in_time")
    assert diagnose([wait(0.02)], [one], [load(-1), load(1)])["candidates"] == []


def test_a_training_of_which_only_warm_up_was_seen_is_not_measured():
    waits = [wait(0.99, steps=1, kind="warmup")]
    for loads in ([], [load(1)]):
        found = diagnose(waits, decisions(loads, waits, 8.0), loads)
        assert (found["verdict"], found["data_wait_share"], found["op_id"]) == ("not_measured", None, None)


@pytest.mark.parametrize(("batches", "confidence"), [(4, "low"), (5, "medium")])
def test_fewer_than_five_batches_make_the_confidence_low(batches, confidence):
    found = diagnose([], [decided(1, batches=batches, doubts=["few_batches"])], [load(1)])
    assert (found["op_id"], found["confidence"]) == (1, confidence)


@pytest.mark.parametrize(("steps", "doubtful"), [(4, True), (5, False)])
def test_fewer_than_five_steps_are_a_doubt(steps, doubtful):
    found = diagnose([wait(0.5, steps=steps)], [], [])
    assert ({"code": "few_steps", "steps": steps} in found["doubts"]) == doubtful


def test_the_rule_behind_the_name_and_its_facts_are_kept():
    found = diagnose([], [decided(1, rule="busiest")], [load(1)])
    assert (found["rule"], found["rule_name"]) == ("utilisation", "busiest")
    assert found["rule_facts"] == [{"fact": "busy", "value": 0.5, "relation": "at_least", "bound": 0.8}]
    slow_loop = decided(-1, 1, verdict="consumer_bound", share=0.02, rule="data_in_time")
    found = diagnose([], [slow_loop], [load(-1), load(1)])
    assert (found["rule"], found["rule_name"]) == (None, "data_in_time")
    assert found["rule_facts"] == [{"fact": "wait_share", "value": 0.02, "relation": "below", "bound": 0.05}]


@pytest.mark.parametrize(
    ("steady", "overall", "contradict"),
    [(0.92, 0.07, True), (0.01, 0.3, True), (0.6, 0.25, False), (0.15, 0.02, False), (0.6, None, False)],
)
def test_a_verdict_whose_two_shares_differ_by_several_times_is_not_trusted(steady, overall, contradict):
    found = diagnose([wait(overall)], [decided(0, -1, share=steady)], [load(0, wait_share=steady), load(-1)])
    assert any(doubt["code"] == "shares_differ" for doubt in found["doubts"]) is contradict
    assert found["confidence"] == ("low" if contradict else "high")


def test_that_other_programs_stop_stands_before_every_gain_of_a_loader():
    facts = {"op_type": "Dataset", "chained": True, "uses_processes": True, "workers": 2, "restart_ns": 5e8,
             "epoch_batches": 10.0, "kind": "host_saturated"}  # fmt: skip
    stages = [load(1, 12.0, **facts), load(-1, 25.0)]
    found = diagnose([wait(0.6)], [decided(1, -1, kind="host_saturated")], stages, cores=2.0)
    codes = [item["code"] for item in found["suggestions"]]
    assert codes[0] == "stop_other_programs"
    assert "loader_persistent" in codes[1:]


def test_threads_that_the_record_shows_in_workers_stand_before_what_is_only_possible():
    facts = {"op_type": "Dataset", "chained": True, "uses_processes": True, "workers": 4, "kind": "cpu",
             "cpu_share": 1.0, "call_cores": 1.9, "idle_share": 0.01, "process_cores": 1.9}  # fmt: skip
    stages = [load(1, 12.0, **facts), load(-1, 25.0)]
    found = diagnose([wait(0.6)], [decided(1, -1, kind="cpu")], stages, cores=2.0)
    codes = [item["code"] for item in found["suggestions"]]
    assert codes.index("one_thread") < codes.index("cheaper_rows")
