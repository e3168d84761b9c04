"""A training that no dataset of MindSpore's feeds: its wait is found in its own loop, or said not to be known."""

from itertools import pairwise

import pytest

from pipeprof.report.run_verdict import verdict_of

pytestmark = pytest.mark.mindspore
STEPS = "60"


@pytest.mark.parametrize("kind", ["generator", "own", "next"])
def test_the_wait_for_an_iterable_is_the_cause(recorded, kind):
    run = recorded("iterables.py", kind, STEPS).run
    verdict = verdict_of(run).verdict
    (waits,) = (cause for cause in verdict.causes if cause.code == "input_bound")
    assert waits.stage.op_type == "Iterable"
    assert waits.stage.name.rpartition(".")[2] in ("batches", "__next__")
    assert verdict.lead == waits or verdict.lead.confidence == "low"  # beside other programs its own steps grow, too


def test_a_function_that_makes_the_batches_is_named_and_not_what_the_host_launches(recorded):
    lead = verdict_of(recorded("iterables.py", "function", STEPS).run).verdict.lead
    assert (lead.code, lead.stage.name, lead.advice.gain.origin) == ("python_call", "make", "bound")


def test_the_steps_are_those_of_the_loop(recorded):
    steps = recorded("iterables.py", "generator", STEPS).training()
    assert len(steps) == int(STEPS)
    assert all(one["end_ns"] <= other["start_ns"] for one, other in pairwise(steps))
    assert sum(row["fetch_wait_ns"] is not None for row in steps) == int(STEPS) - 1
