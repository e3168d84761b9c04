"""The verdict on the data pipeline, put together from rows of the queries, or from times or queues alone."""

from dataclasses import replace

import pytest
from minddata_files import op, pipeline_json, write_feed
from typed_rows import of_dicts, rows

from pipeprof.query.rows import JudgedStage
from pipeprof.read.foreign import import_path
from pipeprof.report.build import build
from pipeprof.verdict import decision, interval, pipeline, verdict_from_queues
from pipeprof.verdict.decision import Decision
from pipeprof.verdict.facts import Facts
from pipeprof.verdict.rules import HIGH_WAIT, MODERATE_WAIT, RULES

diagnose, decisions = of_dicts(pipeline.diagnose), of_dicts(decision.decisions)
judge_interval, judge_fills = of_dicts(interval.judge_interval), of_dicts(verdict_from_queues.judge_fills)


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


def in_time(*ops, **more):
    """A decision for a loop that limits."""
    return decided(-1, *ops, verdict="consumer_bound", share=0.02, rule="data_in_time", **more)


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


def codes(found, of="doubts"):
    return [item["code"] for item in found[of]]


@pytest.mark.parametrize(("waits", "verdict", "severity"), [
    ([], "not_measured", None), ([wait(None)], "not_measured", None),
    ([wait(MODERATE_WAIT - 1e-9)], "consumer_bound", None), ([wait(MODERATE_WAIT)], "input_bound", "moderate"),
    ([wait(HIGH_WAIT)], "input_bound", "high"),
])  # fmt: skip
def test_without_batches_the_share_of_waiting_is_the_verdict_and_names_nobody(waits, verdict, severity):
    found = diagnose(waits, [], [])
    assert (found["verdict"], found["severity"], found["op_id"]) == (verdict, severity, None)
    share = waits[0]["data_wait_share"] if waits else None
    assert (found["confidence"], found["data_wait_share"]) == ("low", share)
    if share is not None:
        assert (codes(found), found["evidence"][0]["value"]) == (["no_pipeline"], share)


@pytest.mark.parametrize(
    ("utilisation", "longest", "doubted"), [(1.67, None, True), (1.1, None, False), (1.67, 5.0, False)]
)
def test_a_stage_never_works_more_than_all_the_time(utilisation, longest, doubted):
    loads = [load(1, 10.0, utilisation=utilisation, longest_batches=longest)]
    found = diagnose([wait(0.6)], decisions(loads, [], 8.0), loads, cores=8.0)
    (shown,) = [item for item in found["evidence"] if item["code"] == "utilisation"]
    assert (shown["value"], shown["measured_on"]) == (1.0, {"code": "prefilled", "times": utilisation})
    assert ("prefilled" in codes(found)) is doubted


def test_the_operator_that_limits_is_named_with_its_place_and_evidence():
    found = diagnose([wait(0.6)], [decided(1, 0)], [load(-1), load(0, 90.0), load(1, 10.0)], cores=8.0)
    assert (found["op_id"], found["kind"], found["rule"], found["severity"]) == (1, "wait", "utilisation", "high")
    assert found["place"] == {"call": "a.py:1", "code": "b.py:1"}
    assert found["candidates"] == [1, 0]
    (busy,) = [item for item in found["evidence"] if item["code"] == "utilisation"]
    assert (busy["unit"], busy["value"], busy["facts"]["op"]["op_id"]) == ("share", 1.0, 1)
    assert busy["measured_on"] == {"code": "throughputs"}
    assert found["suggestions"][0]["parameter"] == "num_parallel_workers"


@pytest.mark.parametrize(("doubts", "batches", "confidence"), [
    ([], 60, "high"), (["a"], 60, "medium"), (["a", "b"], 60, "low"), (["a", "b", "c"], 60, "low"),
    (["few_batches"], 4, "low"), (["few_batches"], 5, "medium"),
])  # fmt: skip
def test_doubts_and_fewer_than_five_batches_make_the_verdict_less_sure(doubts, batches, confidence):
    found = diagnose([], [decided(1, batches=batches, doubts=doubts)], [load(1)])
    few = ["few_steps"] if batches == 4 else []
    assert (found["op_id"], found["confidence"], codes(found)) == (1, confidence, [*doubts, *few])


def test_repetitions_vote_and_the_least_disturbed_one_of_the_winners_is_shown():
    each = [decided(op, share=share, rep=rep) for rep, (op, share) in
            enumerate([(1, 0.9), (2, 0.95), (1, 0.5), (1, 0.7)])]  # fmt: skip
    steps = [(0, 0, 9), (1, 0, 3), (2, 0, 4), (2, 1, 8), (3, 0, 5), (3, 1, 7)]  # each as long as its slowest rank's
    waits = [wait(0.7, rep=rep, rank=rank, step_ms=ms) for rep, rank, ms in steps]
    found = diagnose(waits, each, [load(1, rep=rep) for rep in range(4)])
    assert (found["op_id"], found["rep"], found["data_wait_share"]) == (1, 3, 0.7)
    assert found["repetitions"] == {"agree": 3, "of": 4}
    assert found["doubts"] == [{"code": "repetitions_differ", "agree": 3, "of": 4}]
    assert found["confidence"] == "medium"


def test_the_rank_that_waits_most_counts_and_without_batches_that_of_the_middle_repetition():
    waits = [wait(0.01), wait(0.3, rank=1), wait(0.9, rep=1), wait(0.02, rep=2)]
    assert diagnose(waits, [], [])["data_wait_share"] == 0.3
    places = [(0, 0, 0.01), (0, 1, 0.7), (0, 2, 0.4), (1, 0, 0.3)]
    loads = [load(1, rank=rank, rep=rep, wait_share=share) for rep, rank, share in places]
    assert [(one.rep, one.rank) for one in decisions(loads, [], 8.0)] == [(0, 1), (1, 0)]
    assert decisions([load(1, wait_share=None, batches=None)], [], 8.0) == []


def test_a_loop_that_limits_names_no_operator_nor_do_operators_of_which_nothing_is_known():
    found = diagnose([wait(0.02)], [in_time(1)], [load(-1, 10.2), load(0, 90.0), load(1, 40.0)])
    assert (found["verdict"], found["op_id"], found["severity"]) == ("consumer_bound", None, None)
    assert (found["headroom"], found["candidates"]) == ({"op_id": 1, "ratio": 4.0}, [])
    found = diagnose([], [decided(-1, 2, 0, verdict="balanced", share=0.1)], [load(2)])
    assert (found["verdict"], found["op_id"], found["severity"]) == ("balanced", 2, None)
    unknown = dict.fromkeys(("work_ns", "row_ns", "rate", "utilisation", "drop_ratio", "cores", "cpu_share"))
    loads = [load(-1, 25.0, drop_ratio=None), load(0) | unknown, load(1) | unknown | {"python_cores": 0.0}]
    found = diagnose([wait(0.6)], decisions(loads, [], 8.0), loads, cores=8.0)
    assert (found["verdict"], found["op_id"], found["kind"], found["candidates"]) == ("input_bound", None, None, [])
    assert (found["confidence"], codes(found)) == ("low", ["no_queues"])


def sink(stage):
    return [{"rep": 0, "rank": 0, "stage": stage, "host_empty_share": 0.1, "device_empty_share": 0.9, "batches": 60}]


def test_in_sink_mode_a_late_pipeline_names_its_operator_and_a_late_transfer_none():
    doubts = ("not_busy", "close", "few_batches")
    found = diagnose([], [decided(1, doubts=doubts)], [load(1)], sink=sink("data_transmission"))
    assert (found["stage"], found["op_id"]) == ("data_transmission", None)
    assert (found["confidence"], found["doubts"]) == ("medium", [{"code": "few_batches"}])
    assert found["suggestions"][0]["code"] == "fewer_bytes"
    found = diagnose([], [decided(1)], [load(1)], sink=sink("data_processing"))
    assert (found["stage"], found["op_id"]) == ("data_processing", 1)
    assert diagnose([wait(0.01)], [], [], sink=sink("data_processing"))["stage"] is None


@pytest.mark.parametrize("stage", ["data_processing", "data_transmission", None])
def test_in_sink_mode_the_late_side_is_told_without_operators_too(stage):
    found = diagnose([wait(0.4)], [], [], sink=sink(stage))
    assert (found["verdict"], found["stage"], found["op_id"]) == ("input_bound", stage, None)
    assert ("host_queue_empty" in codes(found, "evidence")) == (stage is not None)


@pytest.mark.parametrize(("op_type", "advice"), [("MapOp", "lock_to_processes"), ("GeneratorOp", "lock_ahead_of_time")])
def test_python_that_may_hold_up_a_slow_loop_comes_next_with_advice(op_type, advice):
    loads = [load(-1), load(1), load(2, op_type=op_type, python_cores=0.8, name="f")]
    loads = [row | {"gil_share": 0.3} for row in loads]
    found = diagnose([wait(0.02)], [in_time(2, 1, doubts=["holds_lock"])], loads)
    assert (found["op_id"], found["candidates"], found["confidence"]) == (None, [2], "medium")
    assert [item["op_id"] for item in found["suggestions"] if item["code"] == advice] == [2]


def test_the_shape_is_always_the_same_and_of_warm_up_alone_nothing_is_measured():
    keys = diagnose([], [], []).keys()
    assert keys == diagnose([], [decided(1)], [load(1)]).keys() == diagnose([wait(0.5)], [], []).keys()
    waits = [wait(0.99, steps=1, kind="warmup")]
    for loads in ([], [load(1)]):
        found = diagnose(waits, decisions(loads, waits, 8.0), loads)
        assert (found["verdict"], found["data_wait_share"], found["op_id"]) == ("not_measured", None, None)


@pytest.mark.parametrize(("steps", "doubtful"), [(4, True), (5, False)])
def test_fewer_than_five_steps_are_a_doubt(steps, doubtful):
    assert ({"code": "few_steps", "steps": steps} in diagnose([wait(0.5, steps=steps)], [], [])["doubts"]) == doubtful


@pytest.mark.parametrize(
    ("one", "rule", "fact"),
    [
        (decided(1), ("utilisation", "busiest"), ("busy", 0.5, "at_least", 0.8)),
        (in_time(1), (None, "data_in_time"), ("wait_share", 0.02, "below", 0.05)),
    ],
)
def test_the_rule_behind_the_name_and_its_facts_are_kept(one, rule, fact):
    found = diagnose([], [one], [load(-1), load(1)])
    assert (found["rule"], found["rule_name"]) == rule
    assert found["rule_facts"] == [dict(zip(("fact", "value", "relation", "bound"), fact, strict=True))]


@pytest.mark.parametrize(
    ("steady", "overall", "contradict"),
    [(0.92, 0.07, True), (0.01, 0.3, True), (0.6, 0.25, False), (0.15, 0.02, False), (0.6, None, False)],
)
def test_a_verdict_whose_two_shares_differ_by_several_times_is_not_trusted(steady, overall, contradict):
    found = diagnose([wait(overall)], [decided(0, -1, share=steady)], [load(0, wait_share=steady), load(-1)])
    assert ("shares_differ" in codes(found)) is contradict
    assert found["confidence"] == ("low" if contradict else "high")


@pytest.mark.parametrize(("kind", "facts", "first", "later"), [
    ("host_saturated", {"workers": 2, "restart_ns": 5e8, "epoch_batches": 10.0}, "stop_other_programs",
     "loader_persistent"),
    # threads that the record shows in workers stand before what is only possible
    ("cpu", {"workers": 4, "cpu_share": 1.0, "call_cores": 1.9, "idle_share": 0.01, "process_cores": 1.9}, "one_thread",
     "cheaper_rows"),
])  # fmt: skip
def test_that_other_programs_stop_stands_before_every_gain_of_a_loader(kind, facts, first, later):
    loader = {"op_type": "Dataset", "chained": True, "uses_processes": True, "kind": kind} | facts
    found = diagnose([wait(0.6)], [decided(1, -1, kind=kind)], [load(1, 12.0, **loader), load(-1, 25.0)], cores=2.0)
    said = codes(found, "suggestions")
    assert said.index(first) < said.index(later)
    assert first != "stop_other_programs" or said[0] == first


NOTHING = diagnose([], [], [])


def phase(share, rank=0, name="data_wait", kind="train"):
    return {"rep": 0, "kind": kind, "rank": rank, "phase": name, "share": share, "steps": 30}


def queues(stage, batches=50, rank=0):
    return sink(stage)[0] | {"rank": rank, "batches": batches, "host_empty_share": 0.9, "device_empty_share": None}


def test_a_short_interval_up_to_the_forward_pass_clears_the_data_and_a_long_one_alone_does_not_blame_it():
    found = judge_interval(NOTHING, [phase(0.01), phase(0.04, rank=3)], [queues("data_processing")])
    assert (found["verdict"], found["data_wait_share"], found["confidence"]) == ("consumer_bound", 0.04, "medium")
    assert found["evidence"][0]["measured_on"] == {"code": "steps_of_rank", "steps": 30, "rank": 3}
    assert found["doubts"]
    found = judge_interval(NOTHING, [phase(0.6)])
    assert (found["verdict"], found["data_wait_share"], found["evidence"][0]["value"]) == ("not_measured", None, 0.6)
    assert judge_interval(NOTHING, [phase(0.6)], [queues("data_processing", rank=1)])["verdict"] == "not_measured"


@pytest.mark.parametrize(("share", "severity"), [(0.1, "moderate"), (0.6, "high")])
@pytest.mark.parametrize(("batches", "confidence"), [(50, "medium"), (1, "low")])
def test_a_long_interval_and_an_empty_queue_do(share, severity, batches, confidence):
    found = judge_interval(NOTHING, [phase(share)], [queues("data_transmission", batches)])
    assert (found["verdict"], found["severity"], found["stage"]) == ("input_bound", severity, "data_transmission")
    assert found["confidence"] == confidence
    assert [item["source"] for item in found["evidence"]] == ["step/phase_summary", "diagnose/sink"]


def test_what_was_measured_stays_beside_an_interval_or_queues_and_so_do_steps_without_a_forward_start():
    measured = {**NOTHING, "verdict": "balanced"}
    assert judge_interval(measured, [phase(0.9)]) == measured
    assert judge_interval(NOTHING, [phase(0.9, name="compute"), phase(None), phase(0.0, kind="warmup")]) == NOTHING
    fills = [{"op_id": -1, "input_ratio": 0.0, "samples": 9, "rep": 0, "rank": 0}]
    assert judge_fills(measured, fills, 2.0) is measured


@pytest.mark.parametrize(
    ("last", "verdict", "op_id", "said"),
    [
        ([0, 0, 1, 0, 0, 0], "input_bound", 1, "Probably input-bound: the queue in front of the training is mostly"),
        ([8, 8, 7, 8, 8, 8], "consumer_bound", None, "Probably not input-bound: batches wait for the training"),
        ([2, 3, 3, 2, 3, 2], "not_measured", None, ""),
    ],
)
def test_the_queue_in_front_of_the_training_alone_says_which_side_is_late(tmp_path, last, verdict, op_id, said):
    """A folder without batches; the queues behind the map are empty."""
    raw = write_feed(tmp_path / "raw")
    raw.joinpath("dataset_iterator_profiling_0.txt").unlink()
    ops = [op(2, "GeneratorOp", [8, 7, 8, 8, 8, 7]), op(0, "BatchOp", last, [1]),
           op(1, "MapOp", [0, 1, 0, 0, 0, 0], [2], workers=2)]  # fmt: skip
    raw.joinpath("pipeline_profiling_0.json").write_text(pipeline_json(ops), encoding="utf-8")
    content = build(import_path(raw, tmp_path / "run"))
    found, screen = content["diagnosis"], content["first_screen"]
    assert (found["verdict"], found["op_id"]) == (verdict, op_id)
    assert screen["sentence"].startswith(said)
    if verdict == "input_bound":
        assert (found["op_type"], found["confidence"], found["data_wait_share"]) == ("MapOp", "low", None)
        assert [doubt["code"] for doubt in found["doubt_facts"]] == ["fills_alone"]
        assert "MapOp 1" in screen["cause"]
