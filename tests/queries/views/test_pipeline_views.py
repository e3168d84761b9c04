import pytest
from table_rows import KEY, depths

BATCH, MAP, SOURCE = (("BatchOp", 8, False), ("MapOp", 8, False), ("GeneratorOp", 8, False))


def ops(*facts):
    """Operators 0, 1, ... from (op_type, capacity, inlined)."""
    return [
        KEY | {"op_id": number, "op_type": kind, "capacity": capacity, "inlined": inlined}
        for number, (kind, capacity, inlined) in enumerate(facts)
    ]


def edges(*pairs):
    return [KEY | {"producer_id": producer, "consumer_id": consumer} for producer, consumer in pairs]


LINKS = "SELECT consumer_id, producer_id FROM queue_link ORDER BY consumer_id, producer_id"


def test_the_tree_names_consumer_key_and_role(look):
    tables = {
        "pipeline": [KEY | {"pipeline_key": "a", "role": "eval"}],
        "pipeline_op": ops(BATCH, ("MapOp", 8, None)),
        "pipeline_edge": edges((1, 0)),
    }
    text = "SELECT pipeline_key, role, op_id, consumer_id, inlined FROM pipeline_tree ORDER BY op_id"
    assert look(text, tables) == [("a", "eval", 0, None, False), ("a", "eval", 1, 0, False)]


@pytest.mark.parametrize(
    ("graph", "pairs", "links"),
    [
        pytest.param((BATCH, MAP, SOURCE), [(1, 0), (2, 1)], [(-1, 0), (0, 1), (1, 2)], id="a chain ends in the loop"),
        pytest.param(
            (("EpochCtrlOp", None, True), BATCH, ("RenameOp", 8, True), SOURCE),
            [(1, 0), (2, 1), (3, 2)],
            [(-1, 1), (0, 1), (1, 3), (2, 3)],
            id="inlined operators are looked through",
        ),
        pytest.param(
            (("ZipOp", None, True), MAP, SOURCE),
            [(1, 0), (2, 0)],
            [(-1, 1), (-1, 2), (0, 1), (0, 2)],
            id="a zip has several inputs",
        ),
        pytest.param([("MapOp", None, True)] * 2, [(0, 1), (1, 0)], [], id="a circle ends"),
    ],
)
def test_links_between_operators_with_queues(look, graph, pairs, links):
    assert look(LINKS, {"pipeline_op": ops(*graph), "pipeline_edge": edges(*pairs)}) == links


def test_samples_show_a_queue_that_the_graph_does_not_tell_of(look):
    assert look(LINKS, {"pipeline_op": ops(("BatchOp", None, False)), "queue": depths(0, 0, [0])}) == [(-1, 0)]


def test_an_operator_of_a_library_is_at_the_users_call(look):
    library, own = "/env/lib/python3.11/site-packages/mindcv/data/loader.py:98", "/home/me/train.py:14"
    places = [
        (library, f"/env/lib/python3.11/site-packages/mindcv/data/factory.py:7\n{own}\n/home/me/train.py:60"),
        (library, "/usr/lib/python3.11/threading.py:982"),
        (library, None),
        (own, "/home/me/train.py:60"),
        (None, None),
    ]
    rows = [one | {"site": at, "callers": above} for one, (at, above) in zip(ops(*[MAP] * 5), places, strict=True)]
    found = look("SELECT site FROM pipeline_tree ORDER BY op_id", {"pipeline_op": rows})
    assert found == [(own,), (library,), (library,), (own,), (None,)]
