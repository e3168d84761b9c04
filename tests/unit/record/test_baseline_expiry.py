"""Old jobs leave a baseline."""

import pytest

from pipeprof.record.baseline import DAY_NS, without_old
from pipeprof.record.measures import Measures, Repetition

NOW = 1_800_000_000 * 10**9


def side(*ages):
    """Two repetitions of a job for each age in days, oldest digests first."""
    reps = {}
    for at, age in enumerate(ages):
        for twin in (0, 1):
            reps[2 * at + twin] = Repetition(order=NOW - round(age * DAY_NS) + twin, job=f"job{age}")
    return Measures(
        label="x", reps=reps, values={"step_time_median": {rep: float(rep) for rep in reps}, "rare": {0: 1.0}},
        digests=[str(rep) for rep in reps],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("jobs", "days", "left"),
    [(None, None, [70, 40, 5, 0]), (2, None, [5, 0]), (None, 60, [40, 5, 0]), (3, 10, [5, 0]), (1, 1, [0])],
)
def test_the_latest_jobs_are_kept_with_their_values_and_digests(jobs, days, left):
    found, expired = without_old(side(70, 40, 5, 0), jobs, days)
    assert found.jobs == {f"job{age}" for age in left}
    assert expired == 4 - len(left)
    assert len(found.reps) == len(found.digests) == len(found.values["step_time_median"]) == 2 * len(left)
    assert found.digests == [str(rep) for rep in sorted(found.reps)]
    assert ("rare" in found.values) == (70 in left)


def test_days_say_nothing_where_no_time_is_known_and_nothing_is_left_of_nothing():
    places = Measures(label="x", reps={rep: Repetition(order=rep, job=f"j{rep}") for rep in range(3)})
    assert without_old(places, None, 1) == (places, 0)
    empty = Measures(label="x")
    assert without_old(empty, 1, 1) == (empty, 0)
