"""op/operators: what operators are, in order."""


def test_every_operator_with_what_the_source_says(ask):
    infos = [{"op_id": 1, "name": "b", "source_id": "9"}, {"op_id": 0, "name": "a", "type": "Add", "in_types": "[]"}]
    assert ask("op/operators", {"op_info": infos}, give="op_id opr_id name type in_types") == [
        (0, None, "a", "Add", "[]"),
        (1, "9", "b", None, None),
    ]
