def block(size, produced, released, **more):
    return {"bytes": size, "produced_ns": produced, "released_ns": released, **more}


def test_blocks_add_up_over_their_lifetimes(ask):
    allocation = [block(10, 0, 60), block(5, 20, None), block(7, 30, 31), block(99, 40, 40), block(0, 1, 2)]
    found = ask("memory/live_curve", {"allocation": allocation}, points=61, give="t_ns changes low_bytes high_bytes")
    assert found == [(0, 1, 10, 10), (20, 1, 15, 15), (30, 1, 22, 22), (31, 1, 15, 15), (60, 1, 5, 5)]


def test_a_block_that_follows_another_at_once_does_not_add_to_it(ask):
    allocation = [block(10, 0, 50), block(10, 50, 60)]
    found = ask("memory/live_curve", {"allocation": allocation}, points=1, give="changes low_bytes high_bytes high_ns")
    assert found == [(3, 0, 10, 0)]


def test_what_stays_after_a_part_is_that_of_its_last_change(ask):
    allocation = [block(10, 0, 50), block(3, 7, None)]
    give = "first_bytes high_bytes high_ns last_bytes last_ns"
    found = ask("memory/live_curve", {"allocation": allocation}, points=1, give=give)
    assert found == [(10, 13, 7, 3, 50)]


def test_the_moment_with_the_most_is_known_to_the_ns(ask):
    allocation = [block(10, 0, 50), block(10, 7, 60), block(1, 9, 11)]
    found = ask("memory/live_curve", {"allocation": allocation}, points=1, give="t_ns high_bytes high_ns")
    assert found == [(0, 21, 9)]
