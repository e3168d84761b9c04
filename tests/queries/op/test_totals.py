import pytest
from table_rows import op

GIVE = "device position name type in_shapes count total_ns self_ns mean_ns share recorded"


def total(**more):
    return {"source": "aicore_type", "device": "AI_CORE", **more}


@pytest.fixture
def totals(ask):
    def rows_of(give, rows, group_by="type", top=9, **tables):
        return ask("op/totals", {"op_total": rows, **tables}, give=give, group_by=group_by, top=top)

    return rows_of


def test_types_of_each_device_with_most_time_first(totals):
    rows = [
        total(type="Add", count=2, total_ns=10, mean_ns=5),
        total(type="MatMul", count=3, total_ns=30, mean_ns=10),
        total(source="aicpu", device="AI_CPU", type="GetNext", count=1, total_ns=7, mean_ns=7),
    ]
    assert totals(GIVE, rows) == [
        ("AI_CORE", 1, None, "MatMul", None, 3, 30, 30, 10.0, 0.75, False),
        ("AI_CORE", 2, None, "Add", None, 2, 10, 10, 5.0, 0.25, False),
        ("AI_CPU", 1, None, "GetNext", None, 1, 7, 7, 7.0, 1.0, False),
    ]


def test_a_device_s_own_totals_of_types_are_not_counted_twice(totals):
    whole = total(type="Add", count=2, total_ns=10)
    rows = [whole, whole | {"source": "aicore_detail", "name": "x/Add-op1"}]
    assert totals("type total_ns", rows) == [("Add", 10)]
    assert totals("name total_ns", rows, "name") == [("x/Add-op1", 10)]


def test_single_operators_are_added_up_by_type_where_no_types_are_given(totals):
    one = total(source="operator_details", device="host", type="Add", shapes="[2]", count=1, self_ns=2)
    rows = [one | {"name": name, "total_ns": ns} for name, ns in (("a", 10), ("b", 20))]
    give = "name type in_shapes count total_ns self_ns mean_ns"
    assert totals(give, rows) == [(None, "Add", None, 2, 30, 4, 15.0)]
    assert totals(give, rows, "name", top=1) == [("a", "Add", "[2]", 1, 10, 2, 10.0)]


def test_layers_of_the_host_are_apart(totals):
    rows = [
        total(source="operator_details", device="host", name="a", count=1, total_ns=10),
        total(source="api_statistic", device="host", name="b", type="acl", count=1, total_ns=30),
    ]
    give = "device layer position type share"
    assert totals(give, rows) == [
        ("host", "api_statistic", 1, "acl", 1.0),
        ("host", "operator_details", 1, "a", 1.0),
    ]


def test_a_mean_without_a_count_has_no_total_and_comes_last(totals):
    rows = [total(name="a", mean_ns=5), total(name="b", mean_ns=9), total(name="c", count=1, total_ns=1, mean_ns=1)]
    give = "position name count total_ns mean_ns share"
    assert totals(give, rows, "name") == [
        (1, "c", 1, 1, 1.0, 1.0),
        (2, "b", None, None, 9.0, None),
        (3, "a", None, None, 5.0, None),
    ]


def test_whether_executions_on_the_device_were_recorded_too(totals):
    rows = [total(type="Add", count=1, total_ns=1), total(device="host", type="x", count=1, total_ns=1)]
    found = totals("device recorded", rows, op=[op(0, 1)], op_info=[{"op_id": 0, "device": "AI_CORE"}])
    assert found == [("AI_CORE", True), ("host", False)]
