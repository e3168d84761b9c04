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


@pytest.fixture(scope="module", params=["graph", "pynative"])
def recorded(request):
    """Mode, samples as [ns, level, A(llocation) or F (release), size], and the blocks made of the first two columns."""
    content = json.loads(gzip.decompress((POOL / f"resnet50-{request.param}-2.10.json.gz").read_bytes()))
    names, shapes = content["names"], content["shapes"]
    executions = [
        Execution(names[n], begin, dur, None, shapes[s] or None) for n, s, begin, dur in content["executions"]
    ]
    pool = [PoolSample(at, level, 1 << 30, level) for at, level, _, _ in content["samples"]]
    return request.param, content["samples"], reconstruct(pool, executions, [(0, 1 << 62)])


def test_the_pool_is_sampled_behind_each_allocation_and_before_each_release(recorded):
    _, samples, _ = recorded
    for (_, level, kind, size), (_, next_level, next_kind, next_size) in pairwise(samples):
        assert next_level - level == (next_size if next_kind == "A" else 0) - (size if kind == "F" else 0)


def test_nearly_all_bytes_are_in_blocks_of_the_right_size(recorded):
    mode, samples, blocks = recorded
    of_owner = {block.produced_ns: block.size for block in blocks if block.owner is not None}
    made = [(at, size) for at, _, kind, size in samples if kind == "A"]
    right = sum(size for at, size in made if of_owner.get(at) == size)
    assert right / sum(size for _, size in made) > 0.99
    released = {at: size for at, _, kind, size in samples if kind == "F"}
    found = [(block.released_ns, block.size) for block in blocks if block.released_ns is not None]
    share = sum(size for at, size in found if released.get(at) == size) / sum(size for _, size in found)
    assert share > {"graph": 0.99, "pynative": 0.89}[mode]


def test_what_is_alive_is_what_is_allocated(recorded):
    _, samples, blocks = recorded
    peak = max(level for _, level, _, _ in samples)
    for at, level, kind, size in samples[1:-1:97]:
        alive = sum(
            block.size for block in blocks
            if block.produced_ns <= at and (block.released_ns is None or block.released_ns > at)
        )  # fmt: skip
        assert abs(alive - level + (size if kind == "F" else 0)) < 0.02 * peak
