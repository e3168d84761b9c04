def test_shares_of_what_was_released_by_how_it_is_known(ask):
    rows = [
        {"bytes": 60, "released_ns": 2, "evidence": "matched"}, {"bytes": 30, "released_ns": 2, "evidence": "inferred"},
        {"bytes": 10, "released_ns": 2, "evidence": "earlier"}, {"bytes": 900, "evidence": "unseen"},
        {"rank": 1, "bytes": 5, "evidence": "unseen"}, {"rank": 2, "bytes": 7, "released_ns": 3},
    ]  # fmt: skip
    give = "rank blocks released_bytes matched_bytes inferred_bytes earlier_bytes matched_ratio"
    assert ask("memory/evidence", {"allocation": rows}, give=give) == [
        (0, 4, 100, 60, 30, 10, 0.6),
        (1, 1, 0, 0, 0, 0, None),
    ]
