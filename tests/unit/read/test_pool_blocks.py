"""Blocks out of the levels of a pool, which is sampled behind an allocation and before a release; and looks at where a
training waits as fetches of its steps: shares of looks, taken of the time between updates."""

from types import SimpleNamespace

import pytest

from pipeprof.read.mindspore_ops import Execution, PoolSample
from pipeprof.read.spool import blocks as blocks_module
from pipeprof.read.spool.blocks import LEAST, TOGETHER, called_first, of_operators, reconstruct, with_sampled_fetches
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.operators import Placed, Recorded

BEGIN = [(0, 1_000_000)]
LAYERS = [Execution("Default/a", 5, 5), Execution("Default/b", 15, 5)]


def blocks(levels, executions=(), windows=BEGIN):
    pool = [PoolSample(at, level, 1 << 30, level) for at, level in levels]
    found = reconstruct(pool, executions, windows)
    return [(block.size, block.produced_ns, block.released_ns, block.owner, block.evidence) for block in found]


def test_a_release_and_an_allocation_in_one_change_are_told_apart_by_what_operators_read():
    conv = Execution("Default/Conv2D", 15, 10, "Conv2D", "[1, 512]; [1, 256]")
    add = Execution("Default/Add", 45, 10, "Add", "[1, 1024]")
    levels = [(5, 0), (10, 2048), (12, 7168), (30, 7168), (40, 9216), (60, 9216), (70, 5120)]
    found = blocks(levels, [conv, add])
    assert found[0] == (2048, 10, 30, 0, "inferred")  # as large as the operator's input
    assert found[2] == (4096, 40, 60, 1, "matched")
    assert found[1][:2] == (5120, 12)
    assert found[1][2] is None


def test_the_newest_of_equal_blocks_is_released_but_not_the_output_of_the_operator_that_ran():
    levels = [(1, 0), (2, 512), (3, 1024), (4, 1024), (5, 512)]
    assert [row[2] for row in blocks(levels)] == [None, 4]
    assert [row[2] for row in blocks([(1, 0), (2, 512), (13, 1024), (24, 1024), (25, 512)], LAYERS)] == [24, None]


def test_workspaces_of_an_operator_go_in_their_order_in_front_of_what_it_read():
    levels = [(1, 0), (2, 512), (12, 1024), (13, 3072), (14, 3584), (24, 3584), (25, 3072), (26, 2560), (27, 2048)]
    assert [row[:3] for row in blocks(levels, LAYERS)] == [
        (512, 2, 26), (512, 12, 24), (2048, 13, None), (512, 14, 25),
    ]  # fmt: skip


def test_an_exchange_of_equal_levels_is_of_what_the_next_operator_writes():
    levels = [(1, 0), (2, 512), (3, 4608), (13, 8704), (24, 8704), (25, 8704), (35, 8704)]
    layers = [*LAYERS, Execution("Default/c", 30, 3)]
    found = reconstruct([PoolSample(at, level, 0, 0) for at, level in levels], layers, BEGIN, [[], [], [4096]])
    assert (4096, 25) in [(block.size, block.produced_ns) for block in found]


def test_the_only_sample_before_an_operator_is_of_its_output():
    found = reconstruct([PoolSample(at, level, 0, 0) for at, level in [(2, 4608), (12, 5120)]], LAYERS, BEGIN, [[4096]])
    assert [(block.size, block.produced_ns, block.owner) for block in found][:2] == [(4096, 2, 0), (512, 12, 1)]


def test_an_operator_took_what_it_allocated_and_kept_and_nothing_where_the_pool_was_not_read():
    """Between the two the first one's workspace goes, behind the second one the output that it read."""
    levels = [(2, 512), (3, 1024), (7, 4096), (12, 4096), (13, 5120), (24, 5120), (25, 2048)]
    pool = [PoolSample(at, level, 0, 0) for at, level in levels]
    executions = [*LAYERS, Execution("Default/c", 130, 3)]
    placed = [Placed(execution, None, "forward", execution.name) for execution in executions]
    recorded = Recorded(executions, pool, [(0, 100), (120, 140)], [])
    _, taken = of_operators(placed, recorded, SimpleNamespace(written_by=lambda _: []))
    assert taken == [3072, 1536, None]


@pytest.mark.parametrize(
    ("levels", "executions", "windows", "expected"),
    [
        # what rises is allocated, and what falls between two releases is released
        ([(10, 0), (20, 1024), (30, 3072), (40, 3072), (50, 1024), (60, 0)], [Execution("Default/a", 25, 30)], BEGIN,
         [(1024, 20, 50, 0, "matched"), (2048, 30, 40, 0, "matched")]),
        # blocks of before the window are there from its begin
        ([(10, 6144), (20, 6144), (30, 2048), (40, 2560), (50, 2560)], (), BEGIN,
         [(4096, 10, 20, None, "earlier"), (512, 40, None, None, "unseen"), (2048, 10, None, None, "unseen")]),
        # what is held when a window closes ends there, but in the last
        ([(1, 0), (2, 512), (3, 512), (11, 512), (12, 1536)], (), [(0, 5), (10, 15)],
         [(512, 2, 3, None, "unseen"), (1024, 12, None, None, "unseen"), (512, 11, None, None, "unseen")]),
        # a level that never changes is one block, and no samples are none
        ([(1, 512), (2, 512)], (), BEGIN, [(512, 1, None, None, "unseen")]),
        ([], (), BEGIN, []),
    ],
)  # fmt: skip
def test_levels_become_blocks(levels, executions, windows, expected):
    assert blocks(levels, executions, windows) == expected


def test_sizes_that_are_gone_are_not_tried_any_more(monkeypatch):
    """Of rows of ever new lengths each block has a size of its own: what one sample costs must not grow with them."""
    levels, base = [], 1 << 20
    for number in range(400):
        size = 512 * (number + 1)
        levels += [(10 * number, base + size), (10 * number + 1, base + size)]
    pool = [PoolSample(at, level, 1 << 30, level) for at, level in levels]
    window = blocks_module._Window(pool, blocks_module._Owners([]))
    window.read()
    assert len(window.alive) < 10


STEP, WAIT = 1000, 600


def marks(steps, units=1, fetch=None):
    """Steps of 1000: 600 until the network is called, 300 of forward and backward, an update of each unit at the end."""
    made = []
    for step in range(steps):
        begin = step * STEP
        if fetch is not None:
            made.append(Mark(Kind.FETCH, 0, fetch, step, begin, begin + 10))
        made.append(Mark(Kind.CALL, 3, 0, 0, begin + WAIT, begin + WAIT))
        updates = [begin + 900 + 10 * unit for unit in range(units)]
        made += [Mark(Kind.UPDATE, 0, unit, 0, at, at + 5) for unit, at in enumerate(updates)]
    return made


def looks(steps, every=100, until=WAIT, number=5):
    """One every so often, which finds the training waiting until `until` of each step."""
    return [(at, int((at - 5) % STEP < until), number) for at in range(50, steps * STEP, every)]


def fetches(found):
    return [mark for mark in found if mark.kind == Kind.FETCH]


def test_each_step_waits_the_share_of_its_time_before_the_call_that_the_looks_found():
    found = with_sampled_fetches(marks(40), looks(40))
    assert len(fetches(found)) == 39  # nothing is known to have come before the first
    assert {mark.subject for mark in fetches(found)} == {5}
    waited = [mark.end - mark.begin for mark in fetches(found)]
    assert sum(waited) / len(waited) == pytest.approx(WAIT, abs=100)
    assert all(mark.begin % STEP == 905 for mark in fetches(found))
    assert [mark.end for mark in found] == sorted(mark.end for mark in found)


def test_few_looks_and_a_training_that_never_waits_or_whose_loader_has_hooks_change_nothing():
    assert with_sampled_fetches(marks(40), [(at, 1, 5) for at in range(LEAST - 1)]) == marks(40)
    assert fetches(with_sampled_fetches(marks(40), looks(40, until=0))) == []
    hooked = marks(40, fetch=2)
    assert fetches(with_sampled_fetches(hooked, looks(40))) == fetches(hooked)


def test_two_updates_of_one_batch_have_one_fetch():
    found = fetches(with_sampled_fetches(marks(40, units=2), looks(40, until=500)))
    assert len(found) == 39
    assert all(mark.begin % STEP == 915 for mark in found)


def test_a_training_that_changes_waits_otherwise_before_and_after():
    steps = 6 * TOGETHER // 10
    slow, fast = looks(steps // 2), [(at, int(found and at % 200 < 100), number) for at, found, number in looks(steps)]
    found = fetches(with_sampled_fetches(marks(steps), [*slow, *fast[len(slow) :]]))
    waits = [mark.end - mark.begin for mark in found]
    assert sum(waits[: steps // 2 - 1]) > 1.5 * sum(waits[steps // 2 :])


def test_the_first_call_is_of_the_network_of_a_backward_pass_or_of_an_optimizer():
    assert called_first(marks(1)).tolist() == [600, 900]
    backward, forward = (Mark(Kind.SECTION, flag, 0, 0, at, at + 100) for flag, at in ((2, 700), (1, 550)))
    assert called_first([*marks(1), backward, forward]).tolist() == [600, 700, 900]
