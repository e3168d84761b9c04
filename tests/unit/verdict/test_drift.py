"""Slower as it runs: a step, a drift or nothing, and what changed with it."""

import numpy as np
import pytest
from typed_rows import of_dicts

from pipeprof.report.words.training import DRIFT_CAUSES, PHASES, drift_sentence
from pipeprof.verdict import drift

judge_course = of_dicts(drift.judge_course)

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


def test_equal_blocks_are_steady():
    assert judged([5 * MS] * 24)["verdict"] == "steady"


def test_a_step_is_dated():
    found = judged([*noisy(1)[:10], *(1.5 * noisy(2)[10:])])
    assert (found["verdict"], found["at_step"], found["at_ns"]) == ("step", 100, 10_000)
    assert (found["steps"], found["late_steps"]) == (240, 140)
    assert found["after_ns"] / found["before_ns"] == pytest.approx(1.5, rel=0.05)


def test_a_drift_has_no_date():
    found = judged(noisy(3, 0.01) * np.linspace(1, 1.6, 24))
    assert (found["verdict"], found["at_step"]) == ("drift", None)
    assert found["after_ns"] > 1.3 * found["before_ns"]


def test_getting_faster_is_no_drift():
    assert judged(noisy(4) * np.linspace(1.6, 1, 24))["verdict"] == "steady"


def test_less_than_a_tenth_is_not_said():
    assert judged(halves(100 * MS, 109 * MS))["verdict"] == "steady"


def test_few_steps_are_unclear():
    rows = [row | {"steps": 1} for row in course(halves(1 * MS, 2 * MS))]
    assert judge_course(rows)[0]["verdict"] == "unclear"
    assert judge_course(course(halves(1 * MS, 2 * MS))[:8])[0]["verdict"] == "unclear"


def test_noise_alone_is_hardly_ever_a_drift():
    found = [judged(noisy(seed, 0.15))["verdict"] for seed in range(300)]
    assert found.count("steady") >= 297


def test_a_slow_down_by_a_fifth_is_found_in_noise():
    found = [judged(np.array(halves(1, 1.2)) * noisy(seed, 0.05))["verdict"] for seed in range(100)]
    assert found.count("steady") <= 1


def test_the_phase_that_grew_is_named():
    times, waits = halves(10 * MS, 20 * MS), halves(1 * MS, 11 * MS)
    assert judged(times, waits)["phase"] == "data_wait"
    assert judged(times, [1 * MS] * 24)["phase"] == "work"
    assert judged(times, halves(1 * MS, 6 * MS))["phase"] is None


@pytest.mark.parametrize(
    ("column", "before", "after", "cause"),
    [
        ("compile_ns", 0, 80 * MS, "recompilation"),
        ("floor_bytes", 1 << 30, 2 << 30, "memory_growth"),
        ("neighbour_cores", 0.1, 1.0, "neighbour"),
        ("throttled_share", 0.0, 0.4, "throttling"),
    ],
)
def test_what_changed_with_it_is_the_cause(column, before, after, cause):
    times = halves(10 * MS, 20 * MS)
    assert judged(times, **{column: halves(before, after)})["causes"] == [cause]
    assert judged(times, **{column: [after] * 24})["causes"] == []


def test_every_rank_is_judged_for_itself():
    slow = [row | {"rank": 1} for row in course(halves(1 * MS, 2 * MS))]
    found = judge_course([*slow, *course([1 * MS] * 24)])
    assert [(row["rank"], row["verdict"]) for row in found] == [(0, "steady"), (1, "step")]


OWN = {"run": {"source": "collect"}}


def test_words_say_when_how_much_where_and_why():
    found = judged(halves(10 * MS, 20 * MS), [1 * MS] * 24, neighbour_cores=halves(0.0, 1.0))
    assert drift_sentence(OWN, found) == (
        "the steps become slower at about step 120, 12.0 us after the launch: the median step rises from 10.0 ms to 20.0 ms, "
        "mostly in what follows the fetch; at the same time other programs take more CPU"
    )
    assert drift_sentence(OWN, {**found, "causes": []}).endswith("cause not recorded")
    assert "after the beginning of the recording" in drift_sentence({"run": {"source": "import:kineto"}}, found)
    assert set(DRIFT_CAUSES) == set(drift._CAUSES)
    assert {drift.WAIT, drift.WORK} <= set(PHASES)
