"""The executed copy gets other settings, the user's objects never do; nothing that goes wrong reaches the training.

So of operators of a dataset, of a batch that goes in front of its maps, and of the arguments of a DataLoader.
"""

import copy
import functools
import sys
from types import SimpleNamespace

import pytest

from tests.unit.collect.conftest import operator


class Dataset:
    """Built as MindSpore's are: the graph is copied, and the copy is parsed from the sources to the sink."""

    num_parallel_workers = 1

    def parse_tree(self, getter_mode=False):
        for child in self.children:
            child.parse_tree(getter_mode)

    def build(self, getter_mode=False):
        copied = copy.deepcopy(self)
        copied.parse_tree(getter_mode)
        return copied


dataset_of = functools.partial(operator, base=Dataset)


@pytest.fixture
def override(probe):
    original = Dataset.parse_tree
    yield probe.override
    Dataset.parse_tree = original


@pytest.fixture
def wish(rec):
    def set_wish(**spec):
        rec._options = {"override": {"node": None, "site": None, "workers": None, "prefetch": None} | spec}

    return set_wish


def chain():
    source = dataset_of("GeneratorOp", python_multiprocessing=True)
    below = dataset_of("MapOp", source, python_multiprocessing=False)
    return dataset_of("BatchOp", dataset_of("MapOp", below, python_multiprocessing=False, operations=[len]))


TREE = SimpleNamespace(number=0)
VISIBLE = {"hidden": False, "site": "train.py:7"}
UNCHANGED = [1, 1, 1, 1]


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
    assert workers(dataset) == UNCHANGED
    assert not any(override.MARK in vars(node) for node in (dataset, dataset.children[0].children[0]))
    found = told("override")[0]
    assert (found["node"], found["before"]["workers"], found["after"]["workers"]) == (2, 1, 2)
    assert (found["before"]["processes"], found["after"]["processes"]) == (False, True)
    assert workers(dataset.build()) == UNCHANGED  # nothing stays behind


FIRST, SOURCE = {"node": 1, "op_type": "MapOp", "workers": 2}, {"node": 3, "op_type": "GeneratorOp", "workers": 4}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (FIRST | {"name": "len"}, [1, 2, 1, 1]),
        ({"op_type": "MapOp", "ordinal": 1, "of": 2, "workers": 3}, [1, 1, 3, 1]),
        ({"changes": [FIRST, SOURCE]}, [1, 2, 1, 4]),
        (FIRST | {"node": 0}, None),
        (FIRST | {"node": 4}, None),
        (FIRST | {"node": None, "of": 3}, None),
        (FIRST | {"node": 0, "op_type": "BatchOp", "processes": True}, None),
        (FIRST | {"name": "rotate"}, None),
        ({"changes": [FIRST, FIRST | {"node": 2, "op_type": "BatchOp"}]}, None),  # together, or not at all
    ],
)
def test_the_operators_that_are_meant_change_and_what_does_not_fit_is_left_alone_and_said(
    override, wish, told, spec, found
):
    wish(**spec)
    assert workers(build(override, chain())) == (found or UNCHANGED)
    nodes = [one.get("node") for one in spec.get("changes", [spec])] if found else []
    assert [line["node"] for line in told("override")] == nodes
    assert len(told("override_missed")) == (not found)


def test_a_cache_is_behind_the_kth_of_its_type_wherever_that_stands(override, monkeypatch):
    monkeypatch.setattr(override.kept_rows, "why_not", lambda _dataset, _node, number: f"number {number}")
    assert override.find(chain(), {"op_type": "MapOp", "ordinal": 1, "of": 2, "cache": 1})[1] == "number 2"


@pytest.mark.parametrize(
    ("facts", "how"), [({"hidden": True}, {}), ({"site": "eval.py:3"}, {}), ({}, {"getter_mode": True})]
)
def test_other_iterators_are_left_alone_and_asking_for_sizes_changes_nothing(override, wish, told, facts, how):
    wish(**FIRST, site="train.py:7")
    assert workers(build(override, chain(), VISIBLE | facts, **how)) == UNCHANGED
    assert (told("override"), len(told("override_missed"))) == ([], len(how))


def test_prefetch_is_set_only_while_the_tree_is_built(override, wish, told, monkeypatch):
    size = [16]
    config = SimpleNamespace(get_prefetch_size=lambda: size[0], set_prefetch_size=lambda new: size.__setitem__(0, new))
    monkeypatch.setitem(sys.modules, "mindspore.dataset", SimpleNamespace(config=config))
    wish(node=1, op_type="MapOp", prefetch=64)
    dataset = chain()
    wanted = override.begin(TREE, VISIBLE, dataset)
    assert size == [64]
    dataset.build()
    override.end(TREE, wanted)
    assert size == [16]
    assert told("override")[0]["after"]["prefetch"] == 64


def test_shared_memory_and_threads_are_set_where_they_are_wished_for(override, wish):
    given = []
    mindspore = SimpleNamespace(set_context=lambda **options: given.append(options))
    wish(node=0, max_rowsize=5)
    override.set_threads(mindspore)
    assert given == []
    for most, expected in (([-1, -1], [5, 5]), (-1, 5)):
        dataset = dataset_of("MapOp", dataset_of("GeneratorOp"), max_rowsize=most)
        assert build(override, dataset).max_rowsize == expected
        assert dataset.max_rowsize == most
    wish(changes=[], runtime_threads=2)
    override.set_threads(mindspore)
    assert given == [{"runtime_num_threads": 2}]
    assert workers(build(override, chain())) == UNCHANGED


class Fussy(Dataset):
    def __setattr__(self, name, value):
        if (name, value) == ("num_parallel_workers", 2):
            raise ValueError("one is enough")
        super().__setattr__(name, value)


def test_what_was_not_or_could_not_be_changed_leaves_nothing_behind_and_is_told(override, wish, told):
    wish(**FIRST)
    dataset = chain()
    override.end(TREE, override.begin(TREE, VISIBLE, dataset))
    assert override.MARK not in vars(dataset.children[0])
    fussy = dataset_of("BatchOp", operator("MapOp", dataset_of("GeneratorOp"), base=Fussy))
    assert workers(build(override, fussy)) == [1, 1, 1]
    assert told("override") == []
    assert [line["why"] for line in told("override_missed")] == [override.NOT_PARSED, "ValueError: one is enough"]


def test_the_description_says_what_is_executed(override, wish):
    source = {"type": "GeneratorOp", "node": 3, "workers": 1, "python": True, "processes": False}
    below = {"type": "MapOp", "node": 2, "workers": 1, "python": False, "processes": False, "children": [source]}
    middle = {"type": "MapOp", "node": 1, "workers": 1, "python": True, "processes": False, "children": [below]}
    graph = {"type": "BatchOp", "node": 0, "workers": 1, "children": [middle]}
    wish(changes=[{"node": node, "processes": True} | ({"workers": 2} if node == 1 else {}) for node in (1, 2, 3)])
    build(override, chain(), VISIBLE | {"graph": graph})
    assert (middle["workers"], middle["processes"]) == (2, True)
    assert below["processes"] is False  # runs no Python
    assert source["processes"] is False  # one worker of a source is a thread
    assert graph["workers"] == 1


def pipeline(text, **facts):
    """A chain from the sink; words that are no kind name maps."""
    name, _, below = text.partition(" ")
    kind = name if name.endswith("Op") else "MapOp"
    return operator(kind, *([pipeline(below)] if below else []), name=name, **facts)


def names(node):
    return " ".join([node.name, *map(names, node.children)])


@pytest.mark.parametrize(
    ("before", "number", "after"),
    [
        ("BatchOp b a GeneratorOp", 1, "b BatchOp a GeneratorOp"),
        ("BatchOp b a GeneratorOp", 2, "b a BatchOp GeneratorOp"),
        # A shuffle that feeds the batch goes along, and one between two maps where both come after; none at the source.
        ("BatchOp ShuffleOp b a ShuffleOp GeneratorOp", 1, "b BatchOp ShuffleOp a ShuffleOp GeneratorOp"),
        ("BatchOp b ShuffleOp a ShuffleOp GeneratorOp", 2, "b a BatchOp ShuffleOp ShuffleOp GeneratorOp"),
    ],
)
def test_a_batch_is_moved_in_front_of_so_many_maps(probe, before, number, after):
    batch = pipeline(before)
    assert probe.order.why_not(batch, number) == ""
    assert names(probe.order.move(batch, number)) == after


@pytest.mark.parametrize(
    ("node", "number", "why"),
    [
        (pipeline("BatchOp b a GeneratorOp"), 3, "fewer than 3 maps feed the batch"),
        (pipeline("BatchOp b GeneratorOp", per_batch_map=print), 1, "the batch has a function of its own"),
        (pipeline("BatchOp b GeneratorOp", batch_size_func=print), 1, "the batch has a function of its own"),
        (pipeline("a GeneratorOp"), 1, "MapOp is no batch"),
        # Behind these a batch would hold other rows.
        (pipeline("BatchOp RepeatOp a GeneratorOp"), 1, "fewer than 1 maps feed the batch"),
        (pipeline("BatchOp FilterOp a GeneratorOp"), 1, "fewer than 1 maps feed the batch"),
        (pipeline("BatchOp TakeOp a GeneratorOp"), 1, "fewer than 1 maps feed the batch"),
        (pipeline("BatchOp ZipOp a GeneratorOp"), 1, "fewer than 1 maps feed the batch"),
    ],
)
def test_where_a_batch_cannot_be_moved(probe, node, number, why):
    assert probe.order.why_not(node, number) == why


def told_as(*kinds):
    """The description of a chain: type and number of each, from the sink."""
    entry = {"type": kinds[0][0], "node": kinds[0][1], **({"batch": 32} if kinds[0][0] == "BatchOp" else {})}
    return entry | ({"children": [told_as(*kinds[1:])]} if kinds[1:] else {})


BATCH, A, B, SHUFFLE, ROWS = ("BatchOp", 0), ("MapOp", 2), ("MapOp", 1), ("ShuffleOp", 1), ("GeneratorOp", 3)


@pytest.mark.parametrize(
    ("before", "number", "after"),
    [
        ((BATCH, SHUFFLE, A, ROWS), 1, (A, BATCH, SHUFFLE, ROWS)),
        ((BATCH, B, A, ROWS), 2, (B, A, BATCH, ROWS)),
    ],
)
def test_the_description_has_the_new_order_and_the_numbers_of_the_users_graph(probe, before, number, after):
    entry = told_as(*before)
    probe.order.redescribe(entry, number)
    assert entry == told_as(*after)


class Loader:
    """Takes its arguments as PyTorch's and MindSpore's do, and refuses what they refuse."""

    def __init__(
        self, dataset, batch_size=1, num_workers=0, collate_fn=None, *, prefetch_factor=None, persistent_workers=False
    ):
        if not num_workers and (prefetch_factor is not None or persistent_workers):
            raise ValueError("needs num_workers > 0")
        self.made = (dataset, batch_size, collate_fn)
        prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.settings = num_workers, prefetch_factor, persistent_workers
        self.num_workers, self.prefetch_factor, self.persistent_workers = self.settings


@pytest.fixture
def make(probe, rec, monkeypatch):
    """`make(wish, *arguments)`: a loader made where the wish says."""
    monkeypatch.setattr(probe.arguments.where, "site", lambda _frame: "train.py:7")
    original = Loader.__init__

    def made(wish, *args, **kwargs):
        rec._options = {"override": wish and {"loader": True, "site": "train.py:7"} | wish}
        probe.arguments.install(Loader)
        try:
            return Loader(*args, **kwargs)
        finally:
            Loader.__init__ = original

    return made


ALL = {"workers": 3, "prefetch": 5, "persistent": True}
BEFORE = {"workers": 1, "prefetch": None, "persistent": False}
OF_STAGE = {"changes": [{"node": 0, "workers": 2, "prefetch": None, "persistent": True}]}


@pytest.mark.parametrize(
    ("wish", "args", "kwargs", "settings", "told"),
    [
        (ALL, (4, 1), {}, (3, 5, True), {"node": None, "before": BEFORE, "after": ALL}),
        (ALL, (4,), {"num_workers": 1}, (3, 5, True), {"node": None, "before": BEFORE, "after": ALL}),
        (OF_STAGE, (4,), {}, (2, 2, True),
         {"node": 0, "before": {"workers": 0, "persistent": False}, "after": {"workers": 2, "persistent": True}}),
        ({"workers": 0}, (4,), {"num_workers": 2, "prefetch_factor": 4, "persistent_workers": True}, (0, None, False),
         {"node": None, "before": {"workers": 2}, "after": {"workers": 0}}),
        ({"persistent": True}, (4,), {}, (0, None, False), {"why": "ValueError: needs num_workers > 0"}),  # refused
        (None, (4,), {}, (0, None, False), None),
        ({"site": "other.py:1", "workers": 2}, (4,), {}, (0, None, False), None),
    ],
)  # fmt: skip
def test_arguments_of_the_loader_that_is_meant_are_replaced_wherever_they_are_written_as_far_as_it_takes_them(
    make, said, wish, args, kwargs, settings, told
):
    loader = make(wish, [1], *args, **kwargs)
    assert (loader.settings, loader.made) == (settings, ([1], 4, None))
    assert said == ([("override_missed" if "why" in told else "override", told)] if told else [])


def test_a_wrong_call_fails_as_without_us_and_without_a_wish_the_class_is_not_hooked(make, probe, rec):
    with pytest.raises(TypeError, match="batches"):
        make({"workers": 2}, [1], batches=3)
    original = Loader.__init__
    rec._options = {"override": {"workers": 2, "site": "train.py:7"}}  # of an operator
    probe.arguments.install(Loader)
    assert Loader.__init__ is original
