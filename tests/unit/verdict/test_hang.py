"""Whether a training stood still before its end, from what each rank was in; whether a limit of CPU time ended it."""

import signal

import pytest

from pipeprof.record.run import Rank, Rep
from pipeprof.record.whereabouts import Call, Frame, Last
from pipeprof.verdict.hang import LEAST_S, NEAR_LIMIT, TIMES, hang_of, ran_out_of_cpu

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
    assert not hang_of([rep(rank(longest_step_ns=None))]).stepped


@pytest.mark.parametrize(("code", "hung"), [
    (0, False), (-15, True), (1, True), (143, True), (None, True),
], ids=["well", "SIGTERM", "failed", "in a shell", "launcher killed too"])  # fmt: skip
def test_only_a_training_that_did_not_end_well_hung(code, hung):
    assert (hang_of([rep(rank(), exit_code=code)]) is not None) is hung


@pytest.mark.parametrize(("still_s", "step_s", "hung"), [
    (LEAST_S - 1, 0.1, False), (LEAST_S, 0.1, True), (40, 41 / TIMES, False), (40, 39 / TIMES, True), (40, None, True),
])  # fmt: skip
def test_a_step_that_is_not_much_longer_than_others_is_no_hang(still_s, step_s, hung):
    step_ns = None if step_s is None else int(step_s * S)
    found = hang_of([rep(rank(still_ns=int(still_s * S), age_s=0.0, longest_step_ns=step_ns))])
    assert (found is not None) is hung


@pytest.mark.parametrize(
    ("ranks", "exit_code", "told"),
    [
        # the rank that did not come is the one to look at
        ([rank(0, stack=(NETWORK, LOOP)), rank(1, calls=8, still_ns=30 * S)], -9, [(1, "script"), (0, "collective")]),
        # one that had ended long before is gone, and the one that waits for it is told
        ([rank(0, stack=(NETWORK, LOOP)), rank(1, gone_s=40.0)], -9, [(0, "collective"), (1, "gone")]),
        ([rank(0, stack=(NETWORK, LOOP)), rank(1, gone_s=40.0, ended="normal")], -9, [(0, "collective"), (1, "ended")]),
        # a process that said goodbye when it was interrupted had stood still until then
        ([rank(ended="normal", gone_s=0.3)], -2, [(0, "script")]),
    ],
)
def test_the_rank_to_look_at_comes_first(ranks, exit_code, told):
    assert [(row["rank"], row["code"]) for row in hang_of([rep(*ranks, exit_code=exit_code)]).rows] == told


def test_only_a_repetition_that_did_not_end_well_counts_and_a_run_of_an_older_pipeprof_says_nothing():
    assert hang_of([rep(rank(), exit_code=0), rep(rank(), number=1)]).rep == 1
    old = rank()
    old.last = None
    assert hang_of([rep(old)]) is None


@pytest.mark.parametrize(("code", "used", "ran_out"), [
    (signal.SIGXCPU, [], True), (signal.SIGKILL, [(1.0, 100), (NEAR_LIMIT * 2, 2)], True),
    (signal.SIGKILL, [(NEAR_LIMIT * 2 - 0.01, 2)], False), (signal.SIGKILL, [], False),
    (signal.SIGSEGV, [(2.0, 2)], False),
])  # fmt: skip
def test_the_signal_of_the_limit_says_it_and_a_kill_where_a_process_had_used_it_up(code, used, ran_out):
    assert ran_out_of_cpu(-code, used) is ran_out_of_cpu(128 + code, used) is ran_out


@pytest.mark.parametrize("code", [None, 0, 1])
def test_no_other_end_is_that_of_the_limit(code):
    assert not ran_out_of_cpu(code, [(2.0, 2)])
