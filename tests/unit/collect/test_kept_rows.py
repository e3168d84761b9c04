"""Rows behind an operator are made once, in the order of the sampler; what cannot be kept is refused or made anew."""

import sys
import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.collect.conftest import operator

THREAD = threading.Thread


@pytest.fixture
def kept_rows(probe, rec, monkeypatch):
    """The module; what takes the rows' functions apart; and threads, which the recorder of other tests has none of."""
    monkeypatch.setattr(threading, "Thread", THREAD)
    transforms = SimpleNamespace(Compose=SimpleNamespace(decompose=list))
    monkeypatch.setitem(sys.modules, "mindspore.dataset.transforms", transforms)
    return probe.kept_rows


class Source:
    """Two columns; counts its calls."""

    def __init__(self):
        self.calls = []

    def __len__(self):
        return 20

    def __getitem__(self, index):
        self.calls.append(int(index))
        return np.full(3, index, np.float32), int(index) % 2


def doubled(x):
    return 2 * x


def source(**facts):
    made = {"source": Source(), "column_names": ["x", "y"], "sampler": object(), "num_parallel_workers": 1}
    return operator("GeneratorOp", **(made | facts))


def mapped(child, function=doubled, out=("x",), workers=1, **facts):
    columns = {"input_columns": ["x"], "output_columns": list(out)}
    return operator("MapOp", child, operations=[function], num_parallel_workers=workers, **columns, **facts)


def built(kept_rows, node, limit=1 << 20):
    """What gives the rows of numbers, or of an epoch where the source is iterated; `node` itself serves as the copy."""
    leaf = kept_rows.instead(node, node, {"cache": limit, "node": 1}) or node
    if not hasattr(leaf, "prepare_multiprocessing"):
        return leaf.source
    leaf.prepare_multiprocessing()
    return lambda numbers=range(20): leaf.prepared_source(np.array(numbers))


def streamed(kept_rows, rows, limit=1 << 20, workers=1, **facts):
    return built(kept_rows, mapped(source(source=rows, sampler=None, **facts), workers=workers), limit)


def firsts(rows):
    """The first number of each row's first column."""
    return [float(row[0][0]) for row in rows]


TWICE = [2.0 * number for number in range(30)]


@pytest.mark.parametrize("workers", [1, 4])
def test_each_row_is_made_once_and_comes_in_the_order_that_is_asked_for(kept_rows, workers):
    node = mapped(source(), out=["z"], workers=workers)
    counted, rows = node.children[0].source, built(kept_rows, node)
    for epoch in range(3):
        order = np.random.default_rng(epoch).permutation(20).tolist()
        found = [(row[0].tolist(), row[1].tolist()) for row in rows(order)]
        assert found == [([2.0 * one] * 3, one % 2) for one in order]
    assert sorted(counted.calls) == list(range(20))
    assert node.children[0].column_names == ["z", "y"]


def test_an_operator_is_in_as_many_threads_as_it_had_workers(kept_rows):
    inside, most, lock, three = Counter(), Counter(), threading.Lock(), threading.Event()

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

    wide = mapped(source(num_parallel_workers=3), counted("wide", until_three_are_in_it), workers=3)
    assert len(list(built(kept_rows, mapped(wide, counted("narrow", lambda: None)))(range(18)))) == 18
    assert most == {"wide": 3, "narrow": 1}


def test_beyond_the_limit_nothing_is_kept_and_all_rows_still_come(kept_rows, told):
    node = mapped(source())
    counted, rows = node.children[0].source, built(kept_rows, node, limit=1000)
    assert [firsts(rows()) for _ in range(2)] == [TWICE[:20]] * 2
    assert len(counted.calls) == 40
    assert [line["limit"] for line in told("cache_full")] == [1000]
    assert [line["code"] for line in told("warning")] == ["cache_full"]


@pytest.mark.parametrize("most", [0, 5])
def test_a_source_that_is_only_iterated_is_read_once_to_its_end(kept_rows, most):
    passes = []

    def rows():
        passes.append(0)
        for value in range(most + 2 if most else 5):
            yield np.full(2, value), value

    epochs = streamed(kept_rows, rows, workers=3, num_samples=most)
    broken = epochs()
    next(broken)
    broken.close()  # an epoch that the loop leaves early is not kept
    for _ in range(3):
        epoch = epochs()
        assert firsts(next(epoch) for _ in range(5)) == TWICE[:5]
        assert most or not list(epoch)  # MindSpore asks for the end only where the script gives no number
    assert len(passes) == 2


@pytest.mark.parametrize("is_streamed", [False, True])
def test_what_the_training_changes_in_place_is_not_what_is_kept(kept_rows, is_streamed):
    """MindSpore hands the memory of a row on to the training where no batch is between."""
    given = [(np.full(3, one, np.float32), one % 2) for one in range(20)]
    epochs = streamed(kept_rows, lambda: iter(given)) if is_streamed else built(kept_rows, mapped(source()))
    for _ in range(3):
        seen = []
        for row in epochs():
            seen += firsts([row])
            row[0][:] = -1
        assert seen == TWICE[:20]


def test_a_map_that_changes_its_row_in_place_does_not_change_the_source(kept_rows):
    data = np.ones((4, 3), np.float32)

    def add_one(x):
        x += 1
        return x

    rows = built(kept_rows, mapped(source(source=data, column_names=["x"]), add_one))
    assert firsts(rows([0, 0, 1, 2])) == [2] * 4
    assert (data == 1).all()


def test_a_source_that_fills_one_array_again_and_again(kept_rows):
    def rows():
        array = np.zeros(3, np.float32)
        for value in range(30):
            array[:] = value
            yield array, value

    epochs = streamed(kept_rows, rows, workers=4)
    assert [firsts(epochs()) for _ in range(2)] == [TWICE] * 2


def test_two_iterators_at_once_of_a_source_with_another_order_each_time(kept_rows):
    order = iter([range(10), range(9, -1, -1)])
    epochs = streamed(kept_rows, lambda: ((np.full(2, value), value) for value in next(order)))
    both = list(zip(epochs(), epochs(), strict=True))
    assert [(one[1], other[1]) for one, other in both] == [(value, 9 - value) for value in range(10)]


def test_an_epoch_that_is_kept_is_read_to_its_end_though_another_iterator_goes_beyond_the_limit(kept_rows, told):
    passes = []

    def rows():
        passes.append(0)
        for value in range(10):
            yield (np.full(100, value, np.float64),)

    epoch = 10 * (kept_rows.ROW_BYTES + 800)  # bytes
    epochs = streamed(kept_rows, rows, epoch * 3 // 2, column_names=["x"])
    late = epochs()
    begun = [next(late)]
    assert len(list(epochs())) == 10  # this one is kept
    reader = epochs()
    read = [next(reader)]
    begun += late
    assert told("cache_full")
    read += reader
    assert [firsts(one) for one in (begun, read, epochs())] == [TWICE[:10]] * 3
    assert len(passes) == 3


def test_a_list_of_a_map_is_one_column_and_a_dict_is_not_kept(kept_rows):
    assert next(built(kept_rows, mapped(source(), lambda _: [1, 2, 3]))([0]))[0].tolist() == [1, 2, 3]
    node = mapped(source(), lambda x: {"n": int(x[0])})
    counted, rows = node.children[0].source, built(kept_rows, node)
    for _ in range(2):
        assert [row[0] for row in rows()] == [{"n": one} for one in range(20)]
    assert len(counted.calls) == 40


def test_functions_that_ran_in_processes_are_called_by_one_thread(kept_rows):
    """In a process each worker has objects of its own, in threads all share them."""
    buffer, inside = np.zeros(3, np.float32), []

    def fill(x):
        inside.append(1)
        buffer[:] = x
        threading.Event().wait(0.002)
        assert len(inside) == 1
        inside.pop()
        return buffer

    rows = built(kept_rows, mapped(source(), fill, workers=4, python_multiprocessing=True))
    assert firsts(rows()) == list(range(20))


def jitter(x):
    return x + np.random.default_rng().normal()


a_helper = type("Jitter", (), {"__call__": lambda _self, x: jitter(x)})()
DRAWING = (
    jitter,
    type("RandomCrop", (), {})(),
    type("CutOut", (), {})(),
    lambda x: 2 * jitter(x),
    lambda x: 2 * a_helper(x),
    lambda x: sorted(x, key=lambda _: np.random.default_rng().normal()),
)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (mapped(source()), ""),
        *((mapped(source(), one), "draws random numbers") for one in DRAWING),
        (mapped(source(has_batch_sampler=True)), "batch sampler"),
        (mapped(source(), out=["x", "z"]), "other columns"),
        (mapped(operator("BatchOp", source())), "those of"),
        (operator("BatchOp", source()), "those of BatchOp"),
        (mapped(operator("BatchOp", source(), source())), "several branches"),
    ],
)
def test_what_cannot_be_kept_is_refused(kept_rows, node, why):
    found = kept_rows.why_not(node, node, 0)
    assert (why in found) if why else found == ""


def test_rows_that_fail_and_are_skipped_are_not_kept(kept_rows, monkeypatch):
    config = SimpleNamespace(get_error_samples_mode=lambda: 2)
    monkeypatch.setitem(sys.modules, "mindspore.dataset", SimpleNamespace(config=config))
    assert "set_error_samples_mode" in kept_rows.why_not(mapped(source()), None, 0)


def test_the_description_has_a_source_in_the_place(kept_rows):
    leaf = {"type": "GeneratorOp", "node": 2, "name": "Rows", "rows": 20, "children": []}
    entry = {"type": "MapOp", "node": 1, "name": "fetch", "site": "train.py:9", "workers": 2, "children": [leaf]}
    kept_rows.redescribe(entry)
    told = {
        "type": "GeneratorOp",
        "node": 1,
        "name": "cache after fetch",
        "rows": 20,
        "site": "train.py:9",
        "children": [],
    }
    assert entry == told | {"workers": 1, "processes": False}


@pytest.mark.parametrize(("free", "container", "room"), [("800 kB", "max", 400 << 10), ("800 kB", "1000", 500)])
def test_a_cache_takes_half_of_the_memory_that_is_free_at_most(kept_rows, monkeypatch, tmp_path, free, container, room):
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


CHANGES = {
    "of its own": lambda made: vars(made).update(size=3),
    "held": lambda made: vars(made.held).update(share=0.7),
    "in a dict": lambda made: made.options.update(scale=3),
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_a_source_that_changes_are_made_anew(kept_rows, told, change):
    """In its second epoch, or in its tenth: what a short training does not show must not be wrong in a long one."""
    made = Growing()
    rows = built(kept_rows, source(source=made))
    first = [[row[0].tolist() for row in rows(range(4))] for _ in range(3)]
    assert first == [[[0.0], [0.5], [1.0], [1.5]]] * 3
    CHANGES[change](made)
    expected = [made[number][0].tolist() for number in range(4)]
    assert [[row[0].tolist() for row in rows(range(4))] for _ in range(2)] == [expected] * 2
    assert told("cache_stale")


def test_a_source_that_holds_its_own_methods_and_itself(kept_rows, told):
    """As a class does that chooses one of its methods once; and as a tree whose nodes know each other."""
    made = Growing()
    made.load = made.__getitem__
    made.parent = made.held.owner = made
    made.options["all"] = [made, made.options]
    rows = built(kept_rows, source(source=made))
    for _ in range(2):
        list(rows(range(4)))
    made.size = 2
    assert len(next(rows([0]))[0]) == 2
    assert [line["value"] for line in told("cache_stale")] == ["size"]


@pytest.mark.parametrize("closed", [True, False])
def test_a_variable_that_a_map_reads_counts_as_well(kept_rows, monkeypatch, closed):
    factor = 2.0

    def by_closure(x):
        return factor * x

    rows = built(kept_rows, mapped(source(), by_closure if closed else by_module))
    assert firsts(rows([1, 2])) == [2.0, 4.0]
    factor = 5.0
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 5.0)
    assert firsts(rows([1, 2])) == [5.0, 10.0]


def test_what_stays_is_kept(kept_rows, rec, told):
    """Lists and arrays that a source fills are no plain values, and a value that is no number equals itself."""
    made = Growing()
    made.missing = float("nan")
    rows = built(kept_rows, source(source=made))
    for _ in range(3):
        list(rows(range(4)))
        made.calls.append("a word")
    rec.event("the end")
    assert [event["e"] for event in told() if event["e"] in ("the end", "cache_stale")] == ["the end"]
