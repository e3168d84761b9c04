def cpu(t, user, system, op=1, scope="pipeline_op", **more):
    return {"t_ns": t, "scope": scope, "pipeline_id": 0, "op_id": op, "user_ratio": user, "sys_ratio": system, **more}


def test_cores_are_user_and_system_time(ask):
    tables = {
        "pipeline_op": [{"pipeline_id": 0, "op_id": 1, "op_type": "MapOp", "workers": 4}],
        "cpu": [cpu(0, 1.0, 0.5), cpu(1, 2.0, 0.5), cpu(0, 0.25, 0.25, op=2)],
    }
    rows = ask("queue/pipeline_cpu", tables, give="op_id op_type workers samples mean_cores max_cores")
    assert rows == [(1, "MapOp", 4, 2, 2.0, 2.5), (2, None, None, 1, 0.5, 0.5)]


def test_processes_and_the_host_are_no_operators(ask):
    assert ask("queue/pipeline_cpu", {"cpu": [cpu(0, 1.0, 1.0, scope="process"), cpu(0, 1.0, 1.0, scope="host")]}) == []


def test_half_a_reading_is_not_counted(ask):
    rows = ask("queue/pipeline_cpu", {"cpu": [cpu(0, 1.0, None), cpu(1, 0.5, 0.25)]}, give="samples mean_cores")
    assert rows == [(1, 0.75)]
