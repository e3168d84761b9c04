"""Rows behind an operator are made once, in the order of the sampler; what cannot be kept is refused or made anew."""

from __future__ import annotations

import json
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def kept_rows(probe):
    return import_module(f"{probe.package.__name__}.kept_rows")


THREAD = threading.Thread


@pytest.fixture
def compose(rec, monkeypatch):
    """What the rows' functions are taken from; and threads, which the recorder of other tests has none of."""
    monkeypatch.setattr(threading, "Thread", THREAD)
    transforms = SimpleNamespace(Compose=SimpleNamespace(decompose=list))
    monkeypatch.setitem(sys.modules, "mindspore.dataset.transforms", transforms)


class Source:
    """Two columns; counts its calls."""

    def __init__(self):
        self.calls = []

    def __len__(self):
        return 20

    def __getitem__(self, index):
        self.calls.append(int(index))
        return np.full(3, index, np.float32), int(index) % 2


class Node:
    def __init__(self, *children, workers=1, **facts):
        self.children = list(children)
        self.num_parallel_workers = workers
        self.__dict__.update(facts)


class GeneratorDataset(Node):
    pass


class MapDataset(Node):
    pass


class BatchDataset(Node):
    pass


def doubled(x):
    return 2 * x


def source(**facts):
    return GeneratorDataset(**({"source": Source(), "column_names": ["x", "y"], "sampler": object()} | facts))


def mapped(child, function=doubled, names=("x",), out=(), **facts):
    columns = {"input_columns": list(names), "output_columns": list(out or names)}
    return MapDataset(child, operations=[function], **columns, **facts)


def built(kept_rows, node, limit=1 << 20):
    """The source that stands in the place of a node's copy; `node` itself serves as the copy, as nothing is shared."""
    leaf = kept_rows.instead(node, node, {"cache": limit, "node": 1})
    leaf.prepare_multiprocessing()
    return leaf


@pytest.mark.parametrize("workers", [1, 4])
def test_each_row_is_made_once_and_comes_in_the_order_that_is_asked_for(kept_rows, compose, workers):
    node = mapped(source(), out=["z"], workers=workers)
    counted = node.children[0].source
    leaf = built(kept_rows, node)
    assert leaf.column_names == ["z", "y"]
    for epoch in range(3):
        order = np.random.default_rng(epoch).permutation(20).tolist()
        rows = list(leaf.prepared_source(np.array(order)))
        assert [(row[0].tolist(), row[1].tolist()) for row in rows] == [([2.0 * one] * 3, one % 2) for one in order]
    assert sorted(counted.calls) == list(range(20))


def test_an_operator_is_in_as_many_threads_as_it_had_workers(kept_rows, compose):
    inside, most, lock = [0], [0], threading.Lock()
    met = threading.Barrier(3, timeout=60)

    def wide(x):
        met.wait()  # passes only with three threads in it
        return x

    def narrow(x):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        with lock:
            inside[0] -= 1
        return x

    node = mapped(mapped(source(), wide, workers=3), narrow)
    node.children[0].children[0].num_parallel_workers = 3
    assert len(list(built(kept_rows, node).prepared_source(np.arange(18)))) == 18
    assert most[0] == 1


def test_beyond_the_limit_nothing_is_kept_and_all_rows_still_come(kept_rows, rec, compose):
    node = mapped(source())
    counted = node.children[0].source
    leaf = built(kept_rows, node, limit=1000)
    for _ in range(2):
        rows = list(leaf.prepared_source(np.arange(20)))
        assert [row[0][0] for row in rows] == [2 * one for one in range(20)]
    assert len(counted.calls) == 40
    rec.flush()
    lines = [json.loads(line) for line in (Path(rec.folder) / "events.jsonl").read_text().splitlines()]
    assert [line["limit"] for line in lines if line["e"] == "cache_full"] == [1000]
    assert [line["code"] for line in lines if line["e"] == "warning"] == ["cache_full"]


@pytest.mark.parametrize("most", [0, 5])
def test_a_source_that_is_only_iterated_is_read_once_to_its_end(kept_rows, compose, most):
    passes = []

    def rows():
        passes.append(0)
        for value in range(most + 2 if most else 5):
            yield np.full(2, value), value

    node = mapped(source(source=rows, sampler=None, num_samples=most), workers=3)
    leaf = kept_rows.instead(node, node, {"cache": 1 << 20, "node": 1})
    broken = leaf.source()
    next(broken)
    broken.close()  # an epoch that the loop leaves early is not kept
    for _ in range(3):
        epoch = leaf.source()
        assert [next(epoch)[0][0] for _ in range(5)] == [0, 2, 4, 6, 8]
        assert most or not list(epoch)  # MindSpore asks for the end only where the script gives no number
    assert len(passes) == 2


def jitter(x):
    return x + np.random.default_rng().normal()


class RandomCrop:
    pass


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (mapped(source()), ""),
        (mapped(source(), jitter), "draws random numbers"),
        (mapped(source(), RandomCrop()), "draws random numbers"),
        (mapped(source(has_batch_sampler=True)), "batch sampler"),
        (mapped(source(), names=["x"], out=["x", "z"]), "other columns"),
        (mapped(BatchDataset(source())), "those of"),
        (BatchDataset(source()), "those of BatchOp"),
        (mapped(BatchDataset(source(), source())), "several branches"),
    ],
)
def test_what_cannot_be_kept_is_refused(kept_rows, node, why):
    found = kept_rows.why_not(node, node, 0)
    assert (why in found) if why else found == ""


def test_the_description_has_a_source_in_the_place(kept_rows):
    leaf = {"type": "GeneratorOp", "node": 2, "name": "Rows", "rows": 20, "children": []}
    entry = {"type": "MapOp", "node": 1, "name": "fetch", "site": "train.py:9", "workers": 2, "children": [leaf]}
    kept_rows.redescribe(entry)
    assert (entry["type"], entry["node"], entry["name"], entry["rows"]) == ("GeneratorOp", 1, "cache after fetch", 20)
    assert (entry["site"], entry["children"]) == ("train.py:9", [])
