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


def doubts(rows, cores=4.0, **more):
    return [doubt["code"] for doubt in decide(rows, cores, **more).doubts]


BUSY, IDLE = {"utilisation": 0.9}, {"utilisation": 0.1}
SLOW, QUICK = {"utilisation": 0.95, "drop_ratio": 1.0}, {"utilisation": 0.3, "drop_ratio": 0.1}


def python(busy, **more):
    return {"python_cores": busy, **more}


@pytest.mark.parametrize(("rule", "rows", "met", "unmet", "otherwise"), [
    ("lock_beside_loop", lambda x: pipeline(IDLE, python(0.7), wait_share=0.2 * x, gil_share=0.4), 1, MORE, None),
    ("lock_beside_loop", lambda x: pipeline(IDLE, python(0.6 * x), wait_share=0.1, gil_share=0.4), 1, LESS, None),
    ("lock_beside_loop", lambda x: pipeline(IDLE, python(0.7), wait_share=0.1, gil_share=0.4 * x), 1, LESS, None),
    ("data_in_time", lambda x: pipeline(BUSY, wait_share=0.05 * x), LESS, 1, None),
    ("lock_held", lambda x: pipeline(BUSY, python(0.85 * x), gil_share=0.3), 1, LESS, "busier_than_loop"),
    ("lock_held", lambda x: pipeline(BUSY, python(0.9), gil_share=0.25 * x), 1, LESS, "busier_than_loop"),
    ("lock_held", lambda x: pipeline(BUSY | python(x), python(1.0), gil_share=0.3), LESS, 1, "busier_than_loop"),
    ("lock_mostly_held", lambda x: pipeline(BUSY, python(0.6 * x), gil_share=0.6), 1, LESS, "busier_than_loop"),
    ("lock_mostly_held", lambda x: pipeline(BUSY, python(0.7), gil_share=0.6 * x), 1, LESS, "busier_than_loop"),
    ("lock_mostly_held", lambda x: pipeline(BUSY | python(0.4 * x), python(0.4), gil_share=0.6), LESS, 1,
     "busier_than_loop"),
    ("lock_not_measured", lambda x: pipeline(BUSY, python(0.85 * x)), 1, LESS, "busier_than_loop"),
    ("lock_not_measured", lambda x: pipeline(BUSY, python(1.3 * x)), 1, MORE, "busier_than_loop"),
    ("lock_not_measured", lambda x: pipeline(BUSY, python(1.0), gil_share=x), None, 0.0, "busier_than_loop"),
    ("busier_than_loop", lambda x: pipeline({"utilisation": 0.8 * x}), 1, LESS, None),
    ("busier_than_loop", lambda x: pipeline({"utilisation": 0.85}, wait_share=0.15 * x), MORE, LESS, None),
    ("drop_without_times", lambda x: pipeline({"drop_ratio": 0.4 * x}), 1, LESS, None),
    ("waiting_varies", lambda x: pipeline(IDLE, wait_share=0.2 * x), 1, MORE, None),
    ("waiting_varies", lambda x: pipeline({"utilisation": 0.2 * x, "longest_batches": 4}, wait_share=0.1), LESS, 1,
     None),
    ("waiting_varies", lambda x: pipeline({"utilisation": 0.9 * x}, wait_share=0.1), LESS, MORE, None),
    ("busiest", lambda x: pipeline({"utilisation": 0.8 * x, "longest_batches": 4}, wait_share=0.15), 1, LESS, None),
    ("most_cpu", lambda x: pipeline({"cores": 0.3 * x}), 1, LESS, None),
    ("most_cpu", lambda x: pipeline({"cores": 0.5, "utilisation": 0.2 * x}), 1, LESS, None),
    ("most_cpu", lambda x: pipeline({"utilisation": 0.5, "cores": 0.4, "drop_ratio": 0.4 * x}), LESS, 1, None),
])  # fmt: skip
def test_a_rule_at_its_threshold(rule, rows, met, unmet, otherwise):
    """A lock is kept from the busiest stage by the other one; where waiting decides the loop is named."""
    expected = -1 if rule in ("data_in_time", "waiting_varies") else int(rule.startswith("lock"))
    assert named(rows(met)) == (rule, expected)
    if otherwise:
        assert named(rows(unmet)) == (otherwise, 0)
    else:
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
    assert "shares_cpu" in doubts(rows(met), 2.0)  # so that it is never sure


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
    assert ("other_load" in doubts(pipeline(BUSY, idle_share=0.0, **shared))) is doubted


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
    rows = crowded(stage, wait_share=0.15, idle_share=0.05)
    assert named(rows, 2.0)[0] == rule
    assert ("shares_cpu" in doubts(rows, 2.0)) is (rule == "takes_cpu")


@pytest.mark.parametrize(("freed", "doubted"), [(1.05 * LESS, False), (1.05 * MORE, True)])
def test_a_loop_that_limits_beside_a_pipeline_that_computes_is_a_doubt(freed, doubted):
    rows = pipeline({"cores": taking(freed, cores=1.0)}, wait_share=0.01, idle_share=0.05, process_cores=1.0)
    assert named(rows, 2.0)[0] == "data_in_time"
    assert ("shares_cpu" in doubts(rows, 2.0)) is doubted


FOR_LOCK = pipeline(BUSY | {"drop_ratio": 0.9}, python(0.9, cores=0.9), wait_share=0.01, gil_share=0.5)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # without a clear sign the busiest, of equals the lowest number, else the drop, where nobody works or is known
        (pipeline({"utilisation": 0.3}, {"utilisation": 0.4}), ("no_clear_sign", 1)),
        (pipeline({"utilisation": 0.4}, {"utilisation": 0.4}), ("no_clear_sign", 0)),
        (pipeline({"drop_ratio": 0.1}, {"drop_ratio": 0.2}), ("no_clear_sign", 1)),
        (pipeline({"utilisation": 0.0}, {"drop_ratio": 0.2}), ("no_clear_sign", 1)),
        (pipeline({}, {}), ("no_clear_sign", -1)),
        # the lock comes before a loop that does not wait, and that before all others
        (FOR_LOCK, ("lock_beside_loop", 1)),
        ([row | {"gil_share": 0.3} for row in FOR_LOCK], ("data_in_time", -1)),
        ([row | {"gil_share": 0.3, "wait_share": 0.6} for row in FOR_LOCK], ("lock_held", 1)),
        ([row | {"gil_share": 0.2, "wait_share": 0.6} for row in FOR_LOCK], ("busier_than_loop", 0)),
        # the queue behind a part of a concatenation says nothing
        (pipeline({"drop_ratio": 0.9, "below_concat": True}, {"drop_ratio": 0.5}), ("drop_without_times", 1)),
    ],
)
def test_which_rule_comes_first_and_what_is_named(rows, expected):
    assert named(rows) == expected


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (pipeline(IDLE, python(0.7), wait_share=0.1, gil_share=0.5), "balanced"),
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


def poll(batch_ns, row_ns=10.0, **more):
    rate = None if batch_ns is None else 1e9 / batch_ns
    return {"law_row_ns": 100.0, "rows_per_batch": 1.0, "row_ns": row_ns, "rate": rate, **more}


LOCKED = {"lock_share": 0.2, "cpu_share": 0.9}


@pytest.mark.parametrize(("facts", "expected"), [
    (poll(71), "poll"), (poll(69), None), (poll(124), "poll"), (poll(126), None), (poll(100, 99.0), "poll"),
    (poll(100, 100.0), None), (poll(100, 100.0, workers=2), "poll"), (poll(109, None), "poll"), (poll(111, None), None),
    (poll(None), None), (LOCKED | {"gil_share": 0.25 * LESS, "work_cv": 2.0}, "lock_wait"),
    (LOCKED | {"gil_share": 0.25, "python_cores": 0.5}, "gil"), (LOCKED | {"gil_share": 0.25}, "lock_wait"),
    ({"lock_share": 0.2 * LESS, "gil_share": 0.1, "cpu_share": 0.1}, "wait"), ({"work_cv": 1.5}, None),
    ({"work_cv": 1.5 * MORE}, "burst"), ({"work_cv": 1.6, "law_row_ns": 100.0}, None), ({"longest_batches": 3.3}, None),
    ({"longest_batches": 3.3 * MORE}, "burst"), ({"burst_share": 0.5, "cpu_share": 0.49}, "burst"),
    ({"burst_share": 0.5 * LESS, "cpu_share": 0.49}, "wait"), ({"burst_share": 0.5, "cpu_share": 0.5}, "cpu"),
    ({"burst_share": 0.5}, None), (python(0.5, gil_share=0.25, cpu_share=0.9), "gil"),
    (python(0.5 * LESS, gil_share=0.25, cpu_share=0.9), "cpu"),
    (python(0.5, gil_share=0.25 * LESS, cpu_share=0.9), "cpu"), ({"cpu_share": 0.5}, "cpu"),
    ({"cpu_share": 0.5 * LESS}, "wait"), ({}, None),
])  # fmt: skip
def test_the_kind_of_a_stage(facts, expected):
    operator, loop = rows_of(JudgedStage, [stage(op_id, **facts) for op_id in (0, -1)])
    assert (StageFacts.of(operator).kind, StageFacts.of(loop).kind) == (expected, None)


COMPUTES = BUSY | {"cpu_share": 0.9}


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (pipeline(BUSY, python(0.9, cpu_share=0.1), gil_share=0.3), "gil"),
        (pipeline(COMPUTES, idle_share=0.1 * LESS, process_cores=2.0), "host_saturated"),
        (pipeline(COMPUTES, idle_share=0.1, process_cores=2.0), "cpu"),
        (pipeline(COMPUTES, idle_share=0.0, process_cores=3.0), "host_saturated"),
        (pipeline(COMPUTES, idle_share=0.0, process_cores=3.0 * MORE), "cpu"),
        (pipeline(BUSY | {"cpu_share": 0.1}, idle_share=0.0, process_cores=1.0), "wait"),
        (pipeline({"drop_ratio": 0.9, "cores": 1.0, "workers": 2}), "cpu"),
        (pipeline({"drop_ratio": 0.9, "cores": 0.99, "workers": 2}), "wait"),
        (pipeline({"drop_ratio": 0.9}), None),
    ],
)
def test_the_kind_of_the_stage_that_is_named(rows, kind):
    assert decide(rows, 4.0).kinds[0] == kind


@pytest.mark.parametrize(("rows", "expected"), [
    (pipeline(SLOW, QUICK), []), (pipeline(SLOW, {"utilisation": 0.75 * LESS}), []),
    (pipeline(SLOW, {"utilisation": 0.75 * MORE}), ["close"]), (pipeline(SLOW), ["close"]),
    (pipeline({"utilisation": 0.95}, {"utilisation": 0.3}), ["no_queues"]),
    (pipeline(SLOW | {"drop_ratio": 0.1}, QUICK | {"drop_ratio": 0.3}), ["queues_elsewhere"]),
    (pipeline(SLOW | {"overrun": 1.2}, QUICK), []), (pipeline(SLOW | {"overrun": 1.2 * MORE}, QUICK), ["overrun"]),
    (pipeline(SLOW, QUICK, batches=20), []), (pipeline(SLOW, QUICK, batches=19), ["few_batches"]),
    (pipeline(SLOW, QUICK, idle_share=0.05, process_cores=1.0), ["other_load"]),
    (pipeline({"drop_ratio": 0.8}, {"utilisation": 0.4}), []),
    (pipeline({"drop_ratio": 0.8 * LESS}, {"utilisation": 0.4}), ["indirect"]),
    (pipeline({"drop_ratio": 0.8}, {"utilisation": 0.5}), ["indirect"]), (pipeline({"drop_ratio": 0.8}), ["indirect"]),
    (pipeline(SLOW, python(0.9), gil_share=0.3), []), (pipeline(SLOW, python(0.9)), ["indirect"]),
    (pipeline(QUICK | {"drop_ratio": 0.9}), ["not_busy", "close", "none_busy"]),
    (pipeline({"drop_ratio": 0.1}), ["not_busy", "close", "indirect", "none_busy"]),
    (pipeline(QUICK, {"cores": 0.5, "drop_ratio": 0.2}), ["not_busy", "close", "indirect", "none_busy"]),
])  # fmt: skip
def test_doubts_of_an_operator_that_is_named(rows, expected):
    assert doubts(rows) == expected


@pytest.mark.parametrize(("cores", "lock", "wait", "expected"), [
    (0.3, 0.25, 0.01, ["no_queues", "holds_lock"]), (0.3 * LESS, 0.25, 0.01, ["no_queues"]),
    (0.3, 0.25 * LESS, 0.01, ["no_queues"]), (0.3, None, 0.01, ["no_queues"]),
    (0.0, None, 0.05, ["close", "no_queues"]),
])  # fmt: skip
def test_doubts_of_a_loop_that_limits(cores, lock, wait, expected):
    rows = pipeline(BUSY, python(cores), loop={"utilisation": 1 - wait}, wait_share=wait, gil_share=lock)
    found = decide(rows, 4.0)
    assert (found.first.op_id, doubts(rows)) == (-1, expected)
    assert [stage.op_id for stage in found.stages] == ([-1, 1, 0] if found.holds_lock else [-1, 0, 1])


@pytest.mark.parametrize(("cores", "doubted"), [(0.3 + 0.1 * 2, True), ((0.3 + 0.1 * 2) * LESS, False), (None, False)])
def test_cpu_that_its_rows_do_not_explain_is_a_doubt_about_a_loop(cores, doubted):
    """Two workers that are busy for 10 % of the time explain 0.2 cores."""
    rows = pipeline({"utilisation": 0.1, "workers": 2, "cores": cores}, loop=BUSY, wait_share=0.04)
    found = [doubt for doubt in decide(rows, 4.0).doubts if doubt["code"] == "untimed_cpu"]
    assert [(doubt["op"]["op_id"], round(doubt["cores"], 6)) for doubt in found] == [(0, 0.3)] * doubted


def test_doubts_carry_the_numbers_that_a_sentence_needs_and_other_ranks_are_no_other_program():
    ops = [{"utilisation": 0.74, "name": "Source", "drop_ratio": 0.9}, {"utilisation": 0.79, "name": "augment"}]
    found = {doubt["code"]: doubt for doubt in decide(pipeline(*ops, batches=7), 4.0).doubts}
    assert (found["not_busy"]["op"]["name"], found["not_busy"]["utilisation"]) == ("augment", 0.79)
    assert (found["close"]["op"]["name"], found["close"]["utilisation"]) == ("Source", 0.74)
    assert found["queues_elsewhere"]["op"] == {"op_id": 0, "op_type": "MapOp", "name": "Source"}
    assert found["few_batches"]["batches"] == 7
    assert "indirect" not in found  # by its own times, as far as they tell
    found = {doubt["code"]: doubt for doubt in decide(pipeline({"drop_ratio": 0.1}), 4.0).doubts}
    assert (found["indirect"]["op"]["op_id"], found["indirect"]["rule"]) == (0, "weak")
    rows = pipeline(SLOW, QUICK, idle_share=0.05, process_cores=1.0)
    assert doubts(rows, alone=False) == []
    assert doubts([row | {"job_cores": 1.0} for row in rows], alone=False) == ["other_load"]


@pytest.mark.parametrize(("relation", "met", "unmet"), [
    ("at_least", [1.0, 2.0], [0.9, None]), ("at_most", [1.0, 0.0], [1.1, None]), ("above", [1.1], [1.0, None]),
    ("below", [0.9], [1.0, None]), ("short_of", [0.9, None], [1.0]), ("not_above", [1.0, None], [1.1]),
    ("known", [0.0], [None]), ("unknown", [None], [0.0]), ("noted", [0.0, None], []),
])  # fmt: skip
def test_what_a_clause_asks(relation, met, unmet):
    clause = Clause("x", relation, None if relation in ("known", "unknown", "noted") else 1.0)
    assert [clause.holds(SimpleNamespace(x=value)) for value in met + unmet] == [True] * len(met) + [False] * len(unmet)


@pytest.mark.parametrize(("host", "device", "expected"), [
    (0.3 * MORE, None, "data_processing"), (0.3, 0.3 * MORE, "data_transmission"), (0.3, 0.3, None), (None, 1.0, None),
    (0.1, None, None),
])  # fmt: skip
def test_the_late_side_of_sink_mode(host, device, expected):
    facts = SimpleNamespace(host_empty_share=host, device_empty_share=device)
    assert next(codes(rules.SINK_STAGES, facts), None) == expected


def test_every_rule_asks_for_facts_that_there_are_and_has_a_name_of_its_own():
    facts = Facts.of(rows_of(JudgedStage, pipeline(BUSY)), 4.0)
    names = [rule.name for rule in rules.RULES]
    assert len(set(names)) == len(names)
    assert all(hasattr(facts, rule.chooses) for rule in rules.RULES)
    for outcome in (*rules.RULES, *rules.VERDICTS, *rules.DOUBTS):
        assert all(hasattr(facts, clause.fact) for clause in outcome.when)
    for outcome in (*rules.VERDICTS, *rules.DOUBTS):
        assert {*outcome.only, *outcome.never} <= {rule.code for rule in rules.RULES}
    for outcome in (*rules.KINDS, *rules.UNTIMED_KINDS):
        assert all(hasattr(facts.stages[0], clause.fact) for clause in outcome.when)


def test_a_decision_says_what_it_rested_on_and_the_last_rule_always_holds():
    found = decide(pipeline(SLOW, python(0.9), gil_share=0.3), 4.0)
    assert [tuple(one[name] for name in ("fact", "value", "relation", "bound")) for one in found.rested_on] == [
        ("python_cores", 0.9, "at_least", 0.85),
        ("gil_share", 0.3, "at_least", 0.25),
        ("busiest_python_share", 0.0, "below", 0.5),
    ]
    assert {clause.relation for clause in rules.RULES[-1].when} == {"noted"}
    assert (rules.VERDICTS[-1].when, rules.VERDICTS[-1].only, rules.VERDICTS[-1].never) == ((), (), ())
