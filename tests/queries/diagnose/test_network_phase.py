from functools import partial

from table_rows import op, step

inside = partial(step, in_window=True)

INFO = [
    {"op_id": 0, "phase": "forward"},
    {"op_id": 1, "phase": "backward"},
    {"op_id": 2, "phase": "communication"},
]


def test_shares_of_the_steps_with_operators_add_up(ask):
    tables = {
        "step": [
            inside(0, 0, 100, bp_ns=60),
            inside(1, 100, 200, bp_ns=160),
            step(2, 200, 290),
        ],
        "op": [op(0, 20, 0, 10), op(1, 30, 0, 30), op(2, 20, 0, 50), op(0, 40, 1, 110)],
        "op_info": INFO,
        "fetch": [{"step": 0, "start_ns": 0, "wait_ns": 10}],
    }
    rows = ask("diagnose/network_phase", tables, give="part adds_up steps total_ns step_ns median_ns share")
    assert rows == [
        ("after", True, 2, 0, 200, 0.0, 0.0),
        ("backward", True, 2, 30, 200, 15.0, 0.15),
        ("communication_exposed", True, 2, 0, 200, 0.0, 0.0),
        ("communication_overlapped", False, 2, 10, 200, 5.0, 0.05),
        ("communication_tail", True, 2, 10, 200, 5.0, 0.05),
        ("data_wait", True, 2, 10, 200, 5.0, 0.05),
        ("forward", True, 2, 60, 200, 30.0, 0.3),
        ("gradients", True, 2, 0, 200, 0.0, 0.0),
        ("host_gap", True, 2, 90, 200, 45.0, 0.45),
        ("optimizer", True, 2, 0, 200, 0.0, 0.0),
        ("other", True, 2, 0, 200, 0.0, 0.0),
        ("other_loader", True, 2, 0, 200, 0.0, 0.0),
    ]
    assert sum(row[3] for row in rows if row[1]) == 200


def test_steps_inside_and_outside_are_compared_without_their_wait_for_data(ask):
    steps = [
        inside(0, 0, 100, fetch_wait_ns=40),
        step(1, 100, 150, fetch_wait_ns=10),
        step(2, 150, 170),
    ]
    rows = ask("diagnose/network_phase", {"step": steps, "op": [op(0, 5)]}, give="inside_work_ns outside_work_ns")
    assert set(rows) == {(60.0, 30.0)}


def test_what_short_operators_take_beyond_three_times_their_median_is_a_stall(ask):
    ms = 1_000_000
    times = {0: (10, 10, 50), 1: (10, 30)}
    executions = [op(op_id, dur, 0, at) for op_id, durs in times.items() for at, dur in enumerate(durs)]
    long = [op(3, dur, 0, 3 * ms) for dur in (2 * ms, 2 * ms, 8 * ms)]
    info = [{"op_id": 0, "phase": "forward"}, {"op_id": 1, "phase": "forward"}, {"op_id": 3, "phase": "forward"}]
    tables = {"step": [inside(0, 0, 20 * ms)], "op_info": info}
    (short,) = set(ask("diagnose/network_phase", tables | {"op": executions}, give="stalled"))
    assert short == (40 / 110,)
    (both,) = set(ask("diagnose/network_phase", tables | {"op": executions + long}, give="stalled"))
    assert both == (40 / (110 + 12 * ms),)


def test_nothing_outside_is_not_known(ask):
    rows = ask(
        "diagnose/network_phase",
        {"step": [inside(0, 0, 9)], "op": [op(0, 5)]},
        give="outside_work_ns",
    )
    assert set(rows) == {(None,)}


def test_a_rank_without_operators_has_no_rows(ask):
    steps = [inside(0, 0, 9, rank=rank) for rank in (0, 1)]
    rows = ask("diagnose/network_phase", {"step": steps, "op": [op(0, 5, rank=1)]}, give="rank")
    assert set(rows) == {(1,)}


def test_executions_on_a_device_are_counted(ask):
    ops = [
        op(0, 50, side="host"),
        op(0, 5, 0, 10, side="device"),
        op(0, 7, 0, 20, side="device"),
    ]
    rows = ask("diagnose/network_phase", {"step": [inside(0, 0, 90)], "op": ops}, give="device_ops device_op_ns")
    assert set(rows) == {(2, 12)}
    rows = ask("diagnose/network_phase", {"step": [inside(0, 0, 90)], "op": [op(0, 5)]}, give="device_ops")
    assert set(rows) == {(None,)}


def test_the_host_before_the_first_call_may_be_a_loader_where_no_batch_was_seen(ask):
    steps = [inside(0, 0, 100, called_ns=70), inside(1, 100, 200)]
    tables = {"step": steps, "op": [op(0, 10, 0, 80), op(0, 5, 0, 20), op(0, 40, 1, 100)], "op_info": INFO}
    rows = dict(ask("diagnose/network_phase", tables, give="part total_ns"))
    assert (rows["other_loader"], rows["host_gap"], rows["forward"]) == (65, 80, 55)
