"""The executed copy gets other settings, the user's objects never do; nothing that goes wrong reaches the training."""

import copy
from importlib import import_module
from types import SimpleNamespace

import pytest


class Dataset:
    """Built as MindSpore's are: the graph is copied, and the copy is parsed from the sources to the sink."""

    def __init__(self, *children, workers=1, **facts):
        self.children = list(children)
        self.num_parallel_workers = workers
        self.__dict__.update(facts)
        self.seen = []

    def parse_tree(self, getter_mode=False):
        for child in self.children:
            child.parse_tree(getter_mode)
        self.seen.append((type(self).__name__, self.num_parallel_workers))

    def build(self, getter_mode=False):
        copied = copy.deepcopy(self)
        copied.parse_tree(getter_mode)
        return copied


class GeneratorDataset(Dataset):
    pass


class MapDataset(Dataset):
    pass


class BatchDataset(Dataset):
    pass


@pytest.fixture
def override(probe):
    module = import_module(f"{probe.package.__name__}.override")
    original = Dataset.parse_tree
    yield module
    Dataset.parse_tree = original


@pytest.fixture
def wish(rec):
    def set_wish(**spec):
        rec._options = {"override": {"node": None, "site": None, "workers": None, "prefetch": None} | spec}

    return set_wish


def chain():
    source = GeneratorDataset(python_multiprocessing=True)
    return BatchDataset(MapDataset(MapDataset(source, python_multiprocessing=False), python_multiprocessing=False))


TREE = SimpleNamespace(number=0)
VISIBLE = {"hidden": False, "site": "train.py:7"}


def build(override, dataset, facts=VISIBLE, **how):
    wanted = override.begin(TREE, facts, dataset)
    try:
        return dataset.build(**how)
    finally:
        override.end(TREE, wanted)


def workers(dataset):
    return [dataset.num_parallel_workers, *(count for child in dataset.children for count in workers(child))]


def test_only_the_copy_of_the_operator_changes(override, wish, told):
    wish(node=2, op_type="MapOp", workers=2, processes=True)
    dataset = chain()
    built = build(override, dataset)
    assert workers(built) == [1, 1, 2, 1]
    assert built.children[0].children[0].python_multiprocessing is True
    assert workers(dataset) == [1, 1, 1, 1]
    assert not any(override.MARK in vars(node) for node in (dataset, dataset.children[0].children[0]))
    found = told("override")[0]
    assert (found["node"], found["before"]["workers"], found["after"]["workers"]) == (2, 1, 2)
    assert (found["before"]["processes"], found["after"]["processes"]) == (False, True)
    assert workers(dataset.build()) == [1, 1, 1, 1]  # nothing stays behind


def test_an_operator_of_the_same_name_is_the_one_that_is_meant(override, wish):
    dataset = chain()
    dataset.children[0].operations = [len]
    wish(node=1, op_type="MapOp", name="len", workers=2)
    assert workers(build(override, dataset)) == [1, 2, 1, 1]


def test_without_a_number_the_kth_of_its_type_is_meant(override, wish):
    wish(op_type="MapOp", ordinal=1, of=2, workers=3)
    assert workers(build(override, chain())) == [1, 1, 3, 1]


def test_a_cache_is_behind_the_kth_of_its_type_wherever_that_stands(override, monkeypatch):
    monkeypatch.setattr(override.kept_rows, "why_not", lambda _dataset, _node, number: f"number {number}")
    assert override.find(chain(), {"op_type": "MapOp", "ordinal": 1, "of": 2, "cache": 1})[1] == "number 2"


@pytest.mark.parametrize(
    "spec",
    [
        {"node": 0, "op_type": "MapOp"},
        {"node": 9, "op_type": "MapOp"},
        {"node": None, "op_type": "MapOp", "of": 3},
        {"node": 0, "op_type": "BatchOp", "processes": True},
        {"node": 1, "op_type": "MapOp", "name": "rotate"},
    ],
)
def test_what_does_not_fit_is_left_alone_and_said(override, wish, told, spec):
    wish(workers=2, **spec)
    assert workers(build(override, chain())) == [1, 1, 1, 1]
    assert told("override") == []
    assert len(told("override_missed")) == 1


@pytest.mark.parametrize("facts", [{"hidden": True, "site": "train.py:7"}, {"hidden": False, "site": "eval.py:3"}])
def test_other_iterators_are_left_alone(override, wish, told, facts):
    wish(node=1, op_type="MapOp", workers=2, site="train.py:7")
    assert workers(build(override, chain(), facts)) == [1, 1, 1, 1]
    assert told("override") + told("override_missed") == []


def test_asking_for_sizes_changes_nothing(override, wish, told):
    wish(node=1, op_type="MapOp", workers=2)
    assert workers(build(override, chain(), getter_mode=True)) == [1, 1, 1, 1]
    assert told("override") == []


def test_prefetch_is_set_only_while_the_tree_is_built(override, wish, told, monkeypatch):
    size = [16]
    config = SimpleNamespace(get_prefetch_size=lambda: size[0], set_prefetch_size=lambda new: size.__setitem__(0, new))
    monkeypatch.setitem(__import__("sys").modules, "mindspore.dataset", SimpleNamespace(config=config))
    wish(node=1, op_type="MapOp", prefetch=64)
    dataset = chain()
    wanted = override.begin(TREE, VISIBLE, dataset)
    assert size == [64]
    dataset.build()
    override.end(TREE, wanted)
    assert size == [16]
    assert told("override")[0]["after"]["prefetch"] == 64


def test_shared_memory_and_threads_are_set_where_they_are_wished_for(override, wish, rec):
    given = []
    mindspore = SimpleNamespace(set_context=lambda **options: given.append(options))
    wish(node=0, max_rowsize=5)
    override.set_threads(mindspore)
    assert given == []
    for most, expected in (([-1, -1], [5, 5]), (-1, 5)):
        dataset = MapDataset(GeneratorDataset(), max_rowsize=most)
        assert build(override, dataset).max_rowsize == expected
        assert dataset.max_rowsize == most
    wish(changes=[], runtime_threads=2)
    override.set_threads(mindspore)
    assert given == [{"runtime_num_threads": 2}]
    assert workers(build(override, chain())) == [1, 1, 1, 1]


def test_a_build_that_fails_leaves_nothing_behind(override, wish, told):
    wish(node=1, op_type="MapOp", workers=2)
    dataset = chain()
    wanted = override.begin(TREE, VISIBLE, dataset)
    override.end(TREE, wanted)
    assert override.MARK not in vars(dataset.children[0])
    assert told("override_missed")[0]["why"] == "the operator was not parsed"


class Fussy(MapDataset):
    def __setattr__(self, name, value):
        if (name, value) == ("num_parallel_workers", 2):
            raise ValueError("one is enough")
        super().__setattr__(name, value)


def test_what_could_not_be_changed_is_not_told_as_changed(override, wish, told):
    wish(node=1, op_type="MapOp", workers=2)
    assert workers(build(override, BatchDataset(Fussy(GeneratorDataset())))) == [1, 1, 1]
    assert told("override") == []
    assert [line["why"] for line in told("override_missed")] == ["ValueError: one is enough"]


def test_several_operators_change_together_or_not_at_all(override, wish, told):
    wish(changes=[{"node": 1, "op_type": "MapOp", "workers": 2}, {"node": 3, "op_type": "GeneratorOp", "workers": 4}])
    assert workers(build(override, chain())) == [1, 2, 1, 4]
    assert [line["node"] for line in told("override")] == [1, 3]
    wish(changes=[{"node": 1, "op_type": "MapOp", "workers": 2}, {"node": 2, "op_type": "BatchOp", "workers": 4}])
    assert workers(build(override, chain())) == [1, 1, 1, 1]
    assert len(told("override_missed")) == 1


def test_the_description_says_what_is_executed(override, wish):
    source = {"type": "GeneratorOp", "node": 3, "workers": 1, "python": True, "processes": False}
    below = {"type": "MapOp", "node": 2, "workers": 1, "python": False, "processes": False, "children": [source]}
    middle = {"type": "MapOp", "node": 1, "workers": 1, "python": True, "processes": False, "children": [below]}
    graph = {"type": "BatchOp", "node": 0, "workers": 1, "children": [middle]}
    changes = [
        {"node": 1, "workers": 2, "processes": True},
        {"node": 2, "processes": True},
        {"node": 3, "processes": True},
    ]
    wish(changes=changes)
    build(override, chain(), VISIBLE | {"graph": graph})
    assert (middle["workers"], middle["processes"]) == (2, True)
    assert below["processes"] is False  # runs no Python
    assert source["processes"] is False  # one worker of a source is a thread
    assert graph["workers"] == 1
