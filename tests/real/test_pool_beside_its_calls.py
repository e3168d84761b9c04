"""Blocks reconstructed from the pool, beside what the pool's own calls said (pool/, see PROVENANCE.md)."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest

from pipeprof.read.mindspore_ops import Execution, PoolSample
from pipeprof.read.spool.blocks import reconstruct

POOL = Path(__file__).parent / "pool"


@pytest.fixture(scope="module", params=["resnet50-graph", "resnet50-pynative", "cnn-graph", "cnn-pynative"])
def recorded(request):
    """Name, samples as [ns, level, A(llocation) or F (release), size], and the blocks made of the first two columns."""
    content = json.loads(gzip.decompress((POOL / f"{request.param}-2.10.json.gz").read_bytes()))
    names, shapes = content["names"], content["shapes"]
    executions = [
        Execution(names[n], begin, dur, None, shapes[s] or None) for n, s, begin, dur, *_ in content["executions"]
    ]
    writes = [sizes for *_, sizes in content["executions"]] if request.param.startswith("cnn") else []
    pool = [PoolSample(at, level, 1 << 30, level) for at, level, *_ in content["samples"]]
    return request.param, content["samples"], reconstruct(pool, executions, [(0, 1 << 62)], writes)


def test_the_pool_is_sampled_behind_each_allocation_and_before_each_release(recorded):
    _, samples, _ = recorded
    odd = [
        at
        for (_, level, kind, size, *_), (at, next_level, next_kind, next_size, *_) in pairwise(samples)
        if next_level - level != (next_size if next_kind == "A" else 0) - (size if kind == "F" else 0)
    ]
    assert len(odd) < 0.003 * len(samples)  # two threads may allocate at once


def test_nearly_all_bytes_are_in_blocks_of_the_right_size(recorded):
    name, samples, blocks = recorded
    of_owner = {block.produced_ns: block.size for block in blocks if block.owner is not None}
    made = [(at, size) for at, _, kind, size, *_ in samples if kind == "A"]
    right = sum(size for at, size in made if of_owner.get(at) == size)
    assert right / sum(size for _, size in made) > (0.98 if name == "cnn-pynative" else 0.99)
    released = {at: size for at, _, kind, size, *_ in samples if kind == "F"}
    found = [(block.released_ns, block.size) for block in blocks if block.released_ns is not None]
    share = sum(size for at, size in found if released.get(at) == size) / sum(size for _, size in found)
    assert share > (0.89 if name.endswith("pynative") else 0.99)


@pytest.mark.parametrize("recorded", ["cnn-graph", "cnn-pynative"], indirect=True)
def test_most_bytes_are_released_when_their_own_block_was(recorded):
    """Also of blocks of one size: their numbers are in the fifth column."""
    name, samples, blocks = recorded
    lives: dict[int, list[int]] = {}
    for at, _, _, size, number in samples:
        lives.setdefault(number, [size]).append(at)
    whole = [tuple(life) for life in lives.values() if len(life) == 3]
    found = {(block.size, block.produced_ns, block.released_ns) for block in blocks}
    right = sum(life[0] for life in whole if life in found)
    assert right / sum(size for size, _, _ in whole) > {"cnn-graph": 0.88, "cnn-pynative": 0.82}[name]


def test_what_is_alive_is_what_is_allocated(recorded):
    _, samples, blocks = recorded
    peak = max(level for _, level, *_ in samples)
    for at, level, kind, size, *_ in samples[1:-1:97]:
        alive = sum(
            block.size for block in blocks
            if block.produced_ns <= at and (block.released_ns is None or block.released_ns > at)
        )  # fmt: skip
        assert abs(alive - level + (size if kind == "F" else 0)) < 0.02 * peak
