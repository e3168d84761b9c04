"""What a rank waits for, from stacks that are made by hand."""

import pytest
from msgspec.structs import replace

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


@pytest.mark.parametrize(
    ("stack", "code", "for_s"),
    [
        ([hook("fetch", tree=0, rows=0), LOOP], "first_batch", 10.5),
        ([hook("fetch", tree=0, rows=7), LOOP], "batch", 10.5),
        ([hook("build"), LOOP], "build", 10.5),
        ([SLEEP, hook("compile"), hook("call"), LOOP], "compile", 10.5),
        ([hook("call"), LOOP], "network", 10.5),
        ([ASNUMPY, LOOP], "mindspore", 5.5),
        ([LIBRARY, SLEEP, LOOP], "script", 5.5),
        ([SLEEP, hook("callback"), ASNUMPY, LOOP], "script", 5.5),
        ([ASNUMPY, hook("callback"), ASNUMPY, LOOP], "mindspore", 5.5),
        ([SLEEP, hook("call"), LOOP], "script", 5.5),
    ],
)
def test_the_innermost_of_known_call_and_own_code_decides(stack, code, for_s):
    (row,) = judge([live(*stack)])
    assert (row["code"], row["for_s"]) == (code, for_s)


def test_the_programs_innermost_line_is_the_place():
    (row,) = judge([live(LIBRARY, SLEEP, LOOP)])
    assert (row["site"], row["function"], row["line"]) == ("/home/me/train.py:12", "wait", "f()")


def test_a_callback_is_told_from_the_loop():
    inside, outside = judge([live(SLEEP, hook("callback"), LOOP)])[0], judge([live(SLEEP, LOOP)])[0]
    assert (inside["in_callback"], outside["in_callback"]) == (True, False)


@pytest.mark.parametrize(
    ("known", "code"),
    [
        ({"ended": True, "alive": False}, "ended"),
        ({"alive": False}, "gone"),
        ({"age_s": None}, "starting"),
        ({"age_s": 6.0}, "silent"),
        ({"still_ns": S // 2}, "moving"),
    ],
)
def test_some_states_need_no_stack(known, code):
    (row,) = judge([live(hook("compile"), LOOP, **known)])
    assert row["code"] == code


def test_of_a_process_that_runs_no_python_the_last_place_is_said():
    (row,) = judge([live(hook("compile"), LOOP, age_s=7.0)])
    assert (row["code"], row["call"], row["for_s"], row["site"]) == ("silent", "compile", 7.0, "/home/me/train.py:30")


def test_the_rank_that_has_not_come_is_missing():
    waiting, late = judge([live(hook("call"), LOOP, calls=5), live(SLEEP, LOOP, rank=1, calls=4)])
    assert (waiting["code"], waiting["call"], late["code"]) == ("collective", "network", "script")
    assert waiting["missing"] == [{"rank": 1, "code": "script", "site": "/home/me/train.py:12", "line": "f()"}]


def test_a_rank_that_is_ahead_is_not_waited_for():
    (row, _) = judge([live(hook("call"), LOOP, calls=5), live(SLEEP, LOOP, rank=1, calls=6)])
    assert (row["code"], row["missing"]) == ("network", [])


def test_ranks_that_are_all_in_the_network_accuse_nobody():
    rows = judge([live(hook("call"), LOOP, rank=rank, calls=5) for rank in range(3)])
    assert {row["code"] for row in rows} == {"network"}


def test_a_rank_that_is_gone_has_not_come():
    (row, _) = judge([live(ASNUMPY, LOOP, calls=5), live(rank=1, alive=False, calls=5)])
    assert (row["code"], [one["code"] for one in row["missing"]]) == ("collective", ["gone"])


def test_the_queue_is_of_the_iterator_that_is_waited_for_or_of_the_newest():
    queues = {0: [Queue("BatchOp", 0, 16)], 1: [Queue("BatchOp", 4, 4)], 2: []}
    (row,) = judge([live(hook("fetch", tree=0, rows=3), LOOP, queues=queues)])
    assert row["queue"] == {"depth": 0, "capacity": 16}
    (row,) = judge([live(SLEEP, LOOP, queues=queues)])
    assert row["queue"] == {"depth": 4, "capacity": 4}


def test_a_stuck_worker_is_told_with_its_place():
    stuck = Stuck(77, 3 * S, (LIBRARY, SLEEP), "f()", "MapOp", "decode")
    (row,) = judge([replace(live(hook("fetch", tree=0, rows=3), LOOP), stuck=(stuck,))])
    (told,) = row["stuck"]
    assert (told["pid"], told["for_s"], told["op_type"], told["site"]) == (77, 3.0, "MapOp", "/home/me/train.py:12")
