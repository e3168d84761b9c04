"""How the share of waiting is said."""

import pytest

from pipeprof.report.words.training import data_wait
from pipeprof.units import format_ratio


@pytest.mark.parametrize(
    ("steady", "whole", "said"),
    [
        (0.32, 0.38, "32 % of the time, 38 % with the first quarter of each epoch"),
        (0.30, 0.26, "about 30 % of the time"),
        (0.32, 0.32, "32 % of the time"),
        (0.32, None, "32 % of the time"),
        (0.82, 0.829, "about 82 % of the time"),
        (0.105, 0.098, "about 10 % of the time"),
        (0.0, 0.001, "less than 1 % of the time"),
        (0.009, None, "less than 1 % of the time"),
        (0.009, 0.012, "less than 2 % of the time"),
        (0.025, 0.028, "less than 3 % of the time"),
        (0.043, 0.0499, "less than 5 % of the time"),
        (0.043, 0.05, "about 4.3 % of the time"),
        (0.021, 0.021, "2.1 % of the time"),
        (0.0, 0.03, "less than 4 % of the time"),
    ],
)
def test_shares_of_waiting(steady, whole, said):
    assert data_wait({"data_wait_share": steady, "data_wait_share_all_steps": whole}) == said


def test_tables_have_their_digits():
    little = {"data_wait_share": 0.0251, "data_wait_share_all_steps": 0.0284}
    assert data_wait(little, format_ratio) == "about 2.5 % of the time"
    found = {"data_wait_share": 0.8214, "data_wait_share_all_steps": 0.8291}
    assert data_wait(found, format_ratio) == "about 82.1 % of the time"
