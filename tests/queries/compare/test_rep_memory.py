def test_the_largest_process_counts(ask):
    rows = [
        {"device": "process", "pid": 1, "rss_bytes": 50, "rss_peak_bytes": 70},
        {"device": "process", "pid": 2, "rss_bytes": 90, "rss_peak_bytes": None},
        {"device": "host", "rss_bytes": 1000},
        {"device": "process", "pid": 3, "rss_bytes": 20, "rep": 1},
    ]
    assert ask("compare/rep_memory", {"memory": rows}, give="rep peak_bytes") == [(0, 90), (1, 20)]


def test_the_peak_of_a_process_counts_when_it_is_known(ask):
    rows = [{"device": "process", "pid": 1, "rss_bytes": 50, "rss_peak_bytes": 70}]
    assert ask("compare/rep_memory", {"memory": rows}, give="peak_bytes") == [(70,)]
