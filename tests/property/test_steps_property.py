"""Steps of hand-written loops, however rows, calls and updates are mixed."""

from itertools import pairwise
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from pipeprof.read.spool import loops as loops_room
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.steps import find_steps

EVENT = st.tuples(st.sampled_from(["row", "stop", "update", "call", "compile"]), st.integers(0, 30), st.integers(1, 30))
KINDS = {"row": Kind.FETCH, "stop": Kind.FETCH, "update": Kind.UPDATE, "call": Kind.CALL, "compile": Kind.COMPILE}


def marks(events):
    """One thread's marks: each begins a gap after the one before has ended."""
    now, found = 1, []
    for kind, gap, length in events:
        begin = now + gap
        now = begin + length
        found.append(Mark(KINDS[kind], int(kind == "stop"), 0, 0, begin, now))
    return found


loops = st.lists(EVENT, max_size=60).map(marks)


@given(loops)
def test_steps_are_in_order_and_never_overlap(recorded):
    steps = find_steps(recorded, [], {}).steps
    assert all(step.start <= step.end for step in steps)
    assert all(one.end <= other.start for one, other in pairwise(steps))


@given(loops)
def test_with_one_optimizer_there_are_as_many_training_steps_as_updates(recorded):
    updates = sum(mark.kind == Kind.UPDATE for mark in recorded)
    training = [step for step in find_steps(recorded, [], {}).steps if step.kind != "eval"]
    if updates:
        assert len(training) == updates
        assert all(step.updates == 1 for step in training)
    else:
        rows = [at for at, mark in enumerate(recorded) if mark.kind == Kind.FETCH and mark.flag == 0]
        unused = rows and all(mark.kind == Kind.COMPILE for mark in recorded[rows[-1] + 1 :])
        assert len(training) == len(rows) - bool(unused)


@given(loops)
def test_every_row_is_in_at_most_one_step_and_inside_it(recorded):
    steps = find_steps(recorded, [], {}).steps
    used = [mark for step in steps for mark in step.fetches]
    assert len(used) == len(set(used))
    assert all(step.start <= mark.begin and mark.end <= step.end for step in steps for mark in step.fetches)


@given(loops)
def test_every_update_lies_in_a_step(recorded):
    steps = find_steps(recorded, [], {}).steps
    for mark in recorded:
        if mark.kind == Kind.UPDATE:
            assert sum(step.start <= mark.begin and mark.end <= step.end for step in steps) == 1


@given(loops, st.integers(-(10**15), 10**15))
def test_moving_the_clock_moves_the_steps_and_nothing_else(recorded, shift):
    moved = [mark._replace(begin=mark.begin + shift, end=mark.end + shift) for mark in recorded]
    here, there = find_steps(recorded, [], {}), find_steps(moved, [], {})
    assert [(step.start + shift, step.end + shift, step.kind) for step in here.steps] == [
        (step.start, step.end, step.kind) for step in there.steps
    ]
    assert here.counts == there.counts


STEP = st.lists(st.tuples(st.sampled_from([(Kind.UPDATE, 0, 5), (Kind.UPDATE, 2, 6), (Kind.CALL, 0, 7), (Kind.CALL, 3, 7),
                                           (Kind.FETCH, 1, 1), (Kind.FETCH, 0, 1)]), st.integers(0, 9)), max_size=4)  # fmt: skip


@given(st.lists(st.tuples(STEP, st.integers(1, 14)), max_size=4), st.sampled_from([{}, {0: "one", 1: "one"}]))
def test_steps_that_repeat_are_read_as_columns_and_come_out_as_one_by_one(blocks, keys):
    now, recorded = 0, []
    for own, times in blocks:
        for kind, length in [((Kind.FETCH, 0, 0), 3), *own] * times:
            recorded.append(Mark(*kind, len(recorded), now - 4 + 3 * (len(recorded) % 3), now + 3 + length))
            now += 3 + length
    with mock.patch.object(loops_room, "OFTEN", 2):
        by_columns = find_steps(recorded, [], keys)
    with mock.patch.object(loops_room, "OFTEN", 1 << 40):
        assert find_steps(recorded, [], keys) == by_columns
