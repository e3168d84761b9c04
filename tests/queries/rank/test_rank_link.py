GIVE = "transport src_rank dst_rank links moves moved_bytes moving_ns rate compared ratio"


def link(src, dst, size, dur, name="a", **more):
    return {
        "step": 0,
        "name": name,
        "src_rank": src,
        "dst_rank": dst,
        "transport": "HCCS",
        "bytes": size,
        "dur_ns": dur,
        **more,
    }


def test_links_are_compared_with_those_that_moved_as_much(ask):
    rows = [link(0, 1, 100, 10), link(1, 2, 100, 10), link(2, 0, 100, 20), link(0, 2, 900, 10)]
    assert ask("rank/link", {"rank_link": rows}, give=GIVE, top=9) == [
        ("HCCS", 2, 0, 4, 1, 100, 20, 5e9, 1, 0.5),
        ("HCCS", 0, 1, 4, 1, 100, 10, 1e10, 1, 1.0),
        ("HCCS", 1, 2, 4, 1, 100, 10, 1e10, 1, 1.0),
        ("HCCS", 0, 2, 4, 1, 900, 10, 9e10, 0, None),
    ]


def test_quartiles_over_operators(ask):
    rows = [link(*ends, 100, dur, name) for name in "abcd" for ends, dur in (((0, 1), 10), ((1, 0), 10), ((0, 2), 40))]
    found = ask("rank/link", {"rank_link": rows}, give="src_rank dst_rank compared ratio ratio_low ratio_high", top=1)
    assert found == [(0, 2, 4, 0.25, 0.25, 0.25)]


def test_kinds_are_apart_and_own_memory_and_sums_are_left_out(ask):
    rows = [link(0, 1, 100, 10), link(0, 0, 100, 1), link(None, None, 100, 9), link(1, 0, 100, 50, transport="RDMA")]
    assert ask("rank/link", {"rank_link": rows}, give="transport src_rank dst_rank ratio", top=9) == [
        ("HCCS", 0, 1, None),
        ("RDMA", 1, 0, None),
    ]


def test_what_moved_nothing_or_took_no_time_is_left_out(ask):
    rows = [link(0, 1, 0, 10), link(0, 1, 10, 0), link(0, 1, None, 10)]
    assert ask("rank/link", {"rank_link": rows}, top=9) == []
