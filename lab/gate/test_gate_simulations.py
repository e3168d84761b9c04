"""The goals of docs/gate-numbers.md, by the program that writes the page; seeds are fixed."""

from pathlib import Path

import gate_measured
import gate_noise
import gate_table
import msgspec
import numpy as np
import pytest
import simulate
from gate_rules import decided, sessions, shares

from pipeprof.verdict import Samples, judge, judge_looks
from pipeprof.verdict.gate.decision import WORDS

pytestmark = pytest.mark.slow
MEASURED = gate_measured.available()  # an addition: the drawn noise has the same properties
SAME_JOB = ["quiet", "samejob", "saturated", *(["scaled", "real"] if MEASURED else [])]
SOURCES = ["synthetic", *(["scaled"] if MEASURED else [])]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "gate-numbers.md"


@pytest.fixture(scope="module")
def rates():
    return simulate.all_sessions()


@pytest.fixture(scope="module")
def operators():
    return simulate.all_operators()


@pytest.fixture(scope="module")
def again():
    return simulate.reruns()


@pytest.fixture(scope="module")
def budgets():
    return simulate.within_budgets()


@pytest.fixture(scope="module")
def pairs():
    return simulate.two_runners()


@pytest.fixture(scope="module")
def few():
    return simulate.with_few()


@pytest.fixture(scope="module")
def others():
    return simulate.peers()


@pytest.mark.parametrize("regime", SAME_JOB)
def test_identical_code_is_called_regressed_in_at_most_one_of_a_hundred_comparisons(rates, regime):
    found = rates[regime][0.0]
    assert found.trials == 20_000
    assert found.bound <= 0.01


@pytest.mark.parametrize("source", SOURCES)
def test_205_operators_stay_quiet_together(operators, source):
    assert operators[source][8]["any"] <= 0.01
    assert operators[source][8]["beside"] <= 0.01


@pytest.mark.parametrize(
    ("regime", "least", "most"),
    [("quiet", 0.99, 8), ("samejob", 0.99, 14), *([("scaled", 0.94, 17)] if MEASURED else [])],
)
def test_a_planted_slow_down_is_found_with_few_repetitions(rates, regime, least, most):
    five, ten = rates[regime][0.05], rates[regime][0.10]
    assert five.regressed >= least
    assert five.reps <= most
    assert ten.regressed >= 0.999
    assert ten.reps <= 12


@pytest.mark.parametrize("source", SOURCES)
def test_one_slower_operator_of_41_is_found(operators, source):
    assert operators[source][8]["found"] >= 0.70
    assert operators[source][12]["found"] >= 0.95


@pytest.mark.parametrize("regime", ["saturated", *(["real"] if MEASURED else [])])
def test_an_overloaded_host_is_called_inconclusive(rates, regime):
    found = rates[regime][0.0]
    assert found.inconclusive >= 0.99
    assert found.worst_metric <= 0.002


@pytest.mark.parametrize("regime", SAME_JOB)
def test_running_it_again_buys_no_false_alarm(again, regime):
    joined, fresh, _ = again[regime]
    assert joined <= 0.01
    assert joined <= fresh


@pytest.mark.parametrize("regime", SAME_JOB)
def test_two_runners_are_hardly_ever_wrong_together(pairs, regime):
    _, both, bound = pairs[regime][simulate.POLICY.alpha][0.0]
    assert both <= bound <= 0.001
    if regime in ("quiet", "samejob"):
        assert pairs[regime][simulate.POLICY.alpha][0.05][1] >= 0.98


def test_rules_on_steps_cry_wolf_on_the_same_samples(others):
    assert others["samejob"]["Welch t on steps, .05, 1 run"][0.0] > 0.10
    assert others["saturated"]["mean > 5 %, 1 run"][0.0] > 0.30
    assert others["diffjob"]["benchstat: Mann-Whitney .05, 10 runs"][0.0] > 0.20


def test_another_job_is_held_against_the_spread_of_jobs():
    assert simulate.other_job()[0.0] <= 0.002 + 0.001


def sides(table, at):
    return tuple(dict(zip(gate_noise.NAMES, table[at, side].tolist(), strict=True)) for side in (0, 1))


@pytest.mark.parametrize("regime", [gate_noise.QUIET, gate_noise.SAMEJOB, gate_noise.SATURATED])
def test_the_simulation_judges_as_the_library_does(regime):
    table = simulate.planted(gate_noise.repetitions(regime, 60, 20, 1), 0.04)
    code, made = sessions(table, gate_noise.NAMES, simulate.POLICY, to_the_end=True)  # what is there is judged
    for at in range(len(table)):
        verdict = judge_looks(*sides(table, at))
        said = {one.name: one.verdict for one in verdict.metrics}
        assert [said[name] for name in gate_noise.NAMES] == [WORDS[one] for one in code[at]]
        assert verdict.looks[-1] == made[at].max()


def test_the_simulation_of_shares_judges_as_the_library_does():
    names = [f"op/{number}" for number in range(205)]
    table = gate_noise.operators(3, 8, 1)
    table[:, 1, 7] *= 1.15
    for at, code in enumerate(shares(table, names, simulate.POLICY)):
        base, new = (dict(zip(names, table[at, side].tolist(), strict=True)) for side in (0, 1))
        verdict = judge(base, new)
        assert {one.name: one.verdict for one in verdict.metrics} == {
            name: WORDS[one] for name, one in zip(names, code, strict=True)
        }


def test_re_runs_through_the_library_give_the_first_verdict():
    table = gate_noise.repetitions(gate_noise.SAMEJOB, 30, 100, 2)
    for at in range(len(table)):
        base, new = sides(table, at)
        grown = [
            judge_looks(*({name: column[:number] for name, column in side.items()} for side in (base, new)))
            for number in (20, 40, 60, 80, 100)
        ]
        assert grown == [grown[0]] * 5


def test_same_repetitions_same_bytes_in_any_order():
    table, random = gate_noise.repetitions(gate_noise.SAMEJOB, 100, 20, 3), np.random.default_rng(4)
    for at in range(len(table)):
        straight = [
            {name: Samples(tuple(column), tuple(range(20))) for name, column in side.items()}
            for side in sides(table, at)
        ]
        mixed = [shuffled(side, random) for side in straight]
        for judged in (judge, judge_looks):
            assert msgspec.json.encode(judged(*mixed)) == msgspec.json.encode(judged(*straight))


def shuffled(side, random):
    places = random.permutation(20).tolist()
    return {
        name: Samples(tuple(samples.values[at] for at in places), tuple(samples.order[at] for at in places))
        for name, samples in reversed(side.items())
    }


def test_a_plan_that_fits_the_budget_finds_more_at_the_promised_rate(budgets):
    for by_reps in budgets.values():
        assert max(by_effect[0.0][0] for by_effect in by_reps.values()) <= 0.01
    planned, cut = budgets["samejob"][8][0.05]
    assert planned > cut + 0.4


@pytest.mark.parametrize("regime", [*SAME_JOB, "heavy"])
def test_sides_that_lie_far_apart_cost_next_to_no_false_alarms_and_find_what_is_seen(few, regime):
    for reps, cells in few[regime].items():
        regressed, tested, improved, _ = cells[1.0]
        assert regressed <= 0.01
        assert improved <= 0.01
        assert regressed - tested <= (0.0 if reps == 2 else 0.001)
    assert few[regime][3][10.0][0] >= (0.6 if regime == "heavy" else 0.95)
    assert few["saturated"][3][10.0][0] > few["saturated"][3][10.0][1] + 0.2


@pytest.mark.parametrize("reps", [3, 4, 5])
def test_the_simulation_of_few_repetitions_judges_as_the_library_does(reps):
    table = simulate.planted(gate_noise.repetitions(gate_noise.HEAVY, 80, reps, 5), 9.0)
    rules = [simulate.POLICY.rule(name) for name in gate_noise.NAMES[:1]]
    codes = decided((table[:, 0, :1], table[:, 1, :1]), rules, simulate.POLICY.alpha, 5)[:, 0]
    said = [judge(*sides(table, at)).metric(gate_noise.NAMES[0]) for at in range(len(table))]
    far = [any(reason["code"] == "far_apart" for reason in one.reasons) for one in said]
    # Holm's steps of the other metrics decide a few more.
    assert all(WORDS[code] in (one.verdict, "inconclusive") for one, code in zip(said, codes, strict=True))
    assert all(
        WORDS[code] == one.verdict for one, code, by_distance in zip(said, codes, far, strict=True) if by_distance
    )
    assert reps > 3 or sum(far) > 8


def test_a_part_that_is_drawn_anew_takes_the_place_of_the_old_one():
    old = PAGE.read_text(encoding="utf-8")
    cells = dict.fromkeys((1.0, *simulate.MULTIPLES), (0.5, 0.4, 0.1, 0.6))
    new = gate_table.updated(old, {"few": {"quiet": dict.fromkeys(simulate.FEW, cells)}}, "2027-01-01")
    titles = [[line for line in text.splitlines() if line.startswith("## ")] for text in (old, new)]
    assert titles[0] == titles[1]
    assert new.count("Drawn on 2027-01-01.") == 1
    assert "| quiet | 3 | 50.00 % (40.00 %, <= 60.00 %) | 10.00 % |" in new
    assert "| G11 |" in new
    assert new.count("| G11 |") == new.count("| G12 |") == 1
    assert gate_table.updated(new, {}, "2027-01-02") == new


def test_giving_up_costs_no_find_and_saves_repetitions_on_an_overloaded_host():
    for name, by_effect in simulate.patience(2_000).items():
        for early, late in by_effect.values():
            assert early.any_regressed >= late.any_regressed - 0.005, name
            assert early.decided >= late.decided - 0.005, name
        if name == "saturated":
            assert by_effect[0.0][0].reps_all < by_effect[0.0][1].reps_all - 2


def test_every_goal_on_the_page_is_held(rates, operators, again, budgets, few):
    found = {"sessions": rates, "operators": operators, "reruns": again, "budgets": budgets, "few": few}
    assert [goal for goal in gate_table.goals(found) if not goal[-1]] == []
