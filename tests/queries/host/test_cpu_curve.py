def use(start, part, cpu, **more):
    return {"start_ns": start, "end_ns": start + 10, "part": part, "members": 1, "cpu_ns": cpu, **more}


TABLES = {
    "cpu_use": [
        use(0, "main", 5), use(0, "mindspore_thread", 10), use(0, "dataset_thread", 5), use(0, "worker", 2, pid=3),
        use(10, "main", 10), use(10, "neighbour", 5), use(10, "profiler", 1), use(20, "trainer", 10),
    ]
}  # fmt: skip


def test_cores_of_each_part_of_the_machine(ask):
    rows = ask("host/cpu_curve", TABLES, give="slot consumer start_ns end_ns cores", points=3, rep=0, rank=0)
    assert rows == [
        (0, "pipeline", 0, 10, 0.5), (0, "trainer", 0, 10, 1.5), (0, "worker", 0, 10, 0.2),
        (1, "other", 10, 20, 0.6), (1, "trainer", 10, 20, 1.0), (2, "trainer", 20, 30, 1.0),
    ]  # fmt: skip


def test_several_intervals_are_a_mean(ask):
    rows = ask("host/cpu_curve", TABLES, give="consumer start_ns end_ns cores", points=1, rep=0, rank=0)
    assert rows == [
        ("other", 0, 30, 0.2),
        ("pipeline", 0, 30, 5 / 30),
        ("trainer", 0, 30, 35 / 30),
        ("worker", 0, 30, 2 / 30),
    ]
