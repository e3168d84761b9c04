"""The verdict on ranks does not depend on their numbers, on what they have in common, or on the unit of time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_rows import rows_of, stragglers

tables = st.tuples(
    st.integers(1, 40), st.integers(2, 12), st.integers(0, 2**32 - 1), st.floats(0, 40), st.floats(0.01, 20)
)


def made(steps, ranks, seed, size, noise):
    times = 60 + np.random.default_rng(seed).normal(0, noise, (steps, ranks))
    times[:, seed % ranks] += size
    return times


def named(rows):
    return {(item["rank"], item["kind"], item["confidence"]) for item in stragglers(rows)["found"]}


@settings(deadline=None)
@given(tables)
def test_other_numbers_of_ranks_name_the_same_rank(how):
    times = made(*how)
    order = np.random.default_rng(how[2]).permutation(times.shape[1])
    there = {(int(order[rank]), kind, confidence) for rank, kind, confidence in named(rows_of(times[:, order]))}
    assert there == named(rows_of(times))


@settings(deadline=None)
@given(tables, st.floats(0.1, 1000))
def test_another_unit_names_the_same_ranks(how, factor):
    times = made(*how)
    assert named(rows_of(times * factor, step_ns=100 * factor)) == named(rows_of(times))


@settings(deadline=None)
@given(tables)
def test_the_order_of_rows_does_not_matter(how):
    rows = rows_of(made(*how))
    assert named(rows[::-1]) == named(rows)


@settings(deadline=None)
@given(tables)
def test_what_is_named_holds_together(how):
    found = stragglers(rows_of(made(*how)))
    assert (found["verdict"] == "straggler") == bool(found["found"])
    for item in found["found"]:
        assert item["excess_ns"] > 0
        assert item["share"] > 0.02 - 1e-9
        assert item["confidence"] in ("high", "medium", "low")
        assert item["evidence"]
        if item["kind"] == "steady":
            assert item["excess_ns"] > item["needed_ns"] >= 0.02 * item["step_ns"]
