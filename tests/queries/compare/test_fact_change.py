def fact(side, name, value):
    return {"side": side, "name": name, "value": value}


def test_only_what_differs_is_listed(ask):
    rows = [
        fact("base", "op a", "Conv2D"),
        fact("new", "op a", "SlowConv"),
        fact("base", "op b", "Relu"),
        fact("new", "op b", "Relu"),
        fact("base", "op c", "Add"),
        fact("new", "op d", "Mul"),
    ]
    assert ask("compare/fact_change", {"side_fact": rows}, give="name base new change") == [
        ("op a", "Conv2D", "SlowConv", "changed"),
        ("op c", "Add", None, "vanished"),
        ("op d", None, "Mul", "appeared"),
    ]


def test_outputs_that_one_side_does_not_know_are_no_difference(ask):
    rows = [
        fact("base", "op a", "MatMul [8, 4] ->"),
        fact("new", "op a", "MatMul [8, 4] -> [8, 2]"),
        fact("base", "op b", "MatMul [8, 4] ->"),
        fact("new", "op b", "MatMul [9, 4] -> [9, 2]"),
        fact("base", "op c", "MatMul [8, 4] -> [8, 3]"),
        fact("new", "op c", "MatMul [8, 4] -> [8, 2]"),
    ]
    assert [row[0] for row in ask("compare/fact_change", {"side_fact": rows}, give="name")] == ["op b", "op c"]
