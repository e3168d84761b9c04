"""Blocks out of the levels of a pool, which is sampled behind an allocation and before a release."""

from __future__ import annotations

from pipeprof.read.mindspore_ops import Execution, PoolSample
from pipeprof.read.spool import blocks as blocks_module
from pipeprof.read.spool.blocks import reconstruct

BEGIN = [(0, 1_000_000)]


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


def test_the_newest_of_equal_blocks_is_released():
    assert [row[2] for row in blocks([(1, 0), (2, 512), (3, 1024), (4, 1024), (5, 512)])] == [None, 4]


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
