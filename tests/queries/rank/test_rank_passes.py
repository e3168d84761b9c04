def test_ranks_with_whole_passes(ask):
    kinds = {0: ("pass", "pass", "kernel"), 1: ("kernel", None), 2: ("pass",)}
    infos = [{"rank": rank, "op_id": number, "category": kind} for rank in kinds for number, kind in enumerate(kinds[rank])]  # fmt: skip
    assert ask("rank/passes", {"op_info": infos}, give="rank kinds") == [(0, 2), (2, 1)]
