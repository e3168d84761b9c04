def cpu(t, user, system, op=1, scope="pipeline_op", **more):
    return {"t_ns": t, "scope": scope, "pipeline_id": 0, "op_id": op, "user_ratio": user, "sys_ratio": system, **more}


def tables(rows, role="eval"):
    return {
        "pipeline": [{"pipeline_id": 0, "pipeline_key": "a", "role": role}],
        "pipeline_op": [{"pipeline_id": 0, "op_id": 1, "op_type": "MapOp", "workers": 4}],
        "cpu": rows,
    }


def test_cores_are_user_and_system_time(ask):
    rows = ask(
        "queue/pipeline_cpu",
        tables([cpu(0, 1.0, 0.5), cpu(1, 2.0, 0.5)]),
        give="op_id op_type workers samples mean_cores max_cores",
    )
    assert rows == [(1, "MapOp", 4, 2, 2.0, 2.5)]


def test_processes_and_the_host_are_no_operators(ask):
    nobodys = {"pipeline_id": None, "op_id": None}
    rows = [cpu(0, 1.0, 1.0, scope=scope) | nobodys for scope in ("process", "host")]
    assert ask("queue/pipeline_cpu", tables(rows)) == []


def test_half_a_reading_is_not_counted(ask):
    rows = ask("queue/pipeline_cpu", tables([cpu(0, 1.0, None), cpu(1, 0.5, 0.25)]), give="samples mean_cores")
    assert rows == [(1, 0.75)]


def test_timed_calls_add_what_the_samples_of_a_training_pipeline_miss(ask):
    known = {"pipeline_id": 0, "op_id": 1, "source": "hook", "rows": 1, "batches": 1}
    found = tables([cpu(n, 0.0, 0.0) for n in range(0, 1000, 100)], role="train") | {
        "op_service": [{**known, "t_ns": n, "avg_ns": 40, "cpu_ns": 20} for n in range(0, 1000, 100)],
        "fetch": [
            {"pipeline_id": 0, "fetch": n, "start_ns": 100 * n, "wait_ns": 50, "side": "iterator"} for n in range(10)
        ],
    }
    # A batch each 100 ns, for which its Python computes for 20 of 40 ns.
    (mean,) = ask("queue/pipeline_cpu", found, give="mean_cores")
    assert mean == (0.2,)
    assert mean in ask("diagnose/load", found, give="cores")
