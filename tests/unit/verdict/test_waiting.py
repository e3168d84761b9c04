"""What a rank waits for, from stacks that are made by hand."""

import pytest

from pipeprof.record.whereabouts import Call, Frame, Live, Queue, Stuck
from pipeprof.verdict.waiting import judge

S = 1_000_000_000
LOOP = Frame("/home/me/train.py", 30, "<module>", own=True)
SLEEP = Frame("/home/me/train.py", 12, "wait", own=True)
LIBRARY = Frame("/usr/lib/python3.11/threading.py", 300, "wait", own=False)
ASNUMPY = Frame("/usr/lib/python3.11/site-packages/mindspore/common/tensor.py", 9, "asnumpy", own=False)


def hook(call, **facts):
    path = "/usr/lib/python3.11/site-packages/pipeprof/collect/probe/steps.py"
    return Frame(path, 1, "x", False, Call(call, **{"since": 90 * S} | facts))


def live(*stack, rank=0, **known):
    known = {"age_s": 0.5, "said_ns": 100 * S, "still_ns": 5 * S, "stack": stack, "line": "f()"} | known
    return Live(rep=0, rank=rank, pid=10 + rank, **{"alive": True, "ended": False} | known)


def alone(*stack, **known):
    (row,) = judge([live(*stack, **known)])
    return row


COMPILE, NETWORK, FETCH = hook("compile"), hook("call"), hook("fetch", tree=0, rows=3)


@pytest.mark.parametrize(("stack", "code", "for_s"), [
    ([hook("fetch", tree=0, rows=0), LOOP], "first_batch", 10.5),
    ([hook("fetch", tree=0, rows=7), LOOP], "batch", 10.5), ([hook("build"), LOOP], "build", 10.5),
    ([SLEEP, COMPILE, NETWORK, LOOP], "compile", 10.5), ([NETWORK, LOOP], "network", 10.5),
    ([ASNUMPY, LOOP], "mindspore", 5.5), ([LIBRARY, SLEEP, LOOP], "script", 5.5),
    ([SLEEP, hook("callback"), ASNUMPY, LOOP], "script", 5.5),
    ([ASNUMPY, hook("callback"), ASNUMPY, LOOP], "mindspore", 5.5), ([SLEEP, NETWORK, LOOP], "script", 5.5),
])  # fmt: skip
def test_the_innermost_of_known_call_and_own_code_decides(stack, code, for_s):
    row = alone(*stack)
    assert (row["code"], row["for_s"]) == (code, for_s)


@pytest.mark.parametrize(("known", "code"), [
    ({"ended": True, "alive": False}, "ended"), ({"alive": False}, "gone"), ({"age_s": None}, "starting"),
    ({"age_s": 6.0}, "silent"), ({"still_ns": S // 2}, "moving"),
])  # fmt: skip
def test_some_states_need_no_stack(known, code):
    assert alone(COMPILE, LOOP, **known)["code"] == code


@pytest.mark.parametrize(
    ("ranks", "codes", "missing"),
    [
        ([live(NETWORK, LOOP, calls=5), live(SLEEP, LOOP, rank=1, calls=4)], ["collective", "script"], [1]),
        ([live(NETWORK, LOOP, calls=5), live(SLEEP, LOOP, rank=1, calls=6)], ["network", "script"], []),  # it is ahead
        ([live(NETWORK, LOOP, rank=rank, calls=5) for rank in range(3)], ["network"] * 3, []),  # nobody is accused
        ([live(ASNUMPY, LOOP, calls=5), live(rank=1, alive=False, calls=5)], ["collective", "gone"], [1]),
    ],
)
def test_the_rank_that_has_not_come_is_missing(ranks, codes, missing):
    rows = judge(ranks)
    assert [row["code"] for row in rows] == codes
    assert [(one["rank"], one["code"]) for one in rows[0]["missing"]] == [(rank, codes[rank]) for rank in missing]


def test_the_queue_is_of_the_iterator_that_is_waited_for_or_of_the_newest():
    queues = {0: [Queue("BatchOp", 0, 16)], 1: [Queue("BatchOp", 4, 4)], 2: []}
    assert alone(FETCH, LOOP, queues=queues)["queue"] == {"depth": 0, "capacity": 16}
    assert alone(SLEEP, LOOP, queues=queues)["queue"] == {"depth": 4, "capacity": 4}


def test_the_place_is_the_programs_innermost_line_also_of_a_silent_rank_a_missing_one_and_a_stuck_worker():
    row = alone(LIBRARY, SLEEP, LOOP)
    assert (row["site"], row["function"], row["line"]) == ("/home/me/train.py:12", "wait", "f()")
    assert (alone(SLEEP, hook("callback"), LOOP)["in_callback"], alone(SLEEP, LOOP)["in_callback"]) == (True, False)
    row = alone(COMPILE, LOOP, age_s=7.0)
    assert (row["code"], row["call"], row["for_s"], row["site"]) == ("silent", "compile", 7.0, "/home/me/train.py:30")
    (waiting, _) = judge([live(NETWORK, LOOP, calls=5), live(SLEEP, LOOP, rank=1, calls=4)])
    assert waiting["call"] == "network"
    assert waiting["missing"] == [{"rank": 1, "code": "script", "site": "/home/me/train.py:12", "line": "f()"}]
    stuck = Stuck(77, 3 * S, (LIBRARY, SLEEP), "f()", "MapOp", "decode")
    (told,) = alone(FETCH, LOOP, stuck=(stuck,))["stuck"]
    assert (told["pid"], told["for_s"], told["op_type"], told["site"]) == (77, 3.0, "MapOp", "/home/me/train.py:12")
