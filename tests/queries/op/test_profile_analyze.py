"""op/profile_analyze: times of operators on one side, one by one or added up."""

ASK = {
    "side": "device", "key": "total", "every": True, "bounded": False, "least_ns": 0.0, "most_ns": 0.0, "by": "op",
    "aggregate": "sum", "order_by": "self_ns", "ascending": False, "top": 0,
}  # fmt: skip


def run(op_id, dur, wait=None, side="device", track="gpu0:0", **more):
    return {
        "op_id": op_id, "start_ns": 0, "dur_ns": dur, "self_ns": dur, "wait_ns": wait, "side": side, "track": track, **more,
    }  # fmt: skip


def info(op_id, kind, flops=None, moved=None):
    return {
        "op_id": op_id,
        "name": f"{kind}[{op_id}]",
        "type": kind,
        "flops": flops,
        "bytes": moved,
        "source_id": str(op_id),
    }


TABLES = {
    "op": [
        run(0, 40, 10), run(1, 30, 5), run(1, 50, 20, track="gpu1:0"), run(2, 10), run(3, None),
        run(0, 7, None, side="host", track="worker"), run(2, 3, 1, side="host", track="worker"),
    ],
    "op_info": [info(0, "conv", 80, 8), info(1, "conv", 100, 50), info(2, "copy"), info(3, "copy", 5)],
}  # fmt: skip


def test_the_longest_over_devices_counts_and_shares_refer_to_all(ask):
    give = "position op_id opr_id type count self_ns total_ns wait_ns exec_ns share cumulative_ns side_ns all_rows"
    assert ask("op/profile_analyze", TABLES, give=give, **ASK) == [
        (1, 1, "1", "conv", 1, 50.0, 50.0, 20.0, 30.0, 0.5, 50.0, 100.0, 4),
        (2, 0, "0", "conv", 1, 40.0, 40.0, 10.0, 30.0, 0.4, 90.0, 100.0, 4),
        (3, 2, "2", "copy", 1, 10.0, 10.0, None, None, 0.1, 100.0, 100.0, 4),
        (4, 3, "3", "copy", 1, None, None, None, None, None, 100.0, 100.0, 4),
    ]


def test_rates_are_amounts_per_second_of_the_chosen_time(ask):
    rows = ask(
        "op/profile_analyze", TABLES, give="op_id self_ns computation flops memory bandwidth", **{**ASK, "key": "wait"}
    )
    assert rows == [
        (1, 20.0, 100.0, 5e9, 50.0, 2.5e9),
        (0, 10.0, 80.0, 8e9, 8.0, 0.8e9),
        (2, None, None, None, None, None),
        (3, None, 5.0, None, None, None),
    ]


def test_unknown_values_are_last_either_way_and_ties_in_order_of_execution(ask):
    def order(**how):
        return [row[0] for row in ask("op/profile_analyze", TABLES, give="op_id", **{**ASK, **how})]

    assert order(order_by="memory") == [1, 0, 2, 3]
    assert order(order_by="memory", ascending=True) == [0, 1, 2, 3]
    assert order(order_by="exec_ns") == [0, 1, 2, 3]
    assert order(order_by="op_id") == [3, 2, 1, 0]
    assert order(order_by="count") == [0, 1, 2, 3]


def test_executions_of_which_the_operations_are_known_are_counted(ask):
    give = "type count computation_count"
    assert ask("op/profile_analyze", TABLES, give=give, **{**ASK, "by": "type", "aggregate": "sum"}) == [
        ("conv", 2, 2), ("copy", 2, 1),
    ]  # fmt: skip


def test_added_up_amounts_skip_what_is_not_known_but_a_mean_divides_by_all(ask):
    give = "type count self_ns computation memory"
    added = {**ASK, "by": "type"}
    assert ask("op/profile_analyze", TABLES, give=give, **{**added, "aggregate": "sum"}) == [
        ("conv", 2, 90.0, 180.0, 58.0), ("copy", 2, 10.0, 5.0, None),
    ]  # fmt: skip
    assert ask("op/profile_analyze", TABLES, give=give, **{**added, "aggregate": "mean"}) == [
        ("conv", 2, 45.0, 90.0, 29.0), ("copy", 2, 10.0, 2.5, None),
    ]  # fmt: skip
    assert ask("op/profile_analyze", TABLES, give=give, **{**added, "aggregate": "max"}) == [
        ("conv", 2, 50.0, 100.0, 50.0), ("copy", 2, 10.0, 5.0, None),
    ]  # fmt: skip
    assert ask("op/profile_analyze", TABLES, give=give, **{**ASK, "by": "all", "aggregate": "min"}) == [
        ("all", 4, 10.0, 5.0, 8.0)
    ]


def test_only_chosen_operators_and_times_within_bounds(ask):
    assert ask("op/profile_analyze", TABLES, give="op_id", **{**ASK, "every": False}) == []
    bounded = {**ASK, "bounded": True, "least_ns": 10.0, "most_ns": 40.0}
    assert ask("op/profile_analyze", TABLES, give="op_id share", **bounded) == [(0, 0.4), (2, 0.1)]


def test_the_host_has_its_own_whole(ask):
    rows = ask("op/profile_analyze", TABLES, give="op_id self_ns share", **{**ASK, "side": "host"})
    assert rows == [(0, 7.0, 0.7), (2, 3.0, 0.3)]


def test_a_source_with_one_side_counts_as_the_device(ask):
    tables = {"op": [run(0, 5, side=None), run(0, 6, side=None)], "op_info": [info(0, "Add")]}
    assert ask("op/profile_analyze", tables, give="op_id count self_ns", **ASK) == [(0, 2, 11.0)]


def test_rows_of_each_rank_are_bounded_from_either_end(ask):
    tables = {
        "op": [*TABLES["op"], run(0, 1, rank=1), run(1, 2, rank=1)],
        "op_info": [*TABLES["op_info"], {**info(0, "a"), "rank": 1}, {**info(1, "b"), "rank": 1}],
    }
    give = "rank op_id all_rows"
    assert ask("op/profile_analyze", tables, give=give, **{**ASK, "top": 1}) == [(0, 1, 4), (1, 1, 2)]
    assert ask("op/profile_analyze", tables, give=give, **{**ASK, "top": -3}) == [(0, 1, 4)]
    assert len(ask("op/profile_analyze", tables, **{**ASK, "top": 99})) == 6


def test_training_steps_count_when_there_are_any(ask):
    step = [{"step": 0, "kind": "warmup"}, {"step": 1, "kind": "train"}]
    tables = {"step": step, "op": [run(0, 9, step=0), run(0, 5, step=1), run(0, 3)], "op_info": [info(0, "Add")]}
    assert ask("op/profile_analyze", tables, give="self_ns", **ASK) == [(5.0,)]


def test_times_that_were_rounded_are_used_unrounded(ask):
    tables = {"op": [run(0, 2, 1, exact_dur_ns=1.5, exact_wait_ns=0.75)], "op_info": [info(0, "a", 3)]}
    rows = ask("op/profile_analyze", tables, give="self_ns wait_ns exec_ns flops", **ASK)
    assert rows == [(1.5, 0.75, 0.75, 2e9)]


def test_no_time_at_all_has_no_share_and_no_rate(ask):
    tables = {"op": [run(0, 0)], "op_info": [info(0, "a", 3)]}
    assert ask("op/profile_analyze", tables, give="self_ns share flops", **ASK) == [(0.0, None, None)]
