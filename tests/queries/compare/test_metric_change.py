def value(side, metric, number, rep=0):
    return {"side": side, "metric": metric, "value": number, "rep": rep}


def test_medians_of_both_sides(ask):
    rows = [value("base", "a", 1.0), value("base", "a", 2.0, 1), value("base", "a", 30.0, 2), value("new", "a", 5.0)]
    assert ask(
        "compare/metric_change", {"side_measure": rows}, give="metric base new delta ratio reps_base reps_new"
    ) == [("a", 2.0, 5.0, 3.0, 2.5, 3, 1)]


def test_a_side_that_is_missing_or_zero_has_no_ratio(ask):
    rows = [
        value("base", "gone", 1.0),
        value("new", "here", 1.0),
        value("base", "zero", 0.0),
        value("new", "zero", 1.0),
    ]
    assert ask("compare/metric_change", {"side_measure": rows}, give="metric base new ratio") == [
        ("gone", 1.0, None, None),
        ("here", None, 1.0, None),
        ("zero", 0.0, 1.0, None),
    ]
