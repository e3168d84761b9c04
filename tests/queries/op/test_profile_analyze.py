"""op/profile_analyze: times of operators on one side, one by one or added up."""

import pytest
from query_cases import answers
from table_rows import op

ASK = {
    "side": "device", "key": "total", "every": True, "bounded": False, "least_ns": 0.0, "most_ns": 0.0, "by": "op",
    "aggregate": "sum", "order_by": "self_ns", "ascending": False, "top": 0,
}  # fmt: skip


def run(op_id, dur, wait=None, side="device", track="gpu0:0", **more):
    return op(op_id, dur, **{"step": None, "side": side, "track": track, "wait_ns": wait} | more)


def info(op_id, kind, flops=None, moved=None):
    shown = {"name": f"{kind}[{op_id}]", "type": kind, "source_id": str(op_id)}
    return {"op_id": op_id, "flops": flops, "bytes": moved, **shown}


TABLES = {
    "op": [
        run(0, 40, 10), run(1, 30, 5), run(1, 50, 20, track="gpu1:0"), run(2, 10), run(3, None),
        run(0, 7, None, side="host", track="worker"), run(2, 3, 1, side="host", track="worker"),
    ],
    "op_info": [info(0, "conv", 80, 8), info(1, "conv", 100, 50), info(2, "copy"), info(3, "copy", 5)],
}  # fmt: skip


@pytest.fixture
def analyze(ask):
    def rows_of(give="", tables=TABLES, **how):
        return ask("op/profile_analyze", tables, give=give, **ASK | how)

    return rows_of


def test_rates_are_amounts_per_second_of_the_chosen_time(analyze):
    assert analyze("op_id self_ns computation flops memory bandwidth", key="wait") == [
        (1, 20.0, 100.0, 5e9, 50.0, 2.5e9),
        (0, 10.0, 80.0, 8e9, 8.0, 0.8e9),
        (2, None, None, None, None, None),
        (3, None, 5.0, None, None, None),
    ]


def test_unknown_values_are_last_either_way_and_ties_in_order_of_execution(analyze):
    def order(**how):
        return [row[0] for row in analyze("op_id", **how)]

    assert order(order_by="memory") == [1, 0, 2, 3]
    assert order(order_by="memory", ascending=True) == [0, 1, 2, 3]
    assert order(order_by="exec_ns") == [0, 1, 2, 3]
    assert order(order_by="op_id") == [3, 2, 1, 0]
    assert order(order_by="count") == [0, 1, 2, 3]


def test_added_up_amounts_skip_what_is_not_known_but_a_mean_divides_by_all(analyze):
    give = "type count self_ns computation memory"
    for aggregate, conv, copy in (
        ("sum", (90.0, 180.0, 58.0), (10.0, 5.0, None)), ("mean", (45.0, 90.0, 29.0), (10.0, 2.5, None)),
        ("max", (50.0, 100.0, 50.0), (10.0, 5.0, None)),
    ):  # fmt: skip
        assert analyze(give, by="type", aggregate=aggregate) == [("conv", 2, *conv), ("copy", 2, *copy)]
    assert analyze(give, by="all", aggregate="min") == [("all", 4, 10.0, 5.0, 8.0)]


def test_only_chosen_operators_and_times_within_bounds(analyze):
    assert analyze("op_id", every=False) == []
    assert analyze("op_id share", bounded=True, least_ns=10.0, most_ns=40.0) == [(0, 0.4), (2, 0.1)]


def test_a_source_with_one_side_counts_as_the_device(analyze):
    tables = {"op": [run(0, 5, side=None), run(0, 6, side=None)], "op_info": [info(0, "Add")]}
    assert analyze("op_id count self_ns", tables) == [(0, 2, 11.0)]


def test_rows_of_each_rank_are_bounded_from_either_end(analyze):
    tables = {
        "op": [*TABLES["op"], run(0, 1, rank=1), run(1, 2, rank=1)],
        "op_info": [*TABLES["op_info"], {**info(0, "a"), "rank": 1}, {**info(1, "b"), "rank": 1}],
    }
    give = "rank op_id all_rows"
    assert analyze(give, tables, top=1) == [(0, 1, 4), (1, 1, 2)]
    assert analyze(give, tables, top=-3) == [(0, 1, 4)]
    assert len(analyze(tables=tables, top=99)) == 6


test_rows_of_op_profile_analyze = answers("op/profile_analyze", {
    "the longest over devices counts and shares refer to all": (
        "position op_id opr_id type count self_ns total_ns wait_ns exec_ns share cumulative_ns side_ns all_rows",
        TABLES, [(1, 1, "1", "conv", 1, 50.0, 50.0, 20.0, 30.0, 0.5, 50.0, 100.0, 4),
                 (2, 0, "0", "conv", 1, 40.0, 40.0, 10.0, 30.0, 0.4, 90.0, 100.0, 4),
                 (3, 2, "2", "copy", 1, 10.0, 10.0, None, None, 0.1, 100.0, 100.0, 4),
                 (4, 3, "3", "copy", 1, None, None, None, None, None, 100.0, 100.0, 4)]),
    "executions of which the operations are known are counted": ("type count computation_count", TABLES,
        [("conv", 2, 2), ("copy", 2, 1)], {"by": "type"}),
    "the host has its own whole": ("op_id self_ns share", TABLES, [(0, 7.0, 0.7), (2, 3.0, 0.3)], {"side": "host"}),
    "training steps count when there are any": ("self_ns",
        {"step": [{"step": 0, "kind": "warmup"}, {"step": 1, "kind": "train"}],
         "op": [run(0, 9, step=0), run(0, 5, step=1), run(0, 3)], "op_info": [info(0, "Add")]}, [(5.0,)]),
    "times that were rounded are used unrounded": ("self_ns wait_ns exec_ns flops",
        {"op": [run(0, 2, 1, exact_dur_ns=1.5, exact_wait_ns=0.75)], "op_info": [info(0, "a", 3)]},
        [(1.5, 0.75, 0.75, 2e9)]),
    "no time at all has no share and no rate": ("self_ns share flops",
        {"op": [run(0, 0)], "op_info": [info(0, "a", 3)]}, [(0.0, None, None)]),
}, **ASK)  # fmt: skip
