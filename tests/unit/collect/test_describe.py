"""What a dataset is made of, read from objects shaped like MindSpore's."""

import functools
import itertools

import pytest


def made(name, children=(), base=object, **attributes):
    node = type(name, (base,), {})()
    node.__dict__.update(attributes)
    node.children = list(children)
    return node


class Native:
    """A C++ operation."""

    def parse(self):
        raise AssertionError("describing must not run anything")


class Augment:
    def __call__(self, row):
        return row


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
    source = made("MnistDataset", num_parallel_workers=4)
    found = describe(made("BatchDataset", [made("RepeatDataset", [source])], batch_size=32, num_parallel_workers=2))
    assert (found["type"], found["batch"], found["workers"]) == ("BatchOp", 32, 2)
    assert found["children"][0]["type"] == "RepeatOp"
    assert found["children"][0]["children"][0]["type"] == "MnistOp"


def test_a_subclass_of_a_known_dataset_is_that_dataset(describe):
    base = type("GeneratorDataset", (), {})
    assert describe(made("MyOwnDataset", base=base, source=double))["type"] == "GeneratorOp"


@pytest.mark.parametrize(
    ("operations", "python", "name"),
    [
        ([double], True, "double"),
        (double, True, "double"),
        ([Native()], False, "Native"),
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
    found = describe(made("MapDataset", operations=operations, num_parallel_workers=1))
    assert (found["python"], found["name"]) == (python, name)


def test_an_operation_that_says_how_it_is_implemented_is_believed(probe):
    operation = Native()
    operation.implementation = type("Kind", (), {"value": "py"})()
    assert probe.describe.is_python(operation)


@pytest.mark.parametrize(("workers", "processes"), [(1, False), (2, True), (None, False)])
def test_a_generator_has_processes_only_with_several_workers(describe, workers, processes):
    node = made("GeneratorDataset", source=[1, 2], python_multiprocessing=True, num_parallel_workers=workers)
    assert describe(node)["processes"] is processes


def test_a_map_of_native_operations_has_no_processes(describe):
    assert describe(made("MapDataset", operations=[Native()], python_multiprocessing=True))["processes"] is False


def test_a_batch_with_a_function_runs_python(describe):
    assert describe(made("BatchDataset", per_batch_map=double, batch_size=4))["python"] is True
    assert describe(made("BatchDataset", per_batch_map=None, batch_size=4))["python"] is False


def test_a_batch_size_that_is_computed_is_unknown(describe):
    assert describe(made("BatchDataset", batch_size=double))["batch"] is None


def test_a_filter_names_its_predicate(describe):
    found = describe(made("FilterDataset", predicate=double))
    assert (found["name"], found["python"]) == ("double", True)


class Hostile:
    """A callable whose text must not be asked for."""

    def __repr__(self):
        raise AssertionError("repr was asked for")

    def __call__(self):
        raise AssertionError("it was called")


def test_nothing_is_called_and_no_repr_is_asked_for(describe):
    assert describe(made("GeneratorDataset", source=Hostile()))["name"] == "Hostile"


def test_a_local_function_is_named_without_noise(probe):
    def inner():
        pass

    assert probe.describe.callable_name(inner) == "test_a_local_function_is_named_without_noise.inner"


def chain(length):
    node = made("MnistDataset")
    for _ in range(length):
        node = made("RepeatDataset", [node])
    return node


def size(found):
    count, todo = 0, [found]
    while todo:
        count += 1
        todo.extend(todo.pop().get("children", []))
    return count


def test_a_long_chain_is_described_whole(describe):
    assert size(describe(chain(300))) == 301


def test_a_graph_that_is_too_large_is_cut_off(probe, describe):
    wide = made("ConcatDataset", [made("MnistDataset") for _ in range(3 * probe.describe.MAX_NODES)])
    deep = made("ZipDataset", [wide, wide])
    assert size(describe(deep)) < 4 * probe.describe.MAX_NODES


@pytest.mark.parametrize(("source", "iterated"), [(double, True), (iter([1]), True), ([1, 2], False)])
def test_workers_are_of_sources_whose_rows_have_numbers(describe, source, iterated):
    """MindSpore takes the rows of others one after the other."""
    node = made("GeneratorDataset", source=source, num_parallel_workers=4, python_multiprocessing=True)
    found = describe(node)
    assert (found["iterated"], found["workers"], found["processes"]) == (iterated, 1 if iterated else 4, not iterated)


def test_of_a_generator_the_function_that_made_it_is_named_and_not_the_copier_around_it(describe):
    def rows():
        yield from range(100)

    kept, handed_out = itertools.tee(rows())
    next(handed_out)
    source = type("_GeneratorWrapper", (), {})()
    source.generator = kept
    found = describe(made("GeneratorDataset", source=source))
    assert found["name"].endswith("rows")
    assert found["code"] == f"{__file__}:{rows.__code__.co_firstlineno}"
