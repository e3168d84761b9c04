"""Which rank holds the others up: planted ones are found and named with their size, noise is not."""

import numpy as np
import pytest
from rank_rows import rows_of, stragglers


def even(steps=30, ranks=8, noise=1.0, seed=1):
    """Steps of 100 with time 60 up to BP; all ranks of a step have a part in common."""
    chance = np.random.default_rng(seed)
    return 60 + chance.normal(0, noise, (steps, ranks)) + chance.normal(0, 8, (steps, 1))


def planted(size, rank=3, **how):
    times = even(**how)
    times[:, rank] += size
    return times


@pytest.mark.parametrize("size", [4, 8, 20])
@pytest.mark.parametrize(("steps", "ranks"), [(10, 8), (30, 2), (30, 64), (300, 8)])
def test_a_planted_straggler_is_named_with_its_size(size, steps, ranks):
    found = stragglers(rows_of(planted(size, rank=1, steps=steps, ranks=ranks)))
    assert found["verdict"] == "straggler"
    assert [item["rank"] for item in found["found"]] == [1]
    assert found["found"][0]["kind"] == "steady"
    assert found["found"][0]["share"] == pytest.approx(size / 100, abs=0.015)
    assert found["largest"]["rank"] == 1


def test_differences_that_are_sure_but_small_are_not_worth_a_word():
    found = stragglers(rows_of(planted(1.0, steps=1000, noise=0.1)))
    assert found["verdict"] == "even"
    assert found["largest"]["rank"] == 3
    assert found["largest"]["excess_ns"] > 5 * found["largest"]["noise_ns"]
    assert found["detectable_share"] == pytest.approx(0.02)


def test_mindinsight_s_half_a_millisecond_of_a_step_of_180_is_none():
    chance = np.random.default_rng(2)
    times = 178e6 + chance.normal(0, 5e4, (5, 2))
    times[:, 1] += 440_000
    assert stragglers(rows_of(times, step_ns=180e6))["verdict"] == "even"


def test_large_differences_within_the_noise_are_not_named():
    found = stragglers(rows_of(even(steps=6, noise=20)))
    assert found["verdict"] == "cannot_tell"
    assert found["largest"]["share"] > 0.05
    assert found["why"] == "varies"


def test_several_slow_ranks_are_all_named_the_slowest_first():
    times = even(steps=50, ranks=16)
    times[:, 4] += 5
    times[:, 9] += 10
    assert [item["rank"] for item in stragglers(rows_of(times))["found"]] == [9, 4]


def test_a_rank_that_is_slow_now_and_then_is_named_for_it():
    times = even(steps=200)
    times[::10, 5] += 50
    found = stragglers(rows_of(times))["found"]
    assert [(item["rank"], item["kind"], item["held_up_steps"]) for item in found] == [(5, "sometimes", 20)]
    assert found[0]["share"] == pytest.approx(0.05, abs=0.005)


def test_medians_name_no_phase_of_a_rank_that_is_slow_now_and_then():
    times = even(steps=200)
    backward = even(steps=200)
    backward[:, 5] += 1
    times[::10, 5] += 50
    (item,) = stragglers(rows_of(times) + rows_of(backward, phase="backward"))["found"]
    assert (item["kind"], item["phase"], item["phase_excess_ns"]) == ("sometimes", None, None)


def test_one_long_pause_is_not_a_habit():
    times = even(steps=200)
    times[50:70, 5] += 50
    assert stragglers(rows_of(times))["verdict"] == "even"


def test_a_rank_that_is_slower_in_one_half_only_is_not_steady():
    times = even(steps=40)
    times[:20, 2] += 12
    times[20:, 2] -= 2
    assert not any(item["kind"] == "steady" for item in stragglers(rows_of(times))["found"])


@pytest.mark.parametrize(("size", "verdict"), [(5, "cannot_tell"), (30, "straggler")])
def test_one_step_names_only_large_differences_and_with_little_confidence(size, verdict):
    found = stragglers(rows_of(planted(size, steps=1, noise=0.5)))
    assert found["verdict"] == verdict
    assert found["detectable_share"] == pytest.approx(0.10)
    if verdict == "straggler":
        assert (found["found"][0]["kind"], found["found"][0]["confidence"]) == ("once", "low")
        assert found["found"][0]["doubts"] == [{"code": "once", "steps": 1}]


def test_one_step_of_ranks_that_are_far_apart_names_none():
    assert stragglers(rows_of(planted(30, steps=1, noise=15)))["verdict"] == "cannot_tell"


def test_confidence_rises_with_the_steps_and_the_distance():
    def confidence(size, steps):
        return stragglers(rows_of(planted(size, steps=steps, ranks=8)))["found"][0]["confidence"]

    assert confidence(10, 100) == "high"
    assert confidence(2.6, 300) == "medium"
    assert confidence(30, 4) == "low"


def arrival(rank=3, last=0.9, **more):
    return {
        "rep": 0, "rank": rank, "events": 40, "last_share": last, "expected_share": 0.125, "caused_ns": 70.0,
        "per_rank_ns": 9.5, "collective": "AllReduce-op1", "collective_kind": "all_reduce", **more,
    }  # fmt: skip


def test_collectives_agree_or_raise_a_doubt():
    rows = rows_of(planted(10))
    agreed = stragglers(rows, [arrival()])["found"][0]
    assert (agreed["confidence"], agreed["wait_caused_ns"], agreed["collective"]) == ("high", 9.5, "AllReduce-op1")
    assert {item["source"] for item in agreed["evidence"]} == {"rank/phase_diff", "rank/last_arrival"}
    doubted = stragglers(rows, [arrival(last=0.01)])["found"][0]
    assert doubted["confidence"] == "low"
    assert doubted["doubts"] == [{"code": "not_last"}]


def test_what_to_look_at_and_what_it_can_bring():
    item = stragglers(rows_of(planted(20)) + rows_of(planted(20), phase="data_wait"))["found"][0]
    look, bound = item["suggestions"]
    assert look == {"code": "input", "rank": 3}
    assert (bound["code"], bound["rank"], bound["times"]) == ("bound", 3, pytest.approx(1.2, abs=0.1))


def test_the_phase_and_the_missing_communication_are_named():
    times = planted(10)
    rows = rows_of(times)
    for phase, size in (("data_wait", 2), ("forward_backward", 9), ("tail", -1), ("communication", -10)):
        rows += rows_of(planted(size), phase=phase)
    item = stragglers(rows)["found"][0]
    assert (item["phase"], item["measure"]) == ("forward_backward", "until_bp")
    assert item["phase_excess_ns"] == pytest.approx(9, abs=1.5)
    assert item["communication_less_ns"] == pytest.approx(10, abs=1.5)


@pytest.mark.parametrize(("source", "phase"), [("parts", "own"), ("split", "own"), ("trace", "own"), ("phase", "step")])
def test_every_source_has_a_measure_that_decides(source, phase):
    found = stragglers(rows_of(planted(10), source=source, phase=phase))
    assert (found["verdict"], found["source"], found["found"][0]["measure"]) == ("straggler", source, phase)


def test_phases_that_do_not_decide_are_no_evidence():
    assert stragglers(rows_of(planted(30), phase="communication"))["verdict"] == "not_measured"
    assert stragglers([])["verdict"] == "not_measured"


def test_stages_are_judged_apart():
    rows = rows_of(even(), peers=0) + [{**row, "rank": row["rank"] + 8} for row in rows_of(planted(10), peers=1)]
    assert [(item["rank"], item["peers"]) for item in stragglers(rows)["found"]] == [(11, 1)]


def test_a_rank_must_be_found_in_most_repetitions():
    slow = [row for rep in (0, 1) for row in rows_of(planted(10, seed=rep), rep=rep)]
    quiet = [row for rep in (2, 3, 4) for row in rows_of(even(seed=rep), rep=rep)]
    assert stragglers(slow + quiet)["verdict"] == "even"
    item = stragglers(slow + quiet[:8])["found"][0]
    assert (item["rank"], item["found_in"], item["repetitions"]) == (3, 2, 3)


def test_steps_without_a_length_and_equal_steps_do_no_harm():
    assert stragglers(rows_of(np.zeros((10, 4)), step_ns=0.0))["found"] == []
    same = np.full((10, 4), 60.0)
    assert stragglers(rows_of(same))["verdict"] == "even"
    same[:, 2] = 70
    assert [item["rank"] for item in stragglers(rows_of(same))["found"]] == [2]
