"""Which change `whatif` tries where none is asked for."""

import pytest
from cache_points import cache_point

from pipeprof.errors import UsageError
from pipeprof.experiment import whatif
from pipeprof.verdict.capacity import SOURCE, Change, Loop, Stage
from pipeprof.verdict.options import options
from pipeprof.verdict.storage import CACHE_BYTES

FACTS = {"op_type": "MapOp", "name": "f", "workers": 1, "capacity": 16, "is_python": True}
OP = FACTS | {"op_id": 1, "uses_processes": False}


@pytest.fixture
def chosen(monkeypatch):
    """`chosen(loop, caches, ...)`: what is tried of `f`."""
    monkeypatch.setattr(whatif.os, "cpu_count", lambda: 2)
    return lambda loop, kept=(), **wish: whatif._chosen(whatif.Wish("f", **wish), OP, loop, list(kept))


def loop(kind, rate=50.0):
    slow = Stage(1, rate=rate, kind=kind, utilisation=1.0, cores=1.0 if kind == "gil" else 0.0, **FACTS)
    stages = (slow, Stage(2, "GeneratorOp", rate=900.0))
    return Loop(stages, consumer=200.0, rate=min(rate, 200.0), cpu_count=2, free_cores=2.0)


@pytest.mark.parametrize("kind", ["wait", "gil"])
def test_without_a_setting_it_is_the_first_of_the_list_that_reports_and_tunings_choose_from(kind, chosen):
    first = next(one.changes[0] for one in options(loop(kind), 1) if not one.is_unknown and one.may_pay)
    assert chosen(loop(kind)).changes == (first,)
    assert bool(first.processes) == (kind == "gil")


def points(ratio, **more):
    return [cache_point(op_id=2, op_type=SOURCE, ratio=1.0), cache_point(op_id=1, op_type="MapOp", ratio=ratio, **more)]


@pytest.mark.parametrize("ratio", [1.1, 3.9])
def test_a_cache_is_of_the_same_list(ratio, chosen):
    assert (chosen(loop("gil"), points(ratio)).changes[0].cache is not None) == (ratio > 2)
    asked = chosen(loop("gil"), points(ratio), cache=True)
    assert (asked.changes, asked.prediction.ratio) == ((Change(1, cache=CACHE_BYTES),), ratio)


@pytest.mark.parametrize(
    ("wish", "now", "kept", "why"),
    [
        ({}, loop("wait", rate=900.0), [], "no setting is predicted to be better for `f`"),
        ({"cache": True, "workers": 2}, loop("gil"), points(3.0), "--cache is tried alone"),
        ({"cache": True}, loop("gil"), [], "no cache behind `f`"),
        ({"cache": True}, loop("gil"), points(3.0, changes="random"), "no cache behind `f`"),
    ],
)
def test_what_would_not_help_or_cannot_be_tried_is_refused(wish, now, kept, why, chosen):
    with pytest.raises(UsageError, match=why):
        chosen(now, kept, **wish)
