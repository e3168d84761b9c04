"""Each rule, verdict, kind and doubt at its thresholds. The numbers stand here once more: a changed one is seen."""

from types import SimpleNamespace

import pytest
from typed_rows import of_dicts
from typed_rows import rows as rows_of

from pipeprof.query.rows import JudgedStage
from pipeprof.verdict import decision, rules
from pipeprof.verdict.clause import Clause, codes
from pipeprof.verdict.facts import Facts, StageFacts

decide = of_dicts(decision.decide)

LESS, MORE = 1 - 1e-9, 1 + 1e-9


def stage(op_id, **facts):
    """A row of diagnose/load of which nothing is known but what is given; -1 is the loop."""
    kind = {"op_type": "MapOp" if op_id >= 0 else "consumer", "workers": 1, "below_concat": False, "python_cores": 0.0}
    return {"rep": 0, "rank": 0, "op_id": op_id, "wait_share": 0.6, "batches": 60, **kind, **facts}


def pipeline(*ops, loop=None, **shared):
    """Rows of a pipeline: the loop, and operators 0, 1, ... with these facts; `shared` is in every row."""
    return [stage(number, **facts) | shared for number, facts in enumerate((loop or {}, *ops), start=-1)]


def named(rows, cores=4.0):
    found = decide(rows, cores)
    return found.rule.name, found.first.op_id


BUSY, IDLE = {"utilisation": 0.9}, {"utilisation": 0.1}
COMPUTING = {"python_cores": 0.85, "cores": 0.85, "utilisation": 0.5}


@pytest.mark.parametrize(
    ("rows", "met", "unmet"),
    [
        (lambda x: pipeline(IDLE, {"python_cores": 0.7}, wait_share=0.2 * x, gil_share=0.4), 1, MORE),
        (lambda x: pipeline(IDLE, {"python_cores": 0.6 * x}, wait_share=0.1, gil_share=0.4), 1, LESS),
        (lambda x: pipeline(IDLE, {"python_cores": 0.7}, wait_share=0.1, gil_share=0.4 * x), 1, LESS),
    ],
    ids=["wait", "cores", "lock"],
)
def test_lock_beside_the_loop(rows, met, unmet):
    assert named(rows(met)) == ("lock_beside_loop", 1)
    assert named(rows(unmet))[0] != "lock_beside_loop"


def test_data_in_time():
    rows = [pipeline(BUSY, wait_share=share) for share in (0.05 * LESS, 0.05)]
    assert named(rows[0]) == ("data_in_time", -1)
    assert named(rows[1]) != ("data_in_time", -1)


@pytest.mark.parametrize(
    ("rule", "rows", "met", "unmet"),
    [
        ("lock_held", lambda x: pipeline(BUSY, {"python_cores": 0.85 * x}, gil_share=0.3), 1, LESS),
        ("lock_held", lambda x: pipeline(BUSY, {"python_cores": 0.9}, gil_share=0.25 * x), 1, LESS),
        ("lock_held", lambda x: pipeline(BUSY | {"python_cores": x}, {"python_cores": 1.0}, gil_share=0.3), LESS, 1),
        ("lock_mostly_held", lambda x: pipeline(BUSY, {"python_cores": 0.6 * x}, gil_share=0.6), 1, LESS),
        ("lock_mostly_held", lambda x: pipeline(BUSY, {"python_cores": 0.7}, gil_share=0.6 * x), 1, LESS),
        ("lock_mostly_held", lambda x: pipeline(BUSY | {"python_cores": 0.4 * x}, {"python_cores": 0.4}, gil_share=0.6),
         LESS, 1),
        ("lock_not_measured", lambda x: pipeline(BUSY, {"python_cores": 0.85 * x}), 1, LESS),
        ("lock_not_measured", lambda x: pipeline(BUSY, {"python_cores": 1.3 * x}), 1, MORE),
        ("lock_not_measured", lambda x: pipeline(BUSY, {"python_cores": 1.0}, gil_share=x), None, 0.0),
    ],
)  # fmt: skip
def test_python_that_keeps_the_lock_from_the_busiest_stage(rule, rows, met, unmet):
    assert named(rows(met)) == (rule, 1)
    assert named(rows(unmet)) == ("busier_than_loop", 0)


@pytest.mark.parametrize(
    ("rule", "rows", "met", "unmet"),
    [
        ("busier_than_loop", lambda x: pipeline({"utilisation": 0.8 * x}), 1, LESS),
        ("busier_than_loop", lambda x: pipeline({"utilisation": 0.85}, wait_share=0.15 * x), MORE, LESS),
        ("drop_without_times", lambda x: pipeline({"drop_ratio": 0.4 * x}), 1, LESS),
        ("waiting_varies", lambda x: pipeline(IDLE, wait_share=0.2 * x), 1, MORE),
        ("waiting_varies", lambda x: pipeline({"utilisation": 0.2 * x, "longest_batches": 4}, wait_share=0.1), LESS, 1),
        ("waiting_varies", lambda x: pipeline({"utilisation": 0.9 * x}, wait_share=0.1), LESS, MORE),
        ("busiest", lambda x: pipeline({"utilisation": 0.8 * x, "longest_batches": 4}, wait_share=0.15), 1, LESS),
        ("most_cpu", lambda x: pipeline({"cores": 0.3 * x}), 1, LESS),
        ("most_cpu", lambda x: pipeline({"cores": 0.5, "utilisation": 0.2 * x}), 1, LESS),
        ("most_cpu", lambda x: pipeline({"utilisation": 0.5, "cores": 0.4, "drop_ratio": 0.4 * x}), LESS, 1),
    ],
)
def test_a_rule_at_its_threshold(rule, rows, met, unmet):
    assert named(rows(met))[0] == rule
    assert named(rows(unmet))[0] != rule


def taking(freed, wait=0.01, cores=2.0):
    """Cores of a pipeline without which a loop that waits so much of its time would be so many times as fast."""
    return cores * (1 - 1 / (freed * (1 - wait)))


def crowded(*ops, **shared):
    """A job of two cores, none of them idle."""
    return pipeline(*ops, **{"wait_share": 0.01, "idle_share": 0.0, "process_cores": 2.0} | shared)


def test_no_core_is_idle_where_half_a_core_is_or_an_eighth_of_many():
    found = [decide(crowded({"cores": 0.8}, idle_share=idle), cores) for cores in (2.0, 16.0) for idle in (0.119, 0.13)]
    assert [one.rule.name == "takes_cpu" for one in found] == [True, True, True, False]


@pytest.mark.parametrize(
    ("rows", "met", "unmet"),
    [
        (lambda x: crowded({"cores": taking(1.1 * x) - 0.05}, {"cores": 0.05}), 1, 0.99),
        (lambda x: crowded({"cores": taking(1.1 * x)}), MORE, LESS),
        (lambda x: crowded({"cores": 0.8}, idle_share=0.125 * x), LESS, 1),
        (lambda x: crowded({"cores": 0.8}, wait_share=0.2 * x), 1, MORE),
    ],
    ids=["all operators", "freed", "idle", "wait"],
)
def test_a_pipeline_that_takes_the_cores_of_its_loop(rows, met, unmet):
    assert named(rows(met)) == ("takes_cpu", 0)
    assert named(rows(unmet))[0] != "takes_cpu"
    found = decide(rows(met), 2.0)
    assert (found.verdict, found.kinds[0]) == ("balanced", "cpu")
    assert "shares_cpu" in [doubt["code"] for doubt in found.doubts]  # so that it is never sure


@pytest.mark.parametrize(
    ("shared", "doubted"),
    [
        ({"process_cores": 2.0}, True),
        ({"process_cores": 2.0, "job_cores": 3.9}, False),  # the other rank's
        ({"process_cores": 1.9, "job_cores": 1.9, "room_cores": 2.0}, False),  # it may use no more than two
        ({"process_cores": 1.0, "job_cores": 1.0, "room_cores": 2.0}, True),
    ],
)
def test_other_programs_are_not_other_ranks_nor_cores_that_it_may_not_use(shared, doubted):
    found = decide(pipeline(BUSY, idle_share=0.0, **shared), 4.0)
    assert ("other_load" in [doubt["code"] for doubt in found.doubts]) is doubted


@pytest.mark.parametrize(
    ("stage", "rule"),
    [
        ({"cores": 0.03, "utilisation": 0.95}, "busier_than_loop"),  # it waits for storage, and takes hardly any CPU
        ({"utilisation": 0.95}, "busier_than_loop"),  # nobody knows what CPU it takes
        ({"cores": 0.29, "utilisation": 0.95}, "busier_than_loop"),
        ({"cores": 0.31, "utilisation": 0.95}, "takes_cpu"),
        ({"cores": 2.0, "utilisation": 0.95}, "busier_than_loop"),  # all of the CPU: that figure cannot be right
    ],
)
def test_a_pipeline_that_costs_more_by_waiting_than_by_computing_is_no_matter_of_cpu(stage, rule):
    found = decide(crowded(stage, wait_share=0.15, idle_share=0.05), 2.0)
    assert found.rule.name == rule
    assert ("shares_cpu" in [doubt["code"] for doubt in found.doubts]) is (rule == "takes_cpu")


@pytest.mark.parametrize(("freed", "doubted"), [(1.05 * LESS, False), (1.05 * MORE, True)])
def test_a_loop_that_limits_beside_a_pipeline_that_computes_is_a_doubt(freed, doubted):
    rows = pipeline({"cores": taking(freed, cores=1.0)}, wait_share=0.01, idle_share=0.05, process_cores=1.0)
    found = decide(rows, 2.0)
    assert found.rule.name == "data_in_time"
    assert ("shares_cpu" in [doubt["code"] for doubt in found.doubts]) is doubted


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ([{"utilisation": 0.3}, {"utilisation": 0.4}], 1),
        ([{"utilisation": 0.4}, {"utilisation": 0.4}], 0),
        ([{"drop_ratio": 0.1}, {"drop_ratio": 0.2}], 1),
        ([{"utilisation": 0.0}, {"drop_ratio": 0.2}], 1),
        ([{}, {}], -1),
    ],
    ids=["the busiest", "of equals the lowest number", "the drop", "nobody works", "nothing is known"],
)
def test_without_a_clear_sign(ops, expected):
    assert named(pipeline(*ops)) == ("no_clear_sign", expected)


def test_the_lock_comes_before_a_loop_that_does_not_wait_and_that_before_all_others():
    rows = pipeline(BUSY | {"drop_ratio": 0.9}, {"python_cores": 0.9, "cores": 0.9}, wait_share=0.01, gil_share=0.5)
    assert named(rows) == ("lock_beside_loop", 1)
    assert named([row | {"gil_share": 0.3} for row in rows]) == ("data_in_time", -1)
    assert named([row | {"gil_share": 0.3, "wait_share": 0.6} for row in rows]) == ("lock_held", 1)
    assert named([row | {"gil_share": 0.2, "wait_share": 0.6} for row in rows]) == ("busier_than_loop", 0)


def test_the_queue_behind_a_part_of_a_concatenation_says_nothing():
    rows = pipeline({"drop_ratio": 0.9, "below_concat": True}, {"drop_ratio": 0.5})
    assert named(rows) == ("drop_without_times", 1)


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (pipeline(IDLE, {"python_cores": 0.7}, wait_share=0.1, gil_share=0.5), "balanced"),
        (pipeline({"utilisation": 0.5}, wait_share=0.049), "consumer_bound"),
        (pipeline({"utilisation": 0.94}, wait_share=0.049), "consumer_bound"),
        (pipeline({"utilisation": 0.8 / 1.15 * LESS}, wait_share=0.2), "consumer_bound"),
        (pipeline({"utilisation": 0.8 / 1.15 * MORE}, wait_share=0.2), "balanced"),
        (pipeline({"utilisation": 0.9}, wait_share=1 - 0.9 / 1.15 * MORE), "balanced"),
        (pipeline({"utilisation": 0.9}, wait_share=1 - 0.9 / 1.15 * LESS), "input_bound"),
        (pipeline({"utilisation": 0.5}, wait_share=0.5), "input_bound"),
    ],
)
def test_the_verdict_that_follows(rows, verdict):
    assert decide(rows, 4.0).verdict == verdict


POLL = {"law_row_ns": 100.0, "rows_per_batch": 1.0, "row_ns": 10.0}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (POLL | {"rate": 1e9 / 71}, "poll"),
        (POLL | {"rate": 1e9 / 69}, None),
        (POLL | {"rate": 1e9 / 124}, "poll"),
        (POLL | {"rate": 1e9 / 126}, None),
        (POLL | {"rate": 1e9 / 100, "row_ns": 99.0}, "poll"),
        (POLL | {"rate": 1e9 / 100, "row_ns": 100.0}, None),
        (POLL | {"rate": 1e9 / 100, "row_ns": 100.0, "workers": 2}, "poll"),
        (POLL | {"rate": 1e9 / 109, "row_ns": None}, "poll"),
        (POLL | {"rate": 1e9 / 111, "row_ns": None}, None),
        (POLL | {"rate": None}, None),
        ({"lock_share": 0.2, "gil_share": 0.25 * LESS, "work_cv": 2.0, "cpu_share": 0.9}, "lock_wait"),
        ({"lock_share": 0.2, "gil_share": 0.25, "python_cores": 0.5, "cpu_share": 0.9}, "gil"),
        ({"lock_share": 0.2, "gil_share": 0.25, "cpu_share": 0.9}, "lock_wait"),
        ({"lock_share": 0.2 * LESS, "gil_share": 0.1, "cpu_share": 0.1}, "wait"),
        ({"work_cv": 1.5}, None),
        ({"work_cv": 1.5 * MORE}, "burst"),
        ({"work_cv": 1.6, "law_row_ns": 100.0}, None),
        ({"longest_batches": 3.3}, None),
        ({"longest_batches": 3.3 * MORE}, "burst"),
        ({"burst_share": 0.5, "cpu_share": 0.49}, "burst"),
        ({"burst_share": 0.5 * LESS, "cpu_share": 0.49}, "wait"),
        ({"burst_share": 0.5, "cpu_share": 0.5}, "cpu"),
        ({"burst_share": 0.5}, None),
        ({"python_cores": 0.5, "gil_share": 0.25, "cpu_share": 0.9}, "gil"),
        ({"python_cores": 0.5 * LESS, "gil_share": 0.25, "cpu_share": 0.9}, "cpu"),
        ({"python_cores": 0.5, "gil_share": 0.25 * LESS, "cpu_share": 0.9}, "cpu"),
        ({"cpu_share": 0.5}, "cpu"),
        ({"cpu_share": 0.5 * LESS}, "wait"),
        ({}, None),
    ],
)
def test_the_kind_of_a_stage(facts, expected):
    operator, loop = rows_of(JudgedStage, [stage(op_id, **facts) for op_id in (0, -1)])
    assert (StageFacts.of(operator).kind, StageFacts.of(loop).kind) == (expected, None)


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (pipeline(BUSY, {"python_cores": 0.9, "cpu_share": 0.1}, gil_share=0.3), "gil"),
        (pipeline(BUSY | {"cpu_share": 0.9}, idle_share=0.1 * LESS, process_cores=2.0), "host_saturated"),
        (pipeline(BUSY | {"cpu_share": 0.9}, idle_share=0.1, process_cores=2.0), "cpu"),
        (pipeline(BUSY | {"cpu_share": 0.9}, idle_share=0.0, process_cores=3.0), "host_saturated"),
        (pipeline(BUSY | {"cpu_share": 0.9}, idle_share=0.0, process_cores=3.0 * MORE), "cpu"),
        (pipeline(BUSY | {"cpu_share": 0.1}, idle_share=0.0, process_cores=1.0), "wait"),
        (pipeline({"drop_ratio": 0.9, "cores": 1.0, "workers": 2}), "cpu"),
        (pipeline({"drop_ratio": 0.9, "cores": 0.99, "workers": 2}), "wait"),
        (pipeline({"drop_ratio": 0.9}), None),
    ],
)
def test_the_kind_of_the_stage_that_is_named(rows, kind):
    assert decide(rows, 4.0).kinds[0] == kind


def doubts(rows):
    return [doubt["code"] for doubt in decide(rows, 4.0).doubts]


SURE = {"utilisation": 0.95, "drop_ratio": 1.0}
FULL = {"utilisation": 0.3, "drop_ratio": 0.1}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (pipeline(SURE, FULL), []),
        (pipeline(SURE, {"utilisation": 0.75 * LESS}), []),
        (pipeline(SURE, {"utilisation": 0.75 * MORE}), ["close"]),
        (pipeline(SURE), ["close"]),
        (pipeline({"utilisation": 0.95}, {"utilisation": 0.3}), ["no_queues"]),
        (pipeline(SURE | {"drop_ratio": 0.1}, FULL | {"drop_ratio": 0.3}), ["queues_elsewhere"]),
        (pipeline(SURE | {"overrun": 1.2}, FULL), []),
        (pipeline(SURE | {"overrun": 1.2 * MORE}, FULL), ["overrun"]),
        (pipeline(SURE, FULL, batches=20), []),
        (pipeline(SURE, FULL, batches=19), ["few_batches"]),
        (pipeline(SURE, FULL, idle_share=0.05, process_cores=1.0), ["other_load"]),
        (pipeline({"drop_ratio": 0.8}, {"utilisation": 0.4}), []),
        (pipeline({"drop_ratio": 0.8 * LESS}, {"utilisation": 0.4}), ["indirect"]),
        (pipeline({"drop_ratio": 0.8}, {"utilisation": 0.5}), ["indirect"]),
        (pipeline({"drop_ratio": 0.8}), ["indirect"]),
        (pipeline(SURE, {"python_cores": 0.9}, gil_share=0.3), []),
        (pipeline(SURE, {"python_cores": 0.9}), ["indirect"]),
        (pipeline(FULL | {"drop_ratio": 0.9}), ["not_busy", "close", "none_busy"]),
        (pipeline({"drop_ratio": 0.1}), ["not_busy", "close", "indirect", "none_busy"]),
        (pipeline(FULL, {"cores": 0.5, "drop_ratio": 0.2}), ["not_busy", "close", "indirect", "none_busy"]),
    ],
)
def test_doubts_of_an_operator_that_is_named(rows, expected):
    assert doubts(rows) == expected


@pytest.mark.parametrize(
    ("python", "lock", "wait", "expected"),
    [
        (0.3, 0.25, 0.01, ["no_queues", "holds_lock"]),
        (0.3 * LESS, 0.25, 0.01, ["no_queues"]),
        (0.3, 0.25 * LESS, 0.01, ["no_queues"]),
        (0.3, None, 0.01, ["no_queues"]),
        (0.0, None, 0.05, ["close", "no_queues"]),
    ],
)
def test_doubts_of_a_loop_that_limits(python, lock, wait, expected):
    loop = {"utilisation": 1 - wait}
    rows = pipeline({"utilisation": 0.9}, {"python_cores": python}, loop=loop, wait_share=wait, gil_share=lock)
    found = decide(rows, 4.0)
    assert (found.first.op_id, [doubt["code"] for doubt in found.doubts]) == (-1, expected)
    assert [stage.op_id for stage in found.stages] == ([-1, 1, 0] if found.holds_lock else [-1, 0, 1])


@pytest.mark.parametrize(("cores", "doubted"), [(0.3 + 0.1 * 2, True), ((0.3 + 0.1 * 2) * LESS, False), (None, False)])
def test_cpu_that_its_rows_do_not_explain_is_a_doubt_about_a_loop(cores, doubted):
    """Two workers that are busy for 10 % of the time explain 0.2 cores."""
    rows = pipeline({"utilisation": 0.1, "workers": 2, "cores": cores}, loop={"utilisation": 0.9}, wait_share=0.04)
    found = {doubt["code"]: doubt for doubt in decide(rows, 4.0).doubts}
    assert ("untimed_cpu" in found) is doubted
    if doubted:
        assert (found["untimed_cpu"]["op"]["op_id"], round(found["untimed_cpu"]["cores"], 6)) == (0, 0.3)


def test_doubts_carry_the_numbers_that_a_sentence_needs():
    ops = [{"utilisation": 0.74, "name": "Source", "drop_ratio": 0.9}, {"utilisation": 0.79, "name": "augment"}]
    found = {doubt["code"]: doubt for doubt in decide(pipeline(*ops, batches=7), 4.0).doubts}
    assert (found["not_busy"]["op"]["name"], found["not_busy"]["utilisation"]) == ("augment", 0.79)
    assert (found["close"]["op"]["name"], found["close"]["utilisation"]) == ("Source", 0.74)
    assert found["queues_elsewhere"]["op"] == {"op_id": 0, "op_type": "MapOp", "name": "Source"}
    assert found["few_batches"]["batches"] == 7
    assert "indirect" not in found  # by its own times, as far as they tell
    found = {doubt["code"]: doubt for doubt in decide(pipeline({"drop_ratio": 0.1}), 4.0).doubts}
    assert (found["indirect"]["op"]["op_id"], found["indirect"]["rule"]) == (0, "weak")


def test_the_cpu_of_other_ranks_is_no_other_program():
    rows = pipeline(SURE, FULL, idle_share=0.05, process_cores=1.0)
    assert [one["code"] for one in decide(rows, 4.0, alone=False).doubts] == []
    counted = [row | {"job_cores": 1.0} for row in rows]
    assert [one["code"] for one in decide(counted, 4.0, alone=False).doubts] == ["other_load"]


def test_a_decision_says_what_it_rested_on():
    found = decide(pipeline(SURE, {"python_cores": 0.9}, gil_share=0.3), 4.0)
    assert found.rested_on == [
        {"fact": "python_cores", "value": 0.9, "relation": "at_least", "bound": 0.85},
        {"fact": "gil_share", "value": 0.3, "relation": "at_least", "bound": 0.25},
        {"fact": "busiest_python_share", "value": 0.0, "relation": "below", "bound": 0.5},
    ]


@pytest.mark.parametrize(
    ("relation", "met", "unmet"),
    [
        ("at_least", [1.0, 2.0], [0.9, None]),
        ("at_most", [1.0, 0.0], [1.1, None]),
        ("above", [1.1], [1.0, None]),
        ("below", [0.9], [1.0, None]),
        ("short_of", [0.9, None], [1.0]),
        ("not_above", [1.0, None], [1.1]),
        ("known", [0.0], [None]),
        ("unknown", [None], [0.0]),
        ("noted", [0.0, None], []),
    ],
)
def test_what_a_clause_asks(relation, met, unmet):
    clause = Clause("x", relation, None if relation in ("known", "unknown", "noted") else 1.0)
    assert all(clause.holds(SimpleNamespace(x=value)) for value in met)
    assert not any(clause.holds(SimpleNamespace(x=value)) for value in unmet)


@pytest.mark.parametrize(
    ("host", "device", "expected"),
    [
        (0.3 * MORE, None, "data_processing"),
        (0.3, 0.3 * MORE, "data_transmission"),
        (0.3, 0.3, None),
        (None, 1.0, None),
        (0.1, None, None),
    ],
)
def test_the_late_side_of_sink_mode(host, device, expected):
    facts = SimpleNamespace(host_empty_share=host, device_empty_share=device)
    assert next(codes(rules.SINK_STAGES, facts), None) == expected


def test_every_rule_asks_for_facts_that_there_are_and_has_a_name_of_its_own():
    facts = Facts.of(rows_of(JudgedStage, pipeline(BUSY)), 4.0)
    names = [rule.name for rule in rules.RULES]
    assert len(set(names)) == len(names)
    for rule in rules.RULES:
        assert hasattr(facts, rule.chooses)
        assert all(hasattr(facts, clause.fact) for clause in rule.when)
    for outcome in (*rules.VERDICTS, *rules.DOUBTS):
        assert all(hasattr(facts, clause.fact) for clause in outcome.when)
        assert {*outcome.only, *outcome.never} <= {rule.code for rule in rules.RULES}
    for outcome in (*rules.KINDS, *rules.UNTIMED_KINDS):
        assert all(hasattr(facts.stages[0], clause.fact) for clause in outcome.when)


def test_the_last_rule_and_the_last_verdict_always_hold():
    assert {clause.relation for clause in rules.RULES[-1].when} == {"noted"}
    assert (rules.VERDICTS[-1].when, rules.VERDICTS[-1].only, rules.VERDICTS[-1].never) == ((), (), ())
