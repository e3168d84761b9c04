"""Counted instructions: exact where they do not vary, else with their own noise; they inform unless the policy says more."""

import pytest

from pipeprof.verdict import judge

DECIDES = {"metrics": {"instructions": "decides", "step_time_median": "informs", "data_wait": "informs"}}


def word(base, new, policy=DECIDES):
    return judge({"instructions": base}, {"instructions": new}, policy).metric("instructions")


@pytest.mark.parametrize(
    ("new", "expected"),
    [(10_000, "unchanged"), (10_049, "unchanged"), (10_051, "regressed"), (9_940, "improved"), (9_960, "unchanged")],
)
def test_one_repetition_decides_and_less_than_half_a_percent_does_not_count(new, expected):
    assert word([10_000], [new]).verdict == expected


def test_of_little_work_a_few_instructions_do_not_count():
    assert word([100], [119]).verdict == "unchanged"
    assert word([100], [121]).verdict == "regressed"


def test_what_varies_is_judged_with_its_own_noise():
    base, same, more = ([x + at % 3 for at in range(6)] for x in (10_000, 10_001, 10_300))
    assert word(base, same).verdict == "unchanged"
    assert word(base, more).verdict == "regressed"
    assert word([9_000, 11_000, 10_000], [9_500, 11_500, 10_400]).verdict == "inconclusive"


def test_it_only_informs_by_default():
    values = {"step_time_median": [1e8, 1.001e8, 0.999e8, 1e8, 1e8]}
    verdict = judge(values | {"instructions": [10_000] * 5}, values | {"instructions": [20_000] * 5})
    assert verdict.metric("instructions").verdict == "regressed"
    assert verdict.metric("instructions").family == "informing"
    assert verdict.verdict == "unchanged"


def test_the_cause_is_the_stage_that_executes_more():
    from pipeprof.verdict.gate.causes import stated_cause
    from pipeprof.verdict.gate.explain import explanation

    base = {"instructions": [3_000], "instructions/decode": [1_000], "instructions/crop": [2_000]}
    new = {"instructions": [3_500], "instructions/decode": [1_600], "instructions/crop": [1_900]}
    verdict = judge(base, new, DECIDES)
    entries = explanation(verdict, {}, [])
    assert [(entry["name"], entry["measure"]) for entry in entries] == [
        ("decode", "instructions"), ("crop", "instructions"),
    ]  # fmt: skip
    assert stated_cause(verdict.verdict, "instructions", 3_500 / 3_000, entries)["name"] == "decode"
    assert stated_cause("regressed", "step_time_median", 1.1, entries) is None
