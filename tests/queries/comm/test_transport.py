GIVE = "transport moves moved_bytes moving_ns rate median_rate"


def moved(size, dur, transport="HCCS", src=None, dst=None):
    return {"transport": transport, "src_rank": src, "dst_rank": dst, "bytes": size, "dur_ns": dur}


def test_sums_of_a_kind_count_alone_when_they_are_there(ask):
    rows = [moved(100, 10), moved(300, 10), moved(50, 10, "RDMA"), moved(999, 1, src=0, dst=1)]
    assert ask("comm/transport", {"rank_link": rows}, give=GIVE) == [
        ("HCCS", 2, 400, 20, 2e10, 2e10),
        ("RDMA", 1, 50, 10, 5e9, 5e9),
    ]


def test_sdma_is_not_counted_beside_its_parts(ask):
    rows = [moved(100, 10), moved(100, 10, "SDMA"), moved(7, 1, "SDMA")]
    assert ask("comm/transport", {"rank_link": rows}, give="transport moved_bytes") == [("HCCS", 100)]
    assert ask("comm/transport", {"rank_link": rows[1:]}, give="transport moved_bytes") == [("SDMA", 107)]


def test_else_single_links_are_added_up_and_copies_to_itself_are_apart(ask):
    rows = [
        moved(100, 10, src=0, dst=1),
        moved(100, 30, src=1, dst=0),
        moved(80, 1, src=0, dst=0),
        moved(0, 5, src=0, dst=1),
    ]
    assert ask("comm/transport", {"rank_link": rows}, give=GIVE) == [
        ("HCCS", 2, 200, 40, 5e9, (1e10 + 1e9 * 100 / 30) / 2),
        ("own memory", 1, 80, 1, 8e10, 8e10),
    ]
