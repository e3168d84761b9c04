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
