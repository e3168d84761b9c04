def ops(*facts):
    """Operators 0, 1, ... from (op_type, capacity, inlined)."""
    return [
        {"pipeline_id": 0, "op_id": number, "op_type": kind, "capacity": capacity, "inlined": inlined}
        for number, (kind, capacity, inlined) in enumerate(facts)
    ]


def edges(*pairs):
    return [{"pipeline_id": 0, "producer_id": producer, "consumer_id": consumer} for producer, consumer in pairs]


LINKS = "SELECT consumer_id, producer_id FROM queue_link ORDER BY consumer_id, producer_id"


def test_the_tree_names_consumer_key_and_role(look):
    tables = {
        "pipeline": [{"pipeline_id": 0, "pipeline_key": "a", "role": "eval"}],
        "pipeline_op": ops(("BatchOp", 8, False), ("MapOp", 8, None)),
        "pipeline_edge": edges((1, 0)),
    }
    text = "SELECT pipeline_key, role, op_id, consumer_id, inlined FROM pipeline_tree ORDER BY op_id"
    assert look(text, tables) == [("a", "eval", 0, None, False), ("a", "eval", 1, 0, False)]


def test_links_of_a_chain_end_in_the_loop(look):
    tables = {
        "pipeline_op": ops(("BatchOp", 8, False), ("MapOp", 8, False), ("GeneratorOp", 8, False)),
        "pipeline_edge": edges((1, 0), (2, 1)),
    }
    assert look(LINKS, tables) == [(-1, 0), (0, 1), (1, 2)]


def test_inlined_operators_are_looked_through(look):
    tables = {
        "pipeline_op": ops(
            ("EpochCtrlOp", None, True), ("BatchOp", 8, False), ("RenameOp", 8, True), ("GeneratorOp", 8, False)
        ),
        "pipeline_edge": edges((1, 0), (2, 1), (3, 2)),
    }
    assert look(LINKS, tables) == [(-1, 1), (0, 1), (1, 3), (2, 3)]


def test_a_zip_has_several_inputs(look):
    tables = {
        "pipeline_op": ops(("ZipOp", None, True), ("MapOp", 8, False), ("GeneratorOp", 8, False)),
        "pipeline_edge": edges((1, 0), (2, 0)),
    }
    assert look(LINKS, tables) == [(-1, 1), (-1, 2), (0, 1), (0, 2)]


def test_samples_show_a_queue_that_the_graph_does_not_tell_of(look):
    tables = {
        "pipeline_op": ops(("BatchOp", None, False)),
        "queue": [{"pipeline_id": 0, "op_id": 0, "t_ns": 0, "depth": 0, "capacity": 8}],
    }
    assert look(LINKS, tables) == [(-1, 0)]


def test_operators_that_consume_each_other_do_not_hang(look):
    tables = {
        "pipeline_op": ops(("MapOp", None, True), ("MapOp", None, True)),
        "pipeline_edge": edges((0, 1), (1, 0)),
    }
    assert look(LINKS, tables) == []


def test_an_operator_of_a_library_is_at_the_users_call(look):
    library, own = "/env/lib/python3.11/site-packages/mindcv/data/loader.py:98", "/home/me/train.py:14"
    places = [
        (library, f"/env/lib/python3.11/site-packages/mindcv/data/factory.py:7\n{own}\n/home/me/train.py:60"),
        (library, "/usr/lib/python3.11/threading.py:982"),
        (library, None),
        (own, "/home/me/train.py:60"),
        (None, None),
    ]
    rows = [one | {"site": site, "callers": callers} for one, (site, callers) in zip(ops(*[("MapOp", 8, False)] * 5), places, strict=True)]  # fmt: skip
    found = look("SELECT site FROM pipeline_tree ORDER BY op_id", {"pipeline_op": rows})
    assert found == [(own,), (library,), (library,), (own,), (None,)]
