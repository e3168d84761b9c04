"""Whatever was measured of a pipeline, the rules name one stage, and more waiting never clears the data."""

from hypothesis import given, settings
from hypothesis import strategies as st
from typed_rows import of_dicts

from pipeprof.verdict import decision
from pipeprof.verdict.decision import with_kinds
from pipeprof.verdict.rules import DOUBTS, KINDS, RULES, VERDICTS

decide = of_dicts(decision.decide)

EDGES = (0.0, 0.05, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 0.85, 1.0, 1.15, 1.3)
SHARE = st.one_of(st.sampled_from(EDGES), st.floats(0, 1.5))
MAYBE = st.one_of(st.none(), SHARE)
ROW = {"rep": 0, "rank": 0, "name": None, "rows_per_batch": 1.0}
STAGE = st.fixed_dictionaries({
    "op_type": st.sampled_from(["MapOp", "BatchOp", "GeneratorOp"]), "workers": st.integers(0, 8),
    "below_concat": st.booleans(), "row_ns": MAYBE, "law_row_ns": MAYBE, "rate": MAYBE, "utilisation": MAYBE,
    "cores": MAYBE, "python_cores": SHARE, "cpu_share": MAYBE, "work_cv": MAYBE, "longest_batches": MAYBE,
    "burst_share": MAYBE, "lock_share": MAYBE, "overrun": MAYBE, "drop_ratio": st.one_of(st.none(), st.floats(-1, 1)),
})  # fmt: skip
SHARED = st.fixed_dictionaries({
    "wait_share": st.one_of(st.sampled_from(EDGES[:11]), st.floats(0, 1)), "batches": st.integers(0, 60),
    "idle_share": MAYBE, "process_cores": MAYBE, "gil_share": MAYBE, "room_cores": MAYBE, "job_cores": MAYBE,
    "delay_share": MAYBE,
})  # fmt: skip


@st.composite
def pipelines(draw):
    """Rows of diagnose/load: a loop and up to five operators."""
    shared = draw(SHARED)
    loop = draw(STAGE) | {"op_type": "consumer", "below_concat": False, "python_cores": 0.0, "workers": 1}
    return [
        ROW | stage | shared | {"op_id": number}
        for number, stage in enumerate([loop, *draw(st.lists(STAGE, max_size=5))], -1)
    ]


def said(rows):
    found = decide(rows, 4.0)
    return found.verdict, found.rule.name, [stage.op_id for stage in found.stages], found.kinds, found.doubts


@given(pipelines())
@settings(deadline=None, max_examples=300)
def test_one_stage_comes_first_and_every_stage_is_ranked_once(rows):
    found = decide(rows, 4.0)
    assert sorted(stage.op_id for stage in found.stages) == [row["op_id"] for row in rows]
    assert found.rule in RULES
    assert found.verdict in {outcome.code for outcome in VERDICTS}
    assert set(found.kinds) <= {outcome.code for outcome in KINDS} | {"host_saturated", None}
    assert (found.first.op_id == -1) == (found.rule.chooses == "loop") or found.rule.name == "no_clear_sign"
    assert (found.verdict == "consumer_bound") <= (found.rule.code == "consumer")
    assert [row["kind"] for row in with_kinds(rows) if row["op_id"] == -1] == [None]


@given(pipelines(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_rows_changes_nothing(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert said(shuffled) == said(rows)


@given(pipelines(), st.floats(0, 1))
@settings(deadline=None, max_examples=300)
def test_a_loop_that_waits_longer_is_not_named_instead_of_an_operator(rows, more):
    waiting = [row | {"wait_share": row["wait_share"] + (1 - row["wait_share"]) * more} for row in rows]
    before, after = decide(rows, 4.0), decide(waiting, 4.0)
    assert (after.rule.code == "consumer") <= (before.rule.code == "consumer")


@given(pipelines(), st.integers(0, 60))
@settings(deadline=None)
def test_fewer_batches_only_add_a_doubt(rows, fewer):
    many = decide([row | {"batches": 60} for row in rows], 4.0)
    few = decide([row | {"batches": fewer} for row in rows], 4.0)
    codes = [doubt["code"] for doubt in few.doubts if doubt["code"] != "few_batches"]
    assert (few.rule, few.stages[0].op_id) == (many.rule, many.stages[0].op_id)
    assert codes == [doubt["code"] for doubt in many.doubts]


@given(pipelines())
@settings(deadline=None)
def test_each_doubt_is_said_once(rows):
    codes = [doubt["code"] for doubt in decide(rows, 4.0).doubts]
    assert len(set(codes)) == len(codes)
    assert set(codes) <= {outcome.code for outcome in DOUBTS}


@given(pipelines())
@settings(deadline=None)
def test_what_a_rule_rested_on_meets_its_bounds(rows):
    for item in decide(rows, 4.0).rested_on:
        value, bound = item["value"], item["bound"]
        assert {
            "at_least": lambda value=value, bound=bound: value >= bound,
            "at_most": lambda value=value, bound=bound: value <= bound,
            "below": lambda value=value, bound=bound: value < bound,
            "unknown": lambda value=value: value is None,
            "noted": lambda: True,
        }[item["relation"]]()
