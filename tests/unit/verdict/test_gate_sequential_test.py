"""Planned looks: each on the first repetitions, each decision once."""

import numpy as np
import pytest

from pipeprof.verdict import Policy, Samples, judge_looks
from pipeprof.verdict.gate.planned import spending
from pipeprof.verdict.gate.policy import Rule

STEP, TAIL = "step_time_median", "data_wait"
LOOKS = (5, 8, 12, 16, 20)


def drawn(seed, number, spread, factor=1.0):
    return tuple((1e8 * factor * np.random.default_rng(seed).lognormal(0, spread, number)).tolist())


def test_before_the_first_look_nothing_is_decided():
    verdict = judge_looks({STEP: [1e8] * 4}, {STEP: [3e8] * 4})
    assert (verdict.verdict, verdict.looks, verdict.next_look) == ("inconclusive", (), 5)
    assert verdict.metrics[0].reasons == ({"code": "first_check", "repetitions": 5},)
    assert verdict.metrics[0].reps_needed == 5


def test_before_the_first_look_missing_stays_missing_and_counts_are_compared():
    verdict = judge_looks({STEP: [1e8], "count/a": [1.0]}, {"count/a": [2.0]})
    assert [one.verdict for one in verdict.metrics] == ["missing", "regressed"]
    assert verdict.verdict == "missing"


EXACT = {"metrics": {"count/rows_per_batch": "decides", "bytes/batch": "decides"}}


def test_a_count_that_decides_does_so_from_one_repetition_on():
    base = {STEP: [1e8], "count/rows_per_batch": [200.0], "bytes/batch": [4000.0]}
    verdict = judge_looks(base, base | {"count/rows_per_batch": [201.0]}, EXACT)
    assert (verdict.verdict, verdict.metric("count/rows_per_batch").verdict) == ("regressed", "regressed")
    assert verdict.metric(STEP).verdict == "inconclusive"
    assert judge_looks(base, base, EXACT).verdict == "inconclusive", "the time is not known yet"


def test_counts_that_vary_do_not_keep_a_session_going():
    base = {STEP: drawn(1, 20, 0.003), "count/rows_per_batch": tuple(range(1, 21))}
    verdict = judge_looks(base, base, EXACT)
    assert (verdict.verdict, verdict.looks, verdict.next_look) == ("inconclusive", (5,), None)


def test_counts_that_decide_make_no_test_of_times_harder():
    base = {STEP: drawn(1, 5, 0.003), "count/rows_per_batch": [200.0] * 5, "bytes/batch": [4000.0] * 5}
    many = EXACT | {"metrics": EXACT["metrics"] | {f"count/{at}": "decides" for at in range(20)}}
    first, second = (judge_looks(base, base, policy).metric(STEP) for policy in (None, many))
    assert first.alpha == second.alpha


def test_looks_end_when_all_primary_metrics_are_decided():
    base = {STEP: drawn(1, 20, 0.003)}
    verdict = judge_looks(base, base)
    assert (verdict.verdict, verdict.looks, verdict.next_look) == ("unchanged", (5,), None)
    assert verdict.metrics[0].reps_base == 5


def test_the_next_look_is_named_and_the_last_has_none():
    base, new = drawn(1, 20, 0.2), drawn(2, 20, 0.2)
    first = judge_looks({STEP: base[:9]}, {STEP: new[:8]})
    assert (first.verdict, first.looks, first.next_look) == ("inconclusive", (5, 8), 12)
    last = judge_looks({STEP: base}, {STEP: new})
    assert (last.verdict, last.looks, last.next_look) == ("inconclusive", LOOKS, None)


def test_a_look_has_its_part_of_alpha():
    verdict = judge_looks({STEP: drawn(1, 12, 0.2)}, {STEP: drawn(2, 12, 0.2)})
    assert verdict.metrics[0].alpha == pytest.approx(spending(0.008, LOOKS)[2] / 5)


def test_a_decision_is_kept_while_the_others_go_on():
    base = {STEP: drawn(1, 20, 0.003), TAIL: drawn(2, 20, 0.3)}
    new = {STEP: (*drawn(3, 8, 0.003, 1.2), *drawn(3, 12, 0.003, 0.5)), TAIL: drawn(4, 20, 0.3)}
    verdict = judge_looks(base, new)
    assert verdict.looks == LOOKS
    assert verdict.metric(STEP).verdict == "regressed"
    assert verdict.metric(STEP).reps_new in {5, 8}
    assert verdict.metric(TAIL).verdict == "inconclusive"
    assert verdict.metric(TAIL).reps_new == 20


def test_more_repetitions_never_reopen_a_decision():
    base, new = {STEP: drawn(1, 60, 0.02)}, {STEP: drawn(2, 60, 0.02, 1.08)}
    decided = None
    for number in range(5, 61):
        verdict = judge_looks({STEP: base[STEP][:number]}, {STEP: new[STEP][:number]})
        assert decided in (None, verdict)
        decided = verdict if verdict.next_look is None else None
    assert decided.verdict == "regressed"


def test_looks_go_by_order_and_not_by_place():
    base, new = drawn(1, 12, 0.02), drawn(2, 12, 0.02, 1.05)
    orders = tuple(3 * at for at in range(12))
    shuffled = np.random.default_rng(5).permutation(12).tolist()

    def side(values, places):
        return {STEP: Samples(tuple(values[at] for at in places), order=tuple(orders[at] for at in places))}

    straight = judge_looks(side(base, range(12)), side(new, range(12)))
    assert judge_looks(side(base, shuffled), side(new, shuffled)) == straight


def test_a_metric_that_lacks_a_repetition_keeps_its_prefix():
    values = drawn(1, 9, 0.02)
    whole = Samples(values, order=tuple(range(9)))
    lacking = Samples((*values[:1], *values[2:]), order=(0, *range(2, 9)))
    verdict = judge_looks({STEP: whole, TAIL: lacking}, {STEP: whole, TAIL: lacking}, Policy(looks=(5, 20)))
    assert verdict.metric(STEP).reps_base == 5
    assert verdict.metric(TAIL).reps_base == 4


def test_counts_that_begin_to_differ_are_seen_later():
    policy = Policy(metrics={STEP: Rule()})
    base = {STEP: drawn(1, 20, 0.3), "count/a": (1.0,) * 20}
    new = {STEP: drawn(2, 20, 0.3), "count/a": (1.0,) * 10 + (2.0,) * 10}
    assert judge_looks(base, new, policy).metric("count/a").verdict == "inconclusive"


def test_repetitions_of_several_jobs_count_though_their_places_begin_anew():
    order, jobs = tuple(range(6)) * 2, ("a",) * 6 + ("b",) * 6
    side = {STEP: Samples(drawn(3, 12, 0.2), order, jobs)}
    verdict = judge_looks(side, {STEP: Samples(drawn(4, 12, 0.2), order, jobs)})
    assert verdict.looks == (5, 8, 12)
    assert verdict.metrics[0].reps_base == 12
