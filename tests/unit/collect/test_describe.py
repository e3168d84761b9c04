"""What a dataset is made of, read from objects shaped like MindSpore's."""

import functools
import itertools

import pytest

from tests.unit.collect.conftest import operator


class Native:
    """A C++ operation, or what MindSpore says is none."""

    def __init__(self, implementation=None):
        if implementation:
            self.implementation = type("Kind", (), {"value": implementation})()

    def parse(self):
        raise AssertionError("describing must not run anything")


class Augment:
    """A callable whose text must not be asked for."""

    def __repr__(self):
        raise AssertionError("repr was asked for")

    def __call__(self, _row):
        raise AssertionError("it was called")


def double(row):
    return row


def composed(*parts, module="mindspore.dataset.transforms.transforms"):
    """As MindSpore composes operations, which wraps functions; or another library, whose own MindSpore calls."""
    wrapped = [type("FuncWrapper", (), {"transform": staticmethod(one)})() if one is double else one for one in parts]
    return type("Compose", (Native,), {"__module__": module, "transforms": wrapped})()


@pytest.fixture
def describe(probe):
    return probe.describe.describe


def test_a_graph_is_nested_from_the_sink(describe):
    repeated = operator("RepeatOp", operator("MnistOp", num_parallel_workers=4))
    found = describe(operator("BatchOp", repeated, batch_size=32, num_parallel_workers=2))
    assert (found["type"], found["batch"], found["workers"]) == ("BatchOp", 32, 2)
    assert found["children"][0]["type"] == "RepeatOp"
    assert found["children"][0]["children"][0]["type"] == "MnistOp"


@pytest.mark.parametrize(
    ("operations", "python", "name"),
    [
        ([double], True, "double"),
        (double, True, "double"),
        ([Native()], False, "Native"),
        ([Native("py")], True, "Native"),
        ([Native(), Augment()], True, "Native, Augment"),
        ([functools.partial(double, 1)], True, "double"),
        ([len], True, "len"),
        ([composed(Native(), composed(double)), Native()], True, "Native, double, Native"),
        ([composed(Native())], False, "Native"),
        ([composed(Native(), module="torchvision.transforms")], False, "Compose"),
        ([], False, ""),
        (None, False, ""),
    ],
)
def test_a_map_says_what_it_runs_and_whether_that_is_python(describe, operations, python, name):
    found = describe(operator("MapOp", operations=operations, python_multiprocessing=True))
    assert (found["python"], found["name"], found["processes"]) == (python, name, python)


def test_a_local_function_is_named_without_noise(probe):
    def inner():
        pass

    assert probe.describe.callable_name(inner) == "test_a_local_function_is_named_without_noise.inner"


@pytest.mark.parametrize(
    ("kind", "facts", "found"),
    [
        ("BatchOp", {"per_batch_map": double, "batch_size": 4}, {"python": True, "batch": 4}),
        ("BatchOp", {"per_batch_map": None, "batch_size": double}, {"python": False, "batch": None}),  # it is computed
        ("FilterOp", {"predicate": double}, {"python": True, "name": "double"}),
        ("GeneratorOp", {"source": Augment()}, {"name": "Augment"}),
        ("MyOwnDataset", {"source": double, "base": type("GeneratorDataset", (), {})}, {"type": "GeneratorOp"}),
        # Workers are of sources whose rows have numbers, and several are needed for processes.
        *(
            ("GeneratorOp", {"source": source, "num_parallel_workers": workers, "python_multiprocessing": True}, found)
            for source, workers, found in (
                ([1, 2], 1, {"iterated": False, "workers": 1, "processes": False}),
                ([1, 2], 2, {"iterated": False, "workers": 2, "processes": True}),
                ([1, 2], None, {"iterated": False, "workers": 1, "processes": False}),
                (double, 4, {"iterated": True, "workers": 1, "processes": False}),
                (iter([1]), 4, {"iterated": True, "workers": 1, "processes": False}),
            )
        ),
    ],
)
def test_what_an_operator_is_and_runs(describe, kind, facts, found):
    described = describe(operator(kind, **facts))
    assert {name: described[name] for name in found} == found


def size(found):
    count, todo = 0, [found]
    while todo:
        count += 1
        todo.extend(todo.pop().get("children", []))
    return count


def test_a_long_chain_is_described_whole_and_a_graph_that_is_too_large_is_cut_off(probe, describe):
    chain = operator("MnistOp")
    for _ in range(300):
        chain = operator("RepeatOp", chain)
    assert size(describe(chain)) == 301
    wide = operator("ConcatOp", *(operator("MnistOp") for _ in range(3 * probe.describe.MAX_NODES)))
    assert size(describe(operator("ZipOp", wide, wide))) < 4 * probe.describe.MAX_NODES


def test_of_a_generator_the_function_that_made_it_is_named_and_not_the_copier_around_it(describe):
    def rows():
        yield from range(100)

    kept, handed_out = itertools.tee(rows())
    next(handed_out)
    source = type("_GeneratorWrapper", (), {})()
    source.generator = kept
    found = describe(operator("GeneratorOp", source=source))
    assert found["name"].endswith("rows")
    assert found["code"] == f"{__file__}:{rows.__code__.co_firstlineno}"
