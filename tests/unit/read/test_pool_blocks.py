"""Blocks out of the levels of a pool, which is sampled behind an allocation and before a release."""

from types import SimpleNamespace

from pipeprof.read.mindspore_ops import Execution, PoolSample
from pipeprof.read.spool import blocks as blocks_module
from pipeprof.read.spool.blocks import of_operators, reconstruct
from pipeprof.read.spool.operators import Placed, Recorded

BEGIN = [(0, 1_000_000)]
LAYERS = [Execution("Default/a", 5, 5), Execution("Default/b", 15, 5)]


def blocks(levels, executions=(), windows=BEGIN):
    pool = [PoolSample(at, level, 1 << 30, level) for at, level in levels]
    found = reconstruct(pool, executions, windows)
    return [(block.size, block.produced_ns, block.released_ns, block.owner, block.evidence) for block in found]


def test_what_rises_is_allocated_and_what_falls_between_two_releases_is_released():
    levels = [(10, 0), (20, 1024), (30, 3072), (40, 3072), (50, 1024), (60, 0)]
    assert blocks(levels, [Execution("Default/a", 25, 30)]) == [
        (1024, 20, 50, 0, "matched"),
        (2048, 30, 40, 0, "matched"),
    ]


def test_a_release_and_an_allocation_in_one_change_are_told_apart_by_what_operators_read():
    conv = Execution("Default/Conv2D", 15, 10, "Conv2D", "[1, 512]; [1, 256]")
    add = Execution("Default/Add", 45, 10, "Add", "[1, 1024]")
    levels = [(5, 0), (10, 2048), (12, 7168), (30, 7168), (40, 9216), (60, 9216), (70, 5120)]
    found = blocks(levels, [conv, add])
    assert found[0] == (2048, 10, 30, 0, "inferred")  # as large as the operator's input
    assert found[2] == (4096, 40, 60, 1, "matched")
    assert found[1][:2] == (5120, 12)
    assert found[1][2] is None


def test_blocks_of_before_the_window_are_there_from_its_begin():
    assert blocks([(10, 6144), (20, 6144), (30, 2048), (40, 2560), (50, 2560)]) == [
        (4096, 10, 20, None, "earlier"),
        (512, 40, None, None, "unseen"),
        (2048, 10, None, None, "unseen"),
    ]


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


def test_what_is_held_when_a_window_closes_ends_there_but_in_the_last():
    found = blocks([(1, 0), (2, 512), (3, 512), (11, 512), (12, 1536)], windows=[(0, 5), (10, 15)])
    assert found == [
        (512, 2, 3, None, "unseen"),
        (1024, 12, None, None, "unseen"),
        (512, 11, None, None, "unseen"),
    ]


def test_a_level_that_never_changes_is_one_block_and_no_samples_are_none():
    assert blocks([(1, 512), (2, 512)]) == [(512, 1, None, None, "unseen")]
    assert blocks([]) == []


def test_sizes_that_are_gone_are_not_tried_any_more(monkeypatch):
    """Of rows of ever new lengths each block has a size of its own: what one sample costs must not grow with them."""
    levels, base = [], 1 << 20
    for number in range(400):
        size = 512 * (number + 1)
        levels += [(10 * number, base + size), (10 * number + 1, base + size)]
    window = blocks_module._Window([PoolSample(at, level, 1 << 30, level) for at, level in levels], _owners())
    window.read()
    assert len(window.alive) < 10


def _owners():
    return blocks_module._Owners([])
