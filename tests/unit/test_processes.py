"""Processes of this machine that share work: what a part raises reaches whoever asked, and nobody waits for ever."""

import os

import pytest

from pipeprof import processes
from pipeprof.errors import RunError


class OddError(Exception):
    """Can be pickled, and not made again from what was pickled."""

    def __init__(self, what, where):
        super().__init__(f"{what} in {where}")


def doubled(number):
    return 2 * number


def odd(_number):
    raise OddError("a hole", "the floor")


def refused(number):
    raise RunError(f"part {number} is damaged", "read it again")


def local(_number):
    class LocalError(Exception):
        pass

    raise LocalError("known nowhere else")


class Hollow:
    """An answer that cannot be made again."""

    def __reduce__(self):
        return odd, (None,)


def hollow(_number):
    return Hollow()


def ended(_number):
    os._exit(7)


def test_each_part_is_answered_once_with_its_number():
    assert sorted(processes.each(doubled, [3, 4, 5, 6], 2)) == [(0, 6), (1, 8), (2, 10), (3, 12)]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (odd, RuntimeError, "OddError: a hole in the floor"),
        (local, RuntimeError, "LocalError: known nowhere else"),
        (hollow, OddError, "a hole in the floor"),
        (refused, RunError, "part 1 is damaged"),
        (ended, processes.ProcessEndedError, r"was ended \(status 7\)"),
    ],
)
def test_what_a_part_raises_is_raised_where_it_was_asked_for(function, kind, words):
    with pytest.raises(kind, match=words):
        list(processes.each(function, [1, 1], 2))
