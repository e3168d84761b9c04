"""A batch goes in front of its maps in the copy that is executed, and its description says so."""

from importlib import import_module

import pytest

from pipeprof.collect.probe import describe


def Node(kind, *children, **facts):  # noqa: N802 - it makes objects of classes named as MindSpore's are
    made = type(f"{kind.removesuffix('Op')}Dataset", (), facts)()
    made.children = list(children)
    return made


@pytest.fixture
def order(probe):
    return import_module(f"{probe.package.__name__}.order")


def pipeline(**facts):
    return Node("BatchOp", Node("MapOp", Node("MapOp", Node("GeneratorOp"), name="a"), name="b"), **facts)


def chain(node):
    found = []
    while True:
        found.append(getattr(node, "name", describe._kind(node)))
        if not node.children:
            return found
        node = node.children[0]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1, ["b", "BatchOp", "a", "GeneratorOp"]), (2, ["b", "a", "BatchOp", "GeneratorOp"])],
)
def test_it_is_moved_in_front_of_so_many_maps(order, number, expected):
    assert chain(order.move(pipeline(), number)) == expected


@pytest.mark.parametrize(
    ("node", "number", "why"),
    [
        (pipeline(), 2, ""),
        (pipeline(), 3, "fewer than 3 maps feed the batch"),
        (pipeline(per_batch_map=print), 1, "the batch has a function of its own"),
        (pipeline(batch_size_func=print), 1, "the batch has a function of its own"),
        (Node("MapOp", Node("GeneratorOp")), 1, "MapOp is no batch"),
    ],
)
def test_where_it_cannot_be_moved(order, node, number, why):
    assert order.why_not(node, number) == why


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, ["b", "BatchOp", "ShuffleOp", "a", "ShuffleOp", "GeneratorOp"]),
        (2, ["b", "a", "BatchOp", "ShuffleOp", "ShuffleOp", "GeneratorOp"]),
    ],
)
def test_a_shuffle_goes_along_in_front_of_it(order, number, expected):
    """One that feeds the batch, and one between two maps where both come after; the one at the source stays."""
    source = Node("ShuffleOp", Node("GeneratorOp"))
    between = Node("ShuffleOp", Node("MapOp", source, name="a")) if number == 2 else Node("MapOp", source, name="a")
    feeding = Node("MapOp", between, name="b")
    moved = Node("BatchOp", feeding if number == 2 else Node("ShuffleOp", feeding))
    assert order.why_not(moved, number) == ""
    assert chain(order.move(moved, number)) == expected


def test_nothing_else_is_passed(order):
    """Behind a repeat or a filter a batch would hold other rows."""
    for kind in ("RepeatOp", "FilterOp", "TakeOp", "ZipOp"):
        node = Node("BatchOp", Node(kind, Node("MapOp", Node("GeneratorOp"))))
        assert "fewer than 1 maps" in order.why_not(node, 1)


def test_the_description_of_what_was_between_goes_along(order):
    source = {"type": "GeneratorOp", "node": 3}
    shuffle = {"type": "ShuffleOp", "node": 1, "children": [{"type": "MapOp", "node": 2, "children": [source]}]}
    entry = {"type": "BatchOp", "node": 0, "children": [shuffle]}
    order.redescribe(entry, 1)
    shuffled = {"type": "ShuffleOp", "node": 1, "children": [source]}
    assert entry == {"type": "MapOp", "node": 2, "children": [{"type": "BatchOp", "node": 0, "children": [shuffled]}]}


def test_the_description_has_the_new_order_and_the_numbers_of_the_users_graph(order):
    source = {"type": "GeneratorOp", "node": 3}
    maps = {"type": "MapOp", "node": 1, "children": [{"type": "MapOp", "node": 2, "children": [source]}]}
    entry = {"type": "BatchOp", "node": 0, "batch": 32, "children": [maps]}
    order.redescribe(entry, 2)
    batch = {"type": "BatchOp", "node": 0, "batch": 32, "children": [source]}
    assert entry == {"type": "MapOp", "node": 1, "children": [{"type": "MapOp", "node": 2, "children": [batch]}]}
