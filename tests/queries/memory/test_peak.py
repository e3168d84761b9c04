GIVE = "t_ns peak_bytes peak_blocks blocks allocated_bytes kept_blocks kept_bytes"


def block(size, produced, released):
    return {"bytes": size, "produced_ns": produced, "released_ns": released}


def test_the_first_moment_with_the_most(ask):
    allocation = [block(10, 0, 30), block(5, 10, 20), block(5, 22, None), block(3, 50, 60)]
    assert ask("memory/peak", {"allocation": allocation}, give=GIVE) == [(10, 15, 2, 4, 23, 1, 5)]
