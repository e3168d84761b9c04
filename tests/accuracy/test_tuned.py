"""What `tune` would try first, on the recordings whose changes were measured."""

from __future__ import annotations

import tuned


def test_the_first_candidate_is_usually_the_change_that_was_measured_as_a_gain():
    found = tuned.on_recordings(tuned.recorded())
    assert found["gains"] >= 40
    assert found["gains_first"] >= 0.9 * found["gains"], found
    assert found["losses_first"] <= 2, found  # tried, and then not accepted
    assert found["candidates_usual"] <= 3
    assert found["candidates_most"] <= 8
