"""Whether the steps have two lengths: both frequent, far apart, and hardly anything between them."""

import math

import msgspec
import pytest
from typed_rows import of_dicts

from pipeprof.verdict import modes as judge
from pipeprof.verdict.modes import APART, LEAST_SHARE, LEAST_STEPS, of_one_mode

found = of_dicts(judge.two_modes)


def two_modes(rows):
    return msgspec.to_builtins(found(rows))


def row(ms, steps, **more):
    times = {"steps": steps, "median_ns": ms * 1e6, "total_ns": steps * ms * 1e6, "wait_ns": 0, "place": 0.5}
    cores = {"own_cores": 1.0, "delay_cores": 0.0, "neighbour_cores": 0.0}
    return {"rep": 0, "rank": 0, "input_bytes": 100.0} | times | cores | more


def counts(*rows):
    modes = two_modes(rows)
    return None if modes is None else (modes["short"]["steps"], modes["long"]["steps"])


def test_two_lengths_and_their_shares():
    modes = two_modes([row(95, 20), row(100, 30), row(1850, 30), row(1900, 20)])
    assert [modes[side]["share"] for side in ("short", "long")] == [0.5, 0.5]
    assert [modes[side]["median_ns"] for side in ("short", "long")] == [100e6, 1850e6]


def test_one_length_with_a_spread_and_with_outliers_is_one():
    bell = [row(100 * math.exp(0.05 * at), round(200 * math.exp(-at * at / 50))) for at in range(-15, 16)]
    assert two_modes([one for one in bell if one["steps"]]) is None
    rare = round(1000 * LEAST_SHARE)
    assert counts(row(100, 1000 - rare), row(900, rare)) == (1000 - rare, rare)
    assert counts(row(100, 1001 - rare), row(900, rare - 1)) is None


def test_how_far_apart_and_how_many_steps():
    assert counts(row(100, 50), row(100 * APART * 1.01, 50)) == (50, 50)
    assert counts(row(100, 50), row(100 * APART * 0.99, 50)) is None
    assert counts(row(100, LEAST_STEPS // 2), row(900, LEAST_STEPS // 2 - 1)) is None


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"wait_ns": 50 * 500_000_000}, "data"),
        ({"own_cores": 0.5}, "fewer_cores"),
        ({"own_cores": 1.9}, "more_cores"),
        ({"neighbour_cores": 0.9}, "neighbour"),
        ({"delay_cores": 0.9}, "delay"),
        ({"place": 1.0}, "later"),
        ({"own_cores": None}, None),
        ({"input_bytes": 126.0}, "input"),
        ({"input_bytes": 124.0}, None),
        ({"input_bytes": None}, None),
    ],
)
def test_what_the_long_steps_have(more, code):
    assert two_modes([row(100, 50), row(900, 50, **more)])["differs"] == [code] * (code is not None)


def test_steps_that_were_recorded_say_nothing_of_what_recording_adds():
    network = {"limit": "host_gap", "doubts": [{"code": "inflated"}], "evidence": [{"code": "inflation"}],
               "confidence": "medium", "inflation": 13.0}  # fmt: skip
    assert of_one_mode(network, None) == network
    told = of_one_mode(network, found([row(100, 50), row(900, 50)]))
    assert (told["inflation"], told["confidence"], told["evidence"]) == (None, "low", [])
    assert [doubt["code"] for doubt in told["doubts"]] == ["two_lengths"]
