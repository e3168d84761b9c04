"""A lint as one test: it names each offender, and has the other arguments of its check as fixtures."""

import inspect

import pytest
from every import every


def check(number, tmp_path):
    assert number < 10, tmp_path


def test_each_offender_is_named_with_what_is_wrong():
    with pytest.raises(AssertionError) as caught:
        every([3, 12, 4, 20], "number {}".format)(check)(tmp_path="here")
    assert "2 of 4" in str(caught.value)
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()[1:] if line.startswith("number")] == [
        "number 12",
        "number 20",
    ]


def test_it_passes_without_offenders_and_asks_for_the_fixtures_alone():
    lint = every([3, 4])(check)
    lint(tmp_path="here")
    assert list(inspect.signature(lint).parameters) == ["tmp_path"]


def test_a_lint_over_nothing_is_an_error():
    with pytest.raises(AssertionError):
        every([])
