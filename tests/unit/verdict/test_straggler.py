"""Which rank holds the others up: planted ones are found and named with their size, noise is not."""

import numpy as np
import pytest
from rank_rows import rows_of, stragglers

from pipeprof.verdict.straggler import ALPHA


def even(steps=30, ranks=8, noise=1.0, seed=1):
    """Steps of 100 with time 60 up to BP; all ranks of a step have a part in common."""
    chance = np.random.default_rng(seed)
    return 60 + chance.normal(0, noise, (steps, ranks)) + chance.normal(0, 8, (steps, 1))


def planted(size, rank=3, part=slice(None), **how):
    times = even(**how)
    times[part, rank] += size
    return times


def judged(times, *others, **how):
    return stragglers([row for each in (times, *others) for row in rows_of(each, **how)])


@pytest.mark.parametrize("size", [4, 8, 20])
@pytest.mark.parametrize(("steps", "ranks"), [(10, 8), (30, 2), (30, 64), (300, 8)])
def test_a_planted_straggler_is_named_with_its_size(size, steps, ranks):
    found = judged(planted(size, rank=1, steps=steps, ranks=ranks))
    assert (found["verdict"], found["largest"]["rank"]) == ("straggler", 1)
    assert [(item["rank"], item["kind"]) for item in found["found"]] == [(1, "steady")]
    assert found["found"][0]["share"] == pytest.approx(size / 100, abs=0.015)


def test_differences_that_are_small_or_within_the_noise_are_not_worth_a_word():
    found = judged(planted(1.0, steps=1000, noise=0.1))
    assert (found["verdict"], found["largest"]["rank"]) == ("even", 3)
    assert found["largest"]["excess_ns"] > 5 * found["largest"]["noise_ns"]
    assert found["detectable_share"] == pytest.approx(0.02)
    times = 178e6 + np.random.default_rng(2).normal(0, 5e4, (5, 2))
    times[:, 1] += 440_000  # MindInsight's example: half a millisecond of a step of 180
    assert judged(times, step_ns=180e6)["verdict"] == "even"
    found = judged(even(steps=6, noise=20))
    assert (found["verdict"], found["why"]) == ("cannot_tell", "varies")
    assert found["largest"]["share"] > 0.05


def test_ranks_that_are_slow_together_now_and_then_or_in_one_half_only():
    times = planted(5, rank=4, steps=50, ranks=16)
    times[:, 9] += 10
    assert [item["rank"] for item in judged(times)["found"]] == [9, 4]
    times = planted(50, rank=5, part=slice(None, None, 10), steps=200)
    (item,) = judged(times)["found"]
    assert (item["rank"], item["kind"], item["held_up_steps"]) == (5, "sometimes", 20)
    assert item["share"] == pytest.approx(0.05, abs=0.005)
    (item,) = stragglers(rows_of(times) + rows_of(planted(1, rank=5, steps=200), phase="backward"))["found"]
    assert (item["kind"], item["phase"], item["phase_excess_ns"]) == ("sometimes", None, None)
    one_pause = planted(50, rank=5, part=slice(50, 70), steps=200)
    assert judged(one_pause)["verdict"] == "even"
    times = planted(12, rank=2, part=slice(20), steps=40)
    times[20:, 2] -= 2
    assert not any(item["kind"] == "steady" for item in judged(times)["found"])


@pytest.mark.parametrize(
    ("size", "noise", "verdict"), [(5, 0.5, "cannot_tell"), (30, 0.5, "straggler"), (30, 15, "cannot_tell")]
)
def test_one_step_names_only_large_differences_and_with_little_confidence(size, noise, verdict):
    found = judged(planted(size, steps=1, noise=noise))
    assert found["verdict"] == verdict
    assert noise > 1 or found["detectable_share"] == pytest.approx(0.10)
    for item in found["found"]:
        assert (item["kind"], item["confidence"], item["doubts"]) == ("once", "low", [{"code": "once", "steps": 1}])


@pytest.mark.parametrize(("size", "steps", "confidence"), [(10, 100, "high"), (2.6, 300, "medium"), (30, 4, "low")])
def test_confidence_rises_with_the_steps_and_the_distance(size, steps, confidence):
    assert judged(planted(size, steps=steps))["found"][0]["confidence"] == confidence


def test_collectives_agree_or_raise_a_doubt():
    def beside(last):
        arrival = {
            "rep": 0, "rank": 3, "events": 40, "last_share": last, "expected_share": 0.125, "caused_ns": 70.0,
            "per_rank_ns": 9.5, "collective": "AllReduce-op1", "collective_kind": "all_reduce",
        }  # fmt: skip
        return stragglers(rows_of(planted(10)), [arrival])["found"][0]

    agreed, doubted = beside(0.9), beside(0.01)
    assert (agreed["confidence"], agreed["wait_caused_ns"], agreed["collective"]) == ("high", 9.5, "AllReduce-op1")
    assert {item["source"] for item in agreed["evidence"]} == {"rank/phase_diff", "rank/last_arrival"}
    assert (doubted["confidence"], doubted["doubts"]) == ("low", [{"code": "not_last"}])


def test_what_to_look_at_what_it_can_bring_the_phase_and_the_missing_communication_are_named():
    item = stragglers(rows_of(planted(20)) + rows_of(planted(20), phase="data_wait"))["found"][0]
    look, bound = item["suggestions"]
    assert look == {"code": "input", "rank": 3}
    assert (bound["code"], bound["rank"], bound["times"]) == ("bound", 3, pytest.approx(1.2, abs=0.1))
    rows = rows_of(planted(10))
    for phase, size in (("data_wait", 2), ("forward_backward", 9), ("tail", -1), ("communication", -10)):
        rows += rows_of(planted(size), phase=phase)
    item = stragglers(rows)["found"][0]
    assert (item["phase"], item["measure"]) == ("forward_backward", "until_bp")
    assert item["phase_excess_ns"] == pytest.approx(9, abs=1.5)
    assert item["communication_less_ns"] == pytest.approx(10, abs=1.5)


@pytest.mark.parametrize(("source", "phase"), [("parts", "own"), ("split", "own"), ("trace", "own"), ("phase", "step")])
def test_every_source_has_a_measure_that_decides(source, phase):
    found = judged(planted(10), source=source, phase=phase)
    assert (found["verdict"], found["source"], found["found"][0]["measure"]) == ("straggler", source, phase)


def test_stages_and_repetitions_are_judged_apart_and_odd_steps_do_no_harm():
    assert judged(planted(30), phase="communication")["verdict"] == stragglers([])["verdict"] == "not_measured"
    rows = rows_of(even(), peers=0) + [{**row, "rank": row["rank"] + 8} for row in rows_of(planted(10), peers=1)]
    assert [(item["rank"], item["peers"]) for item in stragglers(rows)["found"]] == [(11, 1)]
    slow = [row for rep in (0, 1) for row in rows_of(planted(10, seed=rep), rep=rep)]
    quiet = [row for rep in (2, 3, 4) for row in rows_of(even(seed=rep), rep=rep)]
    assert stragglers(slow + quiet)["verdict"] == "even"
    item = stragglers(slow + quiet[:8])["found"][0]
    assert (item["rank"], item["found_in"], item["repetitions"]) == (3, 2, 3)
    assert judged(np.zeros((10, 4)), step_ns=0.0)["found"] == []
    same = np.full((10, 4), 60.0)
    assert judged(same)["verdict"] == "even"
    same[:, 2] = 70
    assert [item["rank"] for item in judged(same)["found"]] == [2]


DRAWS = 300  # of each kind, number of ranks and number of steps; 7,200 in all
NOISE = {
    "normal": lambda chance, shape: chance.normal(0, 3, shape),
    "wide": lambda chance, shape: chance.normal(0, 15, shape),
    "student": lambda chance, shape: 3 * chance.standard_t(2, shape),
    "cauchy": lambda chance, shape: 2 * chance.standard_cauchy(shape),
    "lognormal": lambda chance, shape: 10 * chance.lognormal(0, 1.2, shape),
    "pauses": lambda chance, shape: chance.normal(0, 2, shape) + 60 * (chance.random(shape) < 0.05),
}


def named(times, kind=None):
    """Whether any rank is named, or one for this; the ranks are all alike."""
    return any(kind in (None, item["kind"]) for item in judged(times)["found"])


@pytest.mark.parametrize("kind", NOISE)
def test_at_most_one_run_in_a_hundred_of_noise_names_a_rank(kind):
    chance = np.random.default_rng(20260101)

    def drawn(*shape):
        return 100 + NOISE[kind](chance, shape) + chance.normal(0, 10, (shape[0], 1))  # in common

    shapes = [(steps, ranks) for ranks in (8, 64) for steps in (5, 40)]
    wrong = {shape: sum(named(drawn(*shape)) for _ in range(DRAWS)) for shape in shapes}
    assert sum(wrong.values()) <= ALPHA * DRAWS * len(wrong)
    assert max(wrong.values()) <= 0.02 * DRAWS, wrong


@pytest.mark.parametrize(("steps", "ranks"), [(40, 8), (40, 64), (200, 8)])
def test_steps_that_resemble_the_one_before_name_no_rank(steps, ranks):
    chance, wrong = np.random.default_rng(11), 0
    for _ in range(DRAWS):
        times = chance.normal(0, 5, (steps, ranks))
        times[0] /= np.sqrt(1 - 0.7**2)
        for step in range(1, steps):
            times[step] += 0.7 * times[step - 1]
        wrong += named(100 + times)
    assert wrong <= 0.02 * DRAWS


def test_ranks_that_vary_differently_are_not_steady_and_one_step_of_noise_names_none():
    """They do hold the others up now and then: whoever is late in a step makes all wait."""
    chance, wrong = np.random.default_rng(7), 0
    for _ in range(DRAWS):
        spread = chance.lognormal(0, 0.7, 32) * 3
        wrong += named(100 + chance.normal(0, 1, (20, 32)) * spread, "steady")
    assert wrong <= 0.02 * DRAWS
    chance = np.random.default_rng(3)
    assert sum(named(100 + chance.normal(0, 6, (1, 16))) for _ in range(1000)) <= 10
