def process(t, pid, name, user, system):
    return {"t_ns": t, "scope": "process", "pid": pid, "name": name, "user_ratio": user, "sys_ratio": system}


def test_the_host_is_busy_when_it_is_not_idle(ask):
    cpu = [{"t_ns": t, "scope": "host", "idle_ratio": idle} for t, idle in enumerate([0.75, 0.25])]
    give = "scope samples processes mean_busy_share max_busy_share mean_cores total_cores"
    assert ask("host/cpu_summary", {"cpu": cpu}, give=give) == [("host", 2, 0, 0.5, 0.75, None, None)]


def test_workers_count_one_by_one_and_together(ask):
    cpu = [process(t, pid, "worker", 0.5, 0.25) for t in (0, 1) for pid in (1, 2)]
    cpu += [process(t, 9, "trainer", 1.0, 0.0) for t in (0, 1, 2, 3)]
    give = "name samples processes mean_cores total_cores mean_busy_share"
    assert ask("host/cpu_summary", {"cpu": cpu}, give=give) == [
        ("trainer", 4, 1, 1.0, 1.0, None),
        ("worker", 4, 2, 0.75, 0.75, None),
    ]


def test_pipeline_operators_are_not_processes(ask):
    assert ask("host/cpu_summary", {"cpu": [{"t_ns": 0, "scope": "pipeline_op", "op_id": 1, "user_ratio": 1.0}]}) == []
