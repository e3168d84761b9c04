from table_rows import step

STEPS = [step(0, 0, 100), step(1, 100, 200)]
AT = {"points": 9, "rep": 0, "rank": 0}


def test_communication_beside_operators_and_with_nothing_beside_it(ask):
    tables = {
        "step": STEPS,
        "op_info": [{"op_id": 0, "phase": "forward"}],
        "op": [{"op_id": 0, "step": n, "start_ns": 100 * n + 10, "dur_ns": 40} for n in (0, 1)],
        "collective": [{"step": 0, "start_ns": 30, "dur_ns": 50}],  # 20 of it beside the operator
    }
    rows = ask("step/communication_curve", tables, **AT)
    same = {"source": "parts", "steps": 1, "unknown_ns": 0}
    assert rows == [
        {"point": 0, "overlapped_ns": 20, "exposed_ns": 30} | same,
        {"point": 1, "overlapped_ns": 0, "exposed_ns": 0} | same,
    ]


def test_steps_without_recorded_operators_do_not_make_the_mean_smaller(ask):
    """Collectives are recorded only inside op windows: of four steps two, one of them without any."""
    tables = {
        "step": [step(n, 100 * n, 100 * n + 100) for n in range(4)],
        "op_info": [{"op_id": 0, "phase": "forward"}],
        "op": [{"op_id": 0, "step": n, "start_ns": 100 * n + 10, "dur_ns": 40} for n in (1, 2)],
        "collective": [{"step": 1, "start_ns": 160, "dur_ns": 30}],
    }
    same = {"point": 0, "source": "parts", "steps": 2, "overlapped_ns": 0, "unknown_ns": 0}
    assert ask("step/communication_curve", tables, **AT | {"points": 1}) == [same | {"exposed_ns": 15}]


def test_without_communication_nothing_is_drawn(ask):
    tables = {
        "step": STEPS,
        "op_info": [{"op_id": 0, "phase": "forward"}],
        "op": [{"op_id": 0, "step": 0, "start_ns": 10, "dur_ns": 40}],
    }
    assert ask("step/communication_curve", tables, **AT) == []


def test_the_profilers_own_division_where_no_operator_was_recorded(ask):
    split = {"source": "step_trace_time", "computing_ns": 60, "overlapped_ns": 7, "exposed_ns": 30, "free_ns": 10}
    tables = {"step": STEPS, "step_split": [split | {"step": 1, "source_step": 1}]}
    rows = ask("step/communication_curve", tables, **AT)
    assert rows == [{"point": 1, "source": "split", "steps": 1, "overlapped_ns": 7, "exposed_ns": 30, "unknown_ns": 0}]


def test_events_alone_do_not_say_what_runs_beside_them_and_points_have_means(ask):
    tables = {"step": STEPS, "collective": [{"step": 1, "start_ns": 130, "dur_ns": 50}]}
    rows = ask("step/communication_curve", tables, **AT | {"points": 1})
    assert rows == [{"point": 0, "source": "trace", "steps": 2, "overlapped_ns": 0, "exposed_ns": 0, "unknown_ns": 25}]
