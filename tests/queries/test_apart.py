"""Queries that look at each rank alone, as their header says, give the same of parts of the ranks as of all at once."""

import pytest
from test_shuffled import nasty_tables, params_of

from pipeprof.query import catalog
from pipeprof.query.answers import Answers
from pipeprof.query.engine import Engine
from pipeprof.query.part import Part

SEEDS = (20260101, 1, 2, 3)
PARTS = (Part(ranks=(0, 0)), Part(ranks=(1, 2)))


def asked(run, query, part=None):
    answers = Answers(filling=True)
    with Engine.open(run, lazily=True, part=part) as engine:
        answers.note(query.name, params_of(query), engine.rows(query.name, **params_of(query)))
    return answers


@pytest.fixture(scope="module")
def runs(make_shared_run):
    return [make_shared_run(nasty_tables(seed)) for seed in SEEDS]


@pytest.mark.parametrize(
    "query", [query for query in catalog.all_queries() if query.apart], ids=lambda query: query.name
)
def test_ranks_asked_one_after_the_other_give_what_all_of_them_do(runs, query):
    for run in runs:
        joined = Answers()
        joined.join([asked(run, query, part) for part in PARTS])
        expected = asked(run, query).find(query.name, params_of(query))
        assert joined.find(query.name, params_of(query)) == expected
