"""A batch goes in front of its maps in the copy that is executed, and its description says so."""

from __future__ import annotations

from importlib import import_module

import pytest


class Node:
    def __init__(self, kind, *children, **facts):
        self.kind = kind
        self.children = list(children)
        self.__dict__.update(facts)


@pytest.fixture
def order(probe):
    return import_module(f"{probe.package.__name__}.order")


def kind_of(node):
    return node.kind


def pipeline(**facts):
    return Node("BatchOp", Node("MapOp", Node("MapOp", Node("GeneratorOp"), name="a"), name="b"), **facts)


def chain(node):
    found = []
    while True:
        found.append(getattr(node, "name", node.kind))
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
    assert order.why_not(node, number, kind_of) == why


def test_the_description_has_the_new_order_and_the_numbers_of_the_users_graph(order):
    source = {"type": "GeneratorOp", "node": 3}
    maps = {"type": "MapOp", "node": 1, "children": [{"type": "MapOp", "node": 2, "children": [source]}]}
    entry = {"type": "BatchOp", "node": 0, "batch": 32, "children": [maps]}
    order.redescribe(entry, 2)
    batch = {"type": "BatchOp", "node": 0, "batch": 32, "children": [source]}
    assert entry == {"type": "MapOp", "node": 1, "children": [{"type": "MapOp", "node": 2, "children": [batch]}]}
