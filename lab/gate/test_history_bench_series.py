"""The series that change points are measured on, and how finds are scored: a wrong score would flatter every program."""

from __future__ import annotations

import itertools

import numpy as np
from history_series import NEAR, POINTS, Event, Score, Series, planted, pools, quiet

from pipeprof.verdict.gate.changes import Point, change_points

STEP, DRIFT = Event("step", 50, 50, 1.1), Event("drift", 80, 100, 1.1)


def scored(finds, *events):
    score = Score()
    score.add(Series("made", np.ones((POINTS, 5)), list(events)), finds)
    return score.right, score.false, score.missed


def test_a_step_is_found_within_the_tolerance_and_once():
    assert scored([50 + NEAR], STEP) == (1, 0, 0)
    assert scored([50 + NEAR + 1], STEP) == (0, 1, 1)
    assert scored([49, 52], STEP) == (1, 1, 0)


def test_any_find_within_a_drift_counts_for_it_and_more_count_neither_way():
    assert scored([81, 95], DRIFT) == (1, 0, 0)
    assert scored([70], DRIFT) == (0, 1, 1)


def test_finds_in_identical_code_are_false():
    score = Score()
    score.add(Series("made", np.ones((POINTS, 5))), [10, 60])
    assert score.false_per_1000 == 1000 * 2 / POINTS


def test_planted_events_move_the_level_and_keep_apart():
    draw = pools()["quiet"]
    for seed in range(20):
        series = planted("quiet", draw, seed)
        logs = np.log(series.medians)
        for event in series.events:
            assert 8 <= event.first <= event.last < POINTS - 8
            moved = np.median(logs[event.last + 1 : event.last + 7]) - np.median(logs[event.first - 6 : event.first])
            assert abs(moved - np.log(event.ratio)) < 0.03
        ends = [(event.first, event.last) for event in series.events]
        assert all(last + 8 <= first for (_, last), (first, _) in itertools.pairwise(ends))


def test_series_are_the_same_for_the_same_seed():
    draw = pools()["samejob"]
    assert np.array_equal(quiet("samejob", draw, 7).repetitions, quiet("samejob", draw, 7).repetitions)


def test_steps_are_found_where_identical_code_has_next_to_none():
    draw, steps, none = pools()["samejob"], Score(), Score()
    for seed in range(40):
        for score, series in ((steps, planted("samejob", draw, seed)), (none, quiet("samejob", draw, 900 + seed))):
            score.add(series, [change.index for change in change_points([Point(float(v)) for v in series.medians])])
    assert steps.f1 >= 0.9
    assert none.false_per_1000 <= 1
