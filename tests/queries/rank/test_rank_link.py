GIVE = "transport src_rank dst_rank links moves moved_bytes moving_ns rate compared ratio"


def link(src, dst, size, dur, name="a", transport="HCCS", **more):
    ends = {"src_rank": src, "dst_rank": dst, "transport": transport}
    return {"step": 0, "name": name, "bytes": size, "dur_ns": dur, **ends, **more}


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


def test_numbers_of_a_group_are_replaced_by_ranks_of_the_job(ask):
    pairs = {"front": (4, 5), "back": (6, 7)}
    rows = [
        link(src, dst, 100, 10 if group == "front" else 40, group_name=group, rank=rank)
        for group, members in pairs.items() for rank in members for src, dst in ((0, 1), (1, 0))
    ]  # fmt: skip
    found = ask("rank/link", {"rank_link": rows}, give="src_rank dst_rank moves moving_ns local_group", top=9)
    assert sorted(found) == [(4, 5, 1, 20, ""), (5, 4, 1, 20, ""), (6, 7, 1, 80, ""), (7, 6, 1, 80, "")]


def test_links_of_groups_whose_members_are_not_known_are_not_added_up(ask):
    rows = [link(0, 1, 100, 10 * place, group_name=group, rank=9) for place, group in enumerate("ab", 1)]
    found = ask("rank/link", {"rank_link": rows}, give="src_rank dst_rank moving_ns local_group", top=9)
    assert sorted(found) == [(0, 1, 10, "a"), (0, 1, 20, "b")]


def test_ranks_of_the_job_stay_whatever_group_they_are_in(ask):
    rows = [link(src, dst, 100, 10, group_name="pair", rank=rank) for rank in (1, 2) for src, dst in ((1, 2), (2, 1))]
    found = ask("rank/link", {"rank_link": rows}, give="src_rank dst_rank moves local_group", top=9)
    assert sorted(found) == [(1, 2, 1, ""), (2, 1, 1, "")]
