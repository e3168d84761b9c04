"""Looks at where a training waits become fetches of its steps: shares of looks, taken of the time between updates."""

import pytest

from pipeprof.read.spool.blocks import LEAST, TOGETHER, called_first, with_sampled_fetches
from pipeprof.read.spool.marks import Kind, Mark

STEP, WAIT = 1000, 600


def marks(steps, units=1, fetch=None):
    """Steps of 1000: 600 until the network is called, 300 of forward and backward, an update of each unit at the end."""
    made = []
    for step in range(steps):
        begin = step * STEP
        if fetch is not None:
            made.append(Mark(Kind.FETCH, 0, fetch, step, begin, begin + 10))
        made.append(Mark(Kind.CALL, 3, 0, 0, begin + WAIT, begin + WAIT))
        made += [
            Mark(Kind.UPDATE, 0, unit, 0, begin + 900 + 10 * unit, begin + 905 + 10 * unit) for unit in range(units)
        ]
    return made


def looks(steps, every=100, until=WAIT, number=5):
    """One every so often, which finds the training waiting until `until` of each step."""
    return [(at, int((at - 5) % STEP < until), number) for at in range(50, steps * STEP, every)]


def fetches(found):
    return [mark for mark in found if mark.kind == Kind.FETCH]


def test_each_step_waits_the_share_of_its_time_before_the_call_that_the_looks_found():
    found = with_sampled_fetches(marks(40), looks(40))
    assert len(fetches(found)) == 39  # nothing is known to have come before the first
    assert {mark.subject for mark in found if mark.kind == Kind.FETCH} == {5}
    waited = [mark.end - mark.begin for mark in fetches(found)]
    assert sum(waited) / len(waited) == pytest.approx(WAIT, abs=100)
    assert all(mark.begin % STEP == 905 for mark in fetches(found))
    assert [mark.end for mark in found] == sorted(mark.end for mark in found)


def test_few_looks_say_nothing():
    few = [(at, 1, 5) for at in range(LEAST - 1)]
    assert with_sampled_fetches(marks(40), few) == marks(40)


def test_a_training_that_was_never_seen_to_wait_has_no_fetch():
    assert fetches(with_sampled_fetches(marks(40), looks(40, until=0))) == []


def test_a_step_whose_batch_came_from_a_loader_with_hooks_is_left_as_it_is():
    assert fetches(with_sampled_fetches(marks(40, fetch=2), looks(40))) == fetches(marks(40, fetch=2))


def test_two_updates_of_one_batch_have_one_fetch():
    found = fetches(with_sampled_fetches(marks(40, units=2), looks(40, until=500)))
    assert len(found) == 39
    assert all(mark.begin % STEP == 915 for mark in found)


def test_a_training_that_changes_waits_otherwise_before_and_after():
    steps = 6 * TOGETHER // 10
    slow, fast = looks(steps // 2), [(at, int(found and at % 200 < 100), number) for at, found, number in looks(steps)]
    found = fetches(with_sampled_fetches(marks(steps), [*slow, *fast[len(slow) :]]))
    assert sum(mark.end - mark.begin for mark in found[: steps // 2 - 1]) > 1.5 * sum(
        mark.end - mark.begin for mark in found[steps // 2 :]
    )


def test_the_first_call_is_of_the_network_of_a_backward_pass_or_of_an_optimizer():
    assert called_first(marks(1)).tolist() == [600, 900]
    backward, forward = (Mark(Kind.SECTION, flag, 0, 0, at, at + 100) for flag, at in ((2, 700), (1, 550)))
    assert called_first([*marks(1), backward, forward]).tolist() == [600, 700, 900]
