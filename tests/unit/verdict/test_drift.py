"""Slower as it runs: a step, a drift or nothing, and what changed with it; steps of two lengths."""

import math

import msgspec
import numpy as np
import pytest
from typed_rows import of_dicts

from pipeprof.report.words.training import DRIFT_CAUSES, PHASES, drift_sentence
from pipeprof.verdict import drift, modes
from pipeprof.verdict.modes import APART, LEAST_SHARE, LEAST_STEPS, of_one_mode

judge_course, found_modes = of_dicts(drift.judge_course), of_dicts(modes.two_modes)

MS = 1_000_000.0


def course(times, waits=None, **more):
    """24 blocks of 10 steps; `more`: other columns, a value for each block."""
    rows = []
    for block, time in enumerate(times):
        row = {
            "rep": 0, "rank": 0, "block": block, "first_step": block * 10, "steps": 10, "start_ns": block * 1000,
            "end_ns": block * 1000 + 1000, "dur_ns": time, "wait_ns": None if waits is None else waits[block],
            "compiled": 0, "compile_ns": 0, "neighbour_cores": None, "throttled_share": None, "floor_bytes": None,
        }  # fmt: skip
        rows.append(row | {name: values[block] for name, values in more.items()})
    return rows


def judged(*args, **more):
    (found,) = judge_course(course(*args, **more))
    return found


def noisy(seed, spread=0.03):
    return 100 * MS * np.exp(np.random.default_rng(seed).normal(0, spread, 24))


def halves(before, after):
    return [before] * 12 + [after] * 12


def test_a_step_is_dated_and_a_drift_is_not():
    found = judged([*noisy(1)[:10], *(1.5 * noisy(2)[10:])])
    assert (found["verdict"], found["at_step"], found["at_ns"]) == ("step", 100, 10_000)
    assert (found["steps"], found["late_steps"]) == (240, 140)
    assert found["after_ns"] / found["before_ns"] == pytest.approx(1.5, rel=0.05)
    found = judged(noisy(3, 0.01) * np.linspace(1, 1.6, 24))
    assert (found["verdict"], found["at_step"]) == ("drift", None)
    assert found["after_ns"] > 1.3 * found["before_ns"]


@pytest.mark.parametrize("times", [
    [5 * MS] * 24, noisy(4) * np.linspace(1.6, 1, 24), halves(100 * MS, 109 * MS),
], ids=["equal", "faster", "less than a tenth"])  # fmt: skip
def test_what_is_steady(times):
    assert judged(times)["verdict"] == "steady"


def test_noise_alone_is_hardly_ever_a_drift_and_a_slow_down_by_a_fifth_is_found_in_it():
    found = [judged(noisy(seed, 0.15))["verdict"] for seed in range(300)]
    assert found.count("steady") >= 297
    found = [judged(np.array(halves(1, 1.2)) * noisy(seed, 0.05))["verdict"] for seed in range(100)]
    assert found.count("steady") <= 1


@pytest.mark.parametrize(("waits", "phase"), [((1, 11), "data_wait"), ((1, 1), "work"), ((1, 6), None)])
def test_the_phase_that_grew_is_named(waits, phase):
    assert judged(halves(10 * MS, 20 * MS), halves(*(wait * MS for wait in waits)))["phase"] == phase


@pytest.mark.parametrize(("column", "before", "after", "cause"), [
    ("compile_ns", 0, 80 * MS, "recompilation"), ("floor_bytes", 1 << 30, 2 << 30, "memory_growth"),
    ("neighbour_cores", 0.1, 1.0, "neighbour"), ("throttled_share", 0.0, 0.4, "throttling"),
])  # fmt: skip
def test_what_changed_with_it_is_the_cause(column, before, after, cause):
    times = halves(10 * MS, 20 * MS)
    assert judged(times, **{column: halves(before, after)})["causes"] == [cause]
    assert judged(times, **{column: [after] * 24})["causes"] == []


def test_few_steps_are_unclear_and_every_rank_is_judged_for_itself():
    rows = course(halves(1 * MS, 2 * MS))
    for few in ([row | {"steps": 1} for row in rows], rows[:8]):
        assert judge_course(few)[0]["verdict"] == "unclear"
    slow = [row | {"rank": 1} for row in course(halves(1 * MS, 2 * MS))]
    found = judge_course([*slow, *course([1 * MS] * 24)])
    assert [(row["rank"], row["verdict"]) for row in found] == [(0, "steady"), (1, "step")]


def test_words_say_when_how_much_where_and_why():
    own, found = {"source": "collect"}, judged(halves(10 * MS, 20 * MS), [MS] * 24, neighbour_cores=halves(0.0, 1.0))
    assert drift_sentence({"run": own}, found) == (
        "the steps become slower at about step 120, 12.0 us after the launch: the median step rises from 10.0 ms to "
        "20.0 ms, mostly in what follows the fetch; at the same time other programs take more CPU"
    )
    assert drift_sentence({"run": own}, {**found, "causes": []}).endswith("cause not recorded")
    assert "after the beginning of the recording" in drift_sentence({"run": {"source": "import:kineto"}}, found)
    assert set(DRIFT_CAUSES) == set(drift._CAUSES)
    assert {drift.WAIT, drift.WORK} <= set(PHASES)


def two_modes(*rows):
    return msgspec.to_builtins(found_modes(list(rows)))


def length(ms, steps, **more):
    times = {"steps": steps, "median_ns": ms * 1e6, "total_ns": steps * ms * 1e6, "wait_ns": 0, "place": 0.5}
    cores = {"own_cores": 1.0, "delay_cores": 0.0, "neighbour_cores": 0.0}
    return {"rep": 0, "rank": 0, "input_bytes": 100.0} | times | cores | more


def test_two_lengths_and_their_shares():
    found = two_modes(length(95, 20), length(100, 30), length(1850, 30), length(1900, 20))
    assert [found[side]["share"] for side in ("short", "long")] == [0.5, 0.5]
    assert [found[side]["median_ns"] for side in ("short", "long")] == [100e6, 1850e6]
    bell = (length(100 * math.exp(0.05 * at), round(200 * math.exp(-at * at / 50))) for at in range(-15, 16))
    assert two_modes(*(one for one in bell if one["steps"])) is None


RARE = round(1000 * LEAST_SHARE)


@pytest.mark.parametrize(("short", "times", "long", "two"), [
    (1000 - RARE, 9, RARE, True),
    (1001 - RARE, 9, RARE - 1, False),  # outliers
    (50, APART * 1.01, 50, True), (50, APART * 0.99, 50, False), (LEAST_STEPS // 2, 9, LEAST_STEPS // 2 - 1, False),
])  # fmt: skip
def test_how_far_apart_and_how_many_steps(short, times, long, two):
    found = two_modes(length(100, short), length(100 * times, long))
    assert (found and (found["short"]["steps"], found["long"]["steps"])) == ((short, long) if two else None)


@pytest.mark.parametrize(("more", "code"), [
    ({"wait_ns": 50 * 500_000_000}, "data"), ({"own_cores": 0.5}, "fewer_cores"), ({"own_cores": 1.9}, "more_cores"),
    ({"neighbour_cores": 0.9}, "neighbour"), ({"delay_cores": 0.9}, "delay"), ({"place": 1.0}, "later"),
    ({"own_cores": None}, None), ({"input_bytes": 126.0}, "input"), ({"input_bytes": 124.0}, None),
    ({"input_bytes": None}, None),
])  # fmt: skip
def test_what_the_long_steps_have(more, code):
    assert two_modes(length(100, 50), length(900, 50, **more))["differs"] == [code] * (code is not None)


def test_steps_that_were_recorded_say_nothing_of_what_recording_adds():
    network = {"limit": "host_gap", "doubts": [{"code": "inflated"}], "evidence": [{"code": "inflation"}],
               "confidence": "medium", "inflation": 13.0}  # fmt: skip
    assert of_one_mode(network, None) == network
    told = of_one_mode(network, found_modes([length(100, 50), length(900, 50)]))
    assert (told["inflation"], told["confidence"], told["evidence"]) == (None, "low", [])
    assert [doubt["code"] for doubt in told["doubts"]] == ["two_lengths"]
