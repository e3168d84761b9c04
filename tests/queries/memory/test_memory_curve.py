GIVE = "device name pid part t_ns samples first_bytes low_bytes high_bytes high_ns last_bytes reserved_bytes"


def test_least_and_most_in_equal_parts_of_the_time(ask):
    pool = {"device": "CPU", "name": "pool"}
    memory = [
        {**pool, "t_ns": 0, "allocated_bytes": 5, "reserved_bytes": 8},
        {**pool, "t_ns": 40, "allocated_bytes": 9, "reserved_bytes": 16},
        {**pool, "t_ns": 60, "allocated_bytes": 2, "reserved_bytes": 8},
        {**pool, "t_ns": 99, "allocated_bytes": None},
        {"t_ns": 99, "device": "process", "name": "trainer", "pid": 7, "rss_bytes": 70, "allocated_bytes": 1},
    ]
    assert ask("memory/curve", {"memory": memory}, points=2, give=GIVE) == [
        ("CPU", "pool", 0, 0, 0, 2, 5, 5, 9, 40, 9, 16),
        ("CPU", "pool", 0, 1, 60, 1, 2, 2, 2, 60, 2, 8),
        ("process", "trainer", 7, 1, 99, 1, 70, 70, 70, 99, 70, None),
    ]


def test_the_first_and_the_last_level_of_a_part_are_those_by_time(ask):
    levels = {0: 5, 1: 2, 2: 9, 3: 7}
    memory = [{"t_ns": at, "device": "CPU", "name": "pool", "allocated_bytes": level} for at, level in levels.items()]
    memory += [{**memory[0], "allocated_bytes": 6}, {**memory[3], "allocated_bytes": 3}]
    assert ask("memory/curve", {"memory": memory}, points=1, give="first_bytes last_bytes") == [(5, 7)]


def test_an_ended_process_has_no_resident_set(ask):
    memory = [{"t_ns": 5, "device": "process", "rss_bytes": 0}, {"t_ns": 6, "device": "host", "allocated_bytes": 0}]
    assert ask("memory/curve", {"memory": memory}, points=4, give="device low_bytes") == [("host", 0)]
