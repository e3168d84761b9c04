"""Calls of drawn traces against the rules of key_averages, written down event by event."""

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kineto_files import imported, memory, op, rows, write_trace

spans = st.tuples(st.sampled_from("abc"), st.integers(0, 60), st.integers(0, 40), st.integers(1, 2))
launches = st.tuples(st.integers(0, 100), st.integers(1, 2), st.integers(1, 9))
blocks = st.tuples(st.integers(0, 110), st.integers(1, 2), st.integers(-9, 9).filter(bool))


class Node:
    def __init__(self, name, start, end, thread):
        self.name, self.start, self.end, self.thread = name, start, end, thread
        self.parent, self.children, self.kernels = None, [], 0


def tree_of(found, launched):
    """Nodes by start, the longest first; parents wholly contain their children. Launches go to the innermost open."""
    items = [(start, 0, -(start + dur), Node(name, start, start + dur, thread)) for name, start, dur, thread in found]
    items += [(at, 1, number, (thread, dur)) for number, (at, thread, dur) in enumerate(launched)]
    items.sort(key=lambda item: item[:3])
    open_ = defaultdict(list)
    for at, kind, _, item in items:
        if kind:
            thread, dur = item
            above = next((node for node in reversed(open_[thread]) if node.end >= at), None)
            if above:
                above.kernels += dur
            continue
        stack = open_[item.thread]
        while stack and not (item.start < stack[-1].end and item.end <= stack[-1].end):
            stack.pop()
        if stack:
            item.parent = stack[-1]
            stack[-1].children.append(item)
        stack.append(item)
    return [item for _, kind, _, item in items if not kind]


def fold(nodes):
    """Remove only children that have the name of their parents, until there is none."""
    nodes = list(nodes)
    while True:
        only = [
            node for node in nodes if node.parent and node.parent.name == node.name and len(node.parent.children) == 1
        ]
        if not only:
            return nodes
        child, parent = only[0], only[0].parent
        parent.children, parent.kernels = child.children, child.kernels
        for node in child.children:
            node.parent = parent
        nodes.remove(child)


def allocated(node, blocks_):
    return sum(size for at, _, size in blocks_ if node.start <= at <= node.end)


def device_time(node):
    return node.kernels + sum(map(device_time, node.children))


def expected(found, launched, blocks_):
    sums = defaultdict(lambda: [0] * 7)
    for node in fold(tree_of(found, launched)):
        held = allocated(node, blocks_)
        values = (
            1, node.end - node.start, node.end - node.start - sum(one.end - one.start for one in node.children),
            device_time(node), node.kernels, held, held - sum(allocated(one, blocks_) for one in node.children),
        )  # fmt: skip
        sums[node.name] = [total + value for total, value in zip(sums[node.name], values, strict=True)]
    return dict(sums)


def trace(found, launched, blocks_):
    events = [op(name, start, dur, tid=thread) for name, start, dur, thread in found]
    for number, (at, thread, dur) in enumerate(launched):
        events.append(op("launch", at, 0, cat="cuda_runtime", tid=thread, correlation=number))
        events.append(op("kernel", 500 + 10 * number, dur, cat="kernel", pid=0, tid=7, correlation=number))
    return events + [memory(at, size, 64, tid=thread) for at, thread, size in blocks_]


COLUMNS = (
    "dur_ns", "self_ns", "device_total_ns", "device_self_ns", "memory_bytes", "self_memory_bytes",
)  # fmt: skip


def summed(run):
    names = {row["op_id"]: row["name"] for row in rows(run, "op_info")}
    sums = defaultdict(lambda: [0] * 7)
    for row in rows(run, "op"):
        name = names[row["op_id"]]
        if row["side"] != "device" and name != "[memory]":
            values = [1, *(row[column] or 0 for column in COLUMNS)]
            values[1:5] = [value // 1000 for value in values[1:5]]
            sums[name] = [total + value for total, value in zip(sums[name], values, strict=True)]
    return dict(sums)


def parents_are_rows(run):
    """Whoever called or launched something is an execution that is there, and execution numbers are unique."""
    found = rows(run, "op")
    numbers = [row["exec_id"] for row in found if row["exec_id"] is not None]
    assert len(numbers) == len(set(numbers))
    assert {row["parent_id"] for row in found} - {None} <= set(numbers)


@pytest.mark.parametrize("chunk", [300, 1 << 20])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    found=st.lists(spans, min_size=1, max_size=25),
    launched=st.lists(launches, max_size=6),
    blocks_=st.lists(blocks, max_size=6),
)
def test_sums_by_name_are_those_of_the_rules(chunk, found, launched, blocks_):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeprof.read.chrome.container.CHUNK", chunk)
        patch.setattr("pipeprof.read.chrome.container._WINDOW", chunk)
        place = Path(tempfile.mkdtemp(prefix="pipeprof-tree-"))
        try:
            events = sorted(trace(found, launched, blocks_), key=lambda event: event["ts"])
            run = imported(place / "run", write_trace(place / "x.json", events))
            assert summed(run) == expected(found, launched, blocks_)
            parents_are_rows(run)
        finally:
            shutil.rmtree(place)
