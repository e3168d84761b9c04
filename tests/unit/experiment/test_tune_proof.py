"""When the proof of a tuning is judged, and which part of its chance of a false alarm each look has."""

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tune_fake import FakeBench, pipeline

from pipeprof.experiment.tune.goal import LOOKS, policy_of, proof_plan, sides_of
from pipeprof.experiment.tune.search import TuneWish, run_tune
from pipeprof.experiment.tune.state import Final
from pipeprof.verdict.gate.sequential_test import judge_looks

ALPHA = policy_of("time").alpha


def test_the_last_look_that_the_time_allows_has_half_of_what_is_left():
    plan = proof_plan(Final(), "time", 6)
    assert [look.reps for look in plan] == [4, 6]
    assert fsum(look.alpha for look in plan) == pytest.approx(ALPHA / 2)


def test_with_time_for_all_pairs_all_of_it_is_used():
    assert fsum(look.alpha for look in proof_plan(Final(), "time", LOOKS[-1])) == pytest.approx(ALPHA)


@given(st.lists(st.integers(4, 12), min_size=1, max_size=6))
def test_however_often_more_time_is_given_false_alarms_are_no_more_likely(mosts):
    final, last = Final(), 0
    for most in sorted(set(mosts)):
        plan = proof_plan(final, "time", most)
        assert [look.reps for look in plan if look.reps <= last] == final.looks
        final.looks, final.alphas = [look.reps for look in plan], [look.alpha for look in plan]
        assert min(final.alphas) >= 0
        last = most
    assert fsum(final.alphas) <= ALPHA * (1 + 1e-9)
    assert (fsum(final.alphas) == pytest.approx(ALPHA)) is (last == LOOKS[-1])


def tuned(folder, budget_s):
    loop = pipeline(6, 12, 6, consumer=110.0)  # two workers for the second stage: x1.3
    bench = FakeBench(loop, seed=3)
    bench.proof_noise = 0.07
    state, _ = run_tune(TuneWish(("python", "train.py"), folder, folder / "tuned", budget_s), bench, lambda _line: None)
    return state


def test_a_proof_that_ends_with_the_budget_is_judged_by_what_it_could_have(tmp_path):
    state = tuned(tmp_path, 120.0)
    pairs = len(state.final.a)
    assert (pairs < LOOKS[-1], state.final.looks[-1]) == (True, pairs)
    assert state.final.verdict == "improved"
    assert judge_looks(*sides_of(state.final, "time"), policy_of("time")).verdict == "inconclusive"
