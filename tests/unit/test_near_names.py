"""Hints for misspelt names."""

import pytest

from pipeprof.errors import MOST_NAMES, did_you_mean, near_names

VERBS = ("report", "collect", "compare", "sql")


@pytest.mark.parametrize(
    ("wrong", "near"), [("reprot", ["report"]), ("COMPARE", ["compare"]), ("colect", ["collect"]), ("xyzzy", [])]
)
def test_a_slip_of_the_finger_is_near_and_a_stranger_is_not(wrong, near):
    assert near_names(wrong, VERBS) == near


def test_the_hint_names_what_is_near():
    assert did_you_mean("reprot", VERBS) == "did you mean `report`?"
    assert did_you_mean("step", ["steps", "stepp"]) in (
        "did you mean `steps` or `stepp`?", "did you mean `stepp` or `steps`?",
    )  # fmt: skip


def test_without_a_near_name_all_are_listed_unless_they_are_many():
    assert did_you_mean("xyzzy", VERBS) == "choose from `report`, `collect`, `compare`, `sql`"
    many = [f"{letter}{letter}" for letter in "abcdefghijklmnop"]
    assert len(many) > MOST_NAMES
    assert did_you_mean("xyzzy", many, "see the list") == "see the list"
    assert did_you_mean("xyzzy", [], "see the list") == "see the list"
