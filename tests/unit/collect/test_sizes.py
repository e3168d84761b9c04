"""Bytes of the user's values: an answer or none, never an error, and never a long look."""

import numpy as np
import pytest

from pipeprof.collect.probe import sizes


class Closed:
    @property
    def nbytes(self):
        raise RuntimeError("the file is closed")


class Unsliced(list):
    def __getitem__(self, _):
        raise IndexError("not a plain list")


def itself():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros((3, 4), np.float32), 48),
        ((np.zeros(2, np.int64), b"abc", "h\u00e4"), 16 + 3 + 3),
        ({"image": np.zeros(5, np.uint8), "label": 7}, 5 + 8),
        ([1.0] * 640, 8 * 640),  # the first 64 stand for the others
        ([], 0),
        (object(), None),
        (Closed(), None),
        ([np.zeros(2), Closed()], None),
        (itself(), None),
        (Unsliced([1, 2]), None),
        ([[[0] * 64] * 64] * 64, None),  # it would take 80 ms to look at all of these
    ],
)
def test_bytes_of_a_value(value, expected):
    assert sizes.of(value) == expected


def test_bytes_of_arguments():
    assert sizes.together((np.zeros(3, np.uint8), 1)) == 11
    assert sizes.together((Closed(),)) is None
