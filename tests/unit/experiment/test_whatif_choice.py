"""Which change `whatif` tries where none is asked for."""

import pytest
from cache_points import cache_point

from pipeprof.errors import UsageError
from pipeprof.experiment import whatif
from pipeprof.verdict.capacity import SOURCE, Change, Loop, Stage
from pipeprof.verdict.options import options
from pipeprof.verdict.storage import CACHE_BYTES

OP = {
    "op_id": 1,
    "op_type": "MapOp",
    "name": "f",
    "workers": 1,
    "capacity": 16,
    "uses_processes": False,
    "is_python": True,
}


def loop(kind, rate=50.0):
    slow = Stage(
        1,
        "MapOp",
        name="f",
        workers=1,
        capacity=16,
        rate=rate,
        kind=kind,
        is_python=True,
        utilisation=1.0,
        cores=1.0 if kind == "gil" else 0.0,
    )
    return Loop(
        (slow, Stage(2, "GeneratorOp", rate=900.0)), consumer=200.0, rate=min(rate, 200.0), cpu_count=2, free_cores=2.0
    )


@pytest.mark.parametrize("kind", ["wait", "gil"])
def test_without_a_setting_it_is_the_first_of_the_list_that_reports_and_tunings_choose_from(kind, monkeypatch):
    monkeypatch.setattr(whatif.os, "cpu_count", lambda: 2)
    first = next(one.changes[0] for one in options(loop(kind), 1) if not one.is_unknown and one.may_pay)
    assert whatif._chosen(whatif.Wish("f"), OP, loop(kind), []).changes == (first,)
    assert bool(first.processes) == (kind == "gil")


def test_where_nothing_is_predicted_to_help_that_is_said():
    with pytest.raises(UsageError, match="no setting is predicted to be better for `f`"):
        whatif._chosen(whatif.Wish("f"), OP, loop("wait", rate=900.0), [])


def points(ratio, **more):
    return [cache_point(op_id=2, op_type=SOURCE, ratio=1.0), cache_point(op_id=1, op_type="MapOp", ratio=ratio, **more)]


@pytest.mark.parametrize("ratio", [1.1, 3.9])
def test_a_cache_is_of_the_same_list(ratio, monkeypatch):
    monkeypatch.setattr(whatif.os, "cpu_count", lambda: 2)
    best = whatif._chosen(whatif.Wish("f"), OP, loop("gil"), points(ratio))
    assert (best.changes[0].cache is not None) == (ratio > 2)
    asked = whatif._chosen(whatif.Wish("f", cache=True), OP, loop("gil"), points(ratio))
    assert asked.changes == (Change(1, cache=CACHE_BYTES),)
    assert asked.prediction.ratio == ratio


@pytest.mark.parametrize(
    ("wish", "kept", "why"),
    [
        (whatif.Wish("f", cache=True, workers=2), points(3.0), "--cache is tried alone"),
        (whatif.Wish("f", cache=True), [], "no cache behind `f`"),
        (whatif.Wish("f", cache=True), points(3.0, changes="random"), "no cache behind `f`"),
    ],
)
def test_a_cache_that_cannot_be_tried_is_refused(wish, kept, why):
    with pytest.raises(UsageError, match=why):
        whatif._chosen(wish, OP, loop("gil"), kept)
