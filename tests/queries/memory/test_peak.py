GIVE = "t_ns peak_bytes peak_blocks blocks allocated_bytes kept_blocks kept_bytes"


def block(size, produced, released):
    return {"bytes": size, "produced_ns": produced, "released_ns": released}


def of(device, *blocks):
    return [one | {"device": device} for one in blocks]


def test_of_several_devices_the_one_that_held_most_counts(ask):
    allocation = [
        *of("CPU", block(60, 0, 50), block(30, 5, None)), *of("CUDA:0", block(70, 0, 10), block(70, 20, 30)),
        *of("CUDA:1", block(80, 2, 40), block(12, 3, None), block(1, 3, 3)),
    ]  # fmt: skip
    tables = {"allocation": allocation}
    assert ask("memory/peak", tables, give=f"device devices {GIVE}") == [("CUDA:1", 3, 3, 92, 2, 3, 93, 1, 12)]
    found = ask("memory/live_curve", tables, points=1, give="device low_bytes high_bytes last_bytes")
    assert found == [("CUDA:1", 12, 92, 12)]
    assert ask("memory/alive_at_peak", tables, top=9, give="blocks bytes share") == [(2, 92, 1)]
    assert ask("memory/lifetime", tables, top=9, give="bytes") == [(80,), (12,), (1,)]


def test_the_first_moment_with_the_most(ask):
    allocation = [block(10, 0, 30), block(5, 10, 20), block(5, 22, None), block(3, 50, 60)]
    assert ask("memory/peak", {"allocation": allocation}, give=GIVE) == [(10, 15, 2, 4, 23, 1, 5)]
