"""Rows behind an operator are made once, in the order of the sampler; what cannot be kept is refused or made anew."""

import sys
import threading
from importlib import import_module
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
    leaf = kept_rows.instead(node, node, {"cache": limit, "node": 1}) or node
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
    inside, most, lock = {"wide": 0, "narrow": 0}, {"wide": 0, "narrow": 0}, threading.Lock()
    three = threading.Event()

    def counted(name, wait):
        def function(x):
            with lock:
                inside[name] += 1
                most[name] = max(most[name], inside[name])
            wait()
            with lock:
                inside[name] -= 1
            return x

        return function

    def until_three_are_in_it():
        if most["wide"] == 3:
            three.set()
        assert three.wait(60)

    wide, narrow = counted("wide", until_three_are_in_it), counted("narrow", lambda: None)
    node = mapped(mapped(source(), wide, workers=3), narrow)
    node.children[0].children[0].num_parallel_workers = 3
    assert len(list(built(kept_rows, node).prepared_source(np.arange(18)))) == 18
    assert most == {"wide": 3, "narrow": 1}


def test_beyond_the_limit_nothing_is_kept_and_all_rows_still_come(kept_rows, told, compose):
    node = mapped(source())
    counted = node.children[0].source
    leaf = built(kept_rows, node, limit=1000)
    for _ in range(2):
        rows = list(leaf.prepared_source(np.arange(20)))
        assert [row[0][0] for row in rows] == [2 * one for one in range(20)]
    assert len(counted.calls) == 40
    assert [line["limit"] for line in told("cache_full")] == [1000]
    assert [line["code"] for line in told("warning")] == ["cache_full"]


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


@pytest.mark.parametrize("streamed", [False, True])
def test_what_the_training_changes_in_place_is_not_what_is_kept(kept_rows, compose, streamed):
    """MindSpore hands the memory of a row on to the training where no batch is between."""
    node = mapped(source())
    if streamed:
        given = [(np.full(3, one, np.float32), one % 2) for one in range(20)]
        node.children[0].sampler, node.children[0].source = None, lambda: iter(given)
    leaf = kept_rows.instead(node, node, {"cache": 1 << 20, "node": 1})
    for _ in range(3):
        if streamed:
            rows = leaf.source()
        else:
            leaf.prepare_multiprocessing()
            rows = leaf.prepared_source(np.arange(20))
        seen = []
        for row in rows:
            seen.append(float(row[0][0]))
            row[0][:] = -1
        assert seen == [2 * one for one in range(20)]


def test_a_map_that_changes_its_row_in_place_does_not_change_the_source(kept_rows, compose):
    data = np.ones((4, 3), np.float32)

    def add_one(x):
        x += 1
        return x

    node = mapped(source(source=data), add_one, names=["x"])
    node.children[0].column_names = ["x"]
    assert [row[0][0] for row in built(kept_rows, node).prepared_source([0, 0, 1, 2])] == [2] * 4
    assert (data == 1).all()


def test_a_source_that_fills_one_array_again_and_again(kept_rows, compose):
    def rows():
        array = np.zeros(3, np.float32)
        for value in range(30):
            array[:] = value
            yield array, value

    node = mapped(source(source=rows, sampler=None), workers=4)
    leaf = kept_rows.instead(node, node, {"cache": 1 << 20, "node": 1})
    for _ in range(2):
        assert [row[0][0] for row in leaf.source()] == [2 * one for one in range(30)]


def test_two_iterators_at_once_of_a_source_with_another_order_each_time(kept_rows, compose):
    order = iter([range(10), range(9, -1, -1)])

    def rows():
        for value in next(order):
            yield np.full(2, value), value

    node = mapped(source(source=rows, sampler=None))
    leaf = kept_rows.instead(node, node, {"cache": 1 << 20, "node": 1})
    train, evaluation = leaf.source(), leaf.source()
    both = list(zip(train, evaluation, strict=True))
    assert [one[1] for one, _ in both] == list(range(10))
    assert [one[1] for _, one in both] == list(range(9, -1, -1))


def test_an_epoch_that_is_kept_is_read_to_its_end_though_another_iterator_goes_beyond_the_limit(
    kept_rows, compose, told
):
    passes = []

    def rows():
        passes.append(0)
        for value in range(10):
            yield (np.full(100, value, np.float64),)

    node = mapped(source(source=rows, sampler=None, column_names=["x"]))
    epoch = 10 * (kept_rows.ROW_BYTES + 800)  # bytes
    leaf = kept_rows.instead(node, node, {"cache": epoch * 3 // 2, "node": 1})
    late = leaf.source()
    begun = [next(late)]
    assert len(list(leaf.source())) == 10  # this one is kept
    reader = leaf.source()
    read = [next(reader)]
    begun += late
    assert told("cache_full")
    read += reader
    for epoch in (begun, read, list(leaf.source())):
        assert [row[0][0] for row in epoch] == [2 * value for value in range(10)]
    assert len(passes) == 3


def test_a_list_of_a_map_is_one_column_and_a_dict_is_not_kept(kept_rows, rec, compose):
    node = mapped(source(), lambda _: [1, 2, 3])
    assert next(iter(built(kept_rows, node).prepared_source(np.arange(1))))[0].tolist() == [1, 2, 3]
    node = mapped(source(), lambda x: {"n": int(x[0])})
    leaf = built(kept_rows, node)
    for _ in range(2):
        rows = list(leaf.prepared_source(np.arange(20)))
        assert [row[0] for row in rows] == [{"n": one} for one in range(20)]
    assert len(node.children[0].source.calls) == 40


def test_functions_that_ran_in_processes_are_called_by_one_thread(kept_rows, compose):
    """In a process each worker has objects of its own, in threads all share them."""
    buffer, inside = np.zeros(3, np.float32), []

    def fill(x):
        inside.append(1)
        buffer[:] = x
        threading.Event().wait(0.002)
        assert len(inside) == 1
        inside.pop()
        return buffer

    node = mapped(source(), fill, workers=4, python_multiprocessing=True)
    rows = list(built(kept_rows, node).prepared_source(np.arange(20)))
    assert [row[0][0] for row in rows] == list(range(20))


def test_rows_that_fail_and_are_skipped_are_not_kept(kept_rows, monkeypatch):
    config = SimpleNamespace(get_error_samples_mode=lambda: 2)
    monkeypatch.setitem(sys.modules, "mindspore.dataset", SimpleNamespace(config=config))
    node = mapped(source())
    assert "set_error_samples_mode" in kept_rows.why_not(node, node, 0)


def jitter(x):
    return x + np.random.default_rng().normal()


class RandomCrop:
    pass


class CutOut:
    pass


def by_a_helper(x):
    return jitter(x)


class Jitter:
    def __call__(self, x):
        return jitter(x)


a_helper = Jitter()


def by_an_object(x):
    return a_helper(x)


def by_a_function_in_it(x):
    def drawn():
        return np.random.default_rng().normal()

    return x + drawn()


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (mapped(source()), ""),
        (mapped(source(), jitter), "draws random numbers"),
        (mapped(source(), RandomCrop()), "draws random numbers"),
        (mapped(source(), CutOut()), "draws random numbers"),
        (mapped(source(), by_a_helper), "draws random numbers"),
        (mapped(source(), by_an_object), "draws random numbers"),
        (mapped(source(), by_a_function_in_it), "draws random numbers"),
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


@pytest.mark.parametrize(("free", "container", "room"), [("800 kB", "max", 400 << 10), ("800 kB", "1000", 500)])
def test_a_cache_takes_half_of_the_memory_that_is_free_at_most(
    kept_rows, compose, monkeypatch, tmp_path, free, container, room
):
    for name, text in (("MEMORY", f"MemTotal: 9 kB\nMemAvailable:   {free}\n"), ("CONTAINER", f"{container}\n")):
        tmp_path.joinpath(name).write_text(text, encoding="ascii")
        monkeypatch.setattr(kept_rows, name, str(tmp_path / name))
    node = mapped(source())
    built(kept_rows, node, limit=1 << 30)
    assert kept_rows._made[node].limit == room


SCALE = 2.0


def by_module(x):
    return SCALE * x


class Growing(Source):
    """What the rows are like is said by an attribute, of the source or of an object that it holds."""

    def __init__(self):
        super().__init__()
        self.size = 1
        self.held = SimpleNamespace(share=0.5)
        self.options = {"scale": 1}

    def __getitem__(self, index):
        return np.full(self.size, index * self.held.share * self.options["scale"], np.float32), 0


def grown(node):
    node.source.size = 3


def held(node):
    node.source.held.share = 0.7


def in_a_dict(node):
    node.source.options["scale"] = 3


@pytest.mark.parametrize("change", [grown, held, in_a_dict])
def test_rows_of_a_source_that_changes_are_made_anew(kept_rows, compose, told, change):
    """In its second epoch, or in its tenth: what a short training does not show must not be wrong in a long one."""
    node = source(source=Growing())
    leaf = built(kept_rows, node)
    first = [list(leaf.prepared_source(range(4))) for _ in range(3)]
    assert {row[0].tobytes() for epoch in first for row in epoch} == {row[0].tobytes() for row in first[0]}
    change(node)
    expected = [node.source[number][0] for number in range(4)]
    for _ in range(2):
        assert all(
            np.array_equal(row[0], one) for row, one in zip(leaf.prepared_source(range(4)), expected, strict=True)
        )
    assert told("cache_stale")


def test_a_source_that_holds_its_own_methods_and_itself(kept_rows, compose, told):
    """As a class does that chooses one of its methods once; and as a tree whose nodes know each other."""
    made = Growing()
    made.load = made.__getitem__
    made.parent = made.held.owner = made
    made.options["all"] = [made, made.options]
    leaf = built(kept_rows, source(source=made))
    for _ in range(2):
        list(leaf.prepared_source(range(4)))
    made.size = 2
    assert len(next(iter(leaf.prepared_source(range(1))))[0]) == 2
    assert [line["value"] for line in told("cache_stale")] == ["size"]


@pytest.mark.parametrize("closed", [True, False])
def test_a_variable_that_a_map_reads_counts_as_well(kept_rows, compose, rec, monkeypatch, closed):
    factor = 2.0

    def by_closure(x):
        return factor * x

    leaf = built(kept_rows, mapped(source(), by_closure if closed else by_module))
    assert [float(row[0][0]) for row in leaf.prepared_source([1, 2])] == [2.0, 4.0]
    factor = 5.0
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 5.0)
    assert [float(row[0][0]) for row in leaf.prepared_source([1, 2])] == [5.0, 10.0]


def test_what_stays_is_kept(kept_rows, compose, rec, told):
    """Lists and arrays that a source fills are no plain values, and a value that is no number equals itself."""
    made = Growing()
    made.missing = float("nan")
    leaf = built(kept_rows, source(source=made))
    for _ in range(3):
        list(leaf.prepared_source(range(4)))
        made.calls.append("a word")
    rec.event("the end")
    assert [event["e"] for event in told() if event["e"] in ("the end", "cache_stale")] == ["the end"]
