"""Whether a training stood still before its end, from what each rank was in at that time."""

import pytest

from pipeprof.record.run import Rank, Rep
from pipeprof.record.whereabouts import Call, Frame, Last
from pipeprof.verdict.hang import LEAST_S, TIMES, hang_of

S = 1_000_000_000
LOOP = Frame("/home/me/train.py", 30, "<module>", own=True)
LOCK = Frame("/home/me/train.py", 12, "take", own=True)
NETWORK = Frame("/p/steps.py", 1, "_timed", own=False, call=Call("call", since=60 * S))


def rank(number=0, *, stack=(LOCK, LOOP), ended="lost", **known):
    known = {"age_s": 0.5, "said_ns": 100 * S, "still_ns": 40 * S, "longest_step_ns": S // 10, "calls": 9} | known
    last = Last(stack=stack, line="lock.acquire()", **known)
    return Rank(rank=number, pid=10 + number, host="h", zero_realtime_ns=0, zero_monotonic_ns=0, ended=ended, last=last)


def rep(*ranks, number=0, exit_code=-9):
    return Rep(rep=number, zero_realtime_ns=0, zero_monotonic_ns=0, exit_code=exit_code, ranks=list(ranks))


def test_a_rank_that_stood_still_is_told_with_its_line():
    hang = hang_of([rep(rank())])
    assert (hang.rep, hang.for_s, hang.stepped) == (0, 40.5, True)
    assert (hang.rows[0]["code"], hang.rows[0]["site"]) == ("script", "/home/me/train.py:12")


def test_a_training_that_ended_well_did_not_hang():
    assert hang_of([rep(rank(), exit_code=0)]) is None


@pytest.mark.parametrize("code", [-15, 1, 143, None], ids=["SIGTERM", "failed", "in a shell", "launcher killed too"])
def test_however_it_ended_otherwise_it_did(code):
    assert hang_of([rep(rank(), exit_code=code)]) is not None


def test_only_a_repetition_that_did_not_end_well_counts():
    assert hang_of([rep(rank(), exit_code=0), rep(rank(), number=1)]).rep == 1


@pytest.mark.parametrize(("still_s", "step_s", "hung"), [
    (LEAST_S - 1, 0.1, False), (LEAST_S, 0.1, True), (40, 41 / TIMES, False), (40, 39 / TIMES, True), (40, None, True),
])  # fmt: skip
def test_a_step_that_is_not_much_longer_than_others_is_no_hang(still_s, step_s, hung):
    step_ns = None if step_s is None else int(step_s * S)
    found = hang_of([rep(rank(still_ns=int(still_s * S), age_s=0.0, longest_step_ns=step_ns))])
    assert (found is not None) is hung


def test_without_a_step_before_it_is_said_so():
    assert not hang_of([rep(rank(longest_step_ns=None))]).stepped


def test_the_rank_that_did_not_come_is_the_one_to_look_at():
    waits, late = rank(0, stack=(NETWORK, LOOP), calls=9), rank(1, calls=8, still_ns=30 * S)
    hang = hang_of([rep(waits, late)])
    assert [(row["rank"], row["code"]) for row in hang.rows] == [(1, "script"), (0, "collective")]


def test_a_rank_that_had_ended_long_before_is_gone_and_the_one_that_waits_for_it_is_told():
    waits, dead = rank(0, stack=(NETWORK, LOOP)), rank(1, gone_s=40.0)
    hang = hang_of([rep(waits, dead)])
    assert [(row["rank"], row["code"]) for row in hang.rows] == [(0, "collective"), (1, "gone")]
    assert hang_of([rep(waits, rank(1, gone_s=40.0, ended="normal"))]).rows[1]["code"] == "ended"


def test_a_process_that_said_goodbye_when_it_was_interrupted_had_stood_still_until_then():
    assert hang_of([rep(rank(ended="normal", gone_s=0.3), exit_code=-2)]).rows[0]["code"] == "script"


def test_a_run_of_an_older_pipeprof_says_nothing_of_it():
    old = rank()
    old.last = None
    assert hang_of([rep(old)]) is None
