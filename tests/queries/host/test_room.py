"""What CPU the training could have in each phase, and what of it was left."""

S = 1_000_000_000
STEADY = {"stage": "steady", "start_ns": 3 * S, "dur_ns": 4 * S}


def use(start, end, part, cpu):
    return {"start_ns": start * S, "end_ns": end * S, "part": part, "cpu_ns": cpu * S}


ROOM = {"cores": 2.0, "idle_ns": S, "throttled_ns": S // 2, "steal_ns": 0, "pressure_ns": None}


def test_what_was_left_in_a_phase(ask):
    tables = {
        "stage": [STEADY],
        "cpu_use": [use(3, 5, "main", 2), use(3, 5, "neighbour", 1), use(5, 7, "child", 3), use(5, 7, "profiler", 1)],
        "cpu_room": [ROOM | {"start_ns": 3 * S, "end_ns": 5 * S}, ROOM | {"start_ns": 5 * S, "end_ns": 7 * S, "idle_ns": 0}],
    }  # fmt: skip
    (row,) = ask("host/room", tables)
    del row["rep"], row["rank"]
    assert row == {
        "phase": "steady", "samples": 2, "dur_ns": 4 * S, "cores": 2.0, "idle_share": 0.125, "job_cores": 1.25,
        "neighbour_cores": 0.25, "throttled_share": 0.25, "steal_cores": 0.0, "pressure_share": None, "gil_share": None,
    }  # fmt: skip


def test_how_long_the_interpreters_lock_was_held_is_of_the_phase(ask):
    held = [
        {"t_ns": at * S, "scope": "gil", "user_ratio": ratio}
        for at, ratio in ((2, 1.0), (4, 0.25), (6, 0.75), (8, 1.0))
    ]
    other = [{"t_ns": 4 * S, "scope": "host", "user_ratio": 1.0}]
    used = [use(3, 5, "main", 2), use(5, 7, "main", 2)]
    (row,) = ask("host/room", {"stage": [STEADY], "cpu_use": used, "cpu": held + other})
    assert row["gil_share"] == 0.5


def test_what_is_not_known_is_null(ask):
    (row,) = ask("host/room", {"stage": [STEADY], "cpu_use": [use(3, 5, "main", 2)]})
    assert (row["cores"], row["idle_share"], row["throttled_share"], row["steal_cores"]) == (None,) * 4
    assert row["job_cores"] == 1.0
