"""Queries that look at each rank alone, as their header says, give the same of parts of the ranks as of all at once."""

from contextlib import ExitStack

import pytest
from every import every
from test_shuffled import nasty_tables, params_of

from pipeprof.query import catalog
from pipeprof.query.answers import Answers
from pipeprof.query.engine import Engine
from pipeprof.query.part import Part

SEEDS = (20260101, 1, 2, 3)
PARTS = (Part(ranks=(0, 0)), Part(ranks=(1, 2)))


def asked(engine, query):
    answers = Answers(filling=True)
    answers.note(query.name, params_of(query), engine.rows(query.name, **params_of(query)))
    return answers


@pytest.fixture(scope="module")
def engines(make_shared_run):
    """For each run an engine over all of it, and one over each part. As for a report, each is asked all queries."""
    with ExitStack() as opened:
        yield [
            [opened.enter_context(Engine.open(run, lazily=True, part=part)) for part in (None, *PARTS)]
            for run in [make_shared_run(nasty_tables(seed)) for seed in SEEDS]
        ]


@every([query for query in catalog.all_queries() if query.apart], lambda query: query.name)
def test_ranks_asked_one_after_the_other_give_what_all_of_them_do(query, engines):
    for whole, *parts in engines:
        joined = Answers()
        joined.join([asked(part, query) for part in parts])
        expected = asked(whole, query).find(query.name, params_of(query))
        assert joined.find(query.name, params_of(query)) == expected
