GIVE = "device name samples processes peak_rss_bytes peak_allocated_bytes peak_reserved_bytes"


def test_peaks_of_processes_host_and_pool(ask):
    memory = [
        {"t_ns": 0, "device": "process", "pid": 1, "name": "trainer", "rss_bytes": 10, "rss_peak_bytes": 15},
        {"t_ns": 1, "device": "process", "pid": 1, "name": "trainer", "rss_bytes": 12, "rss_peak_bytes": None},
        {"t_ns": 1, "device": "process", "pid": 2, "name": "worker", "rss_bytes": 7},
        {"t_ns": 1, "device": "process", "pid": 3, "name": "worker", "rss_bytes": 5},
        {"t_ns": 0, "device": "CPU", "allocated_bytes": 3, "reserved_bytes": 8},
        {"t_ns": 1, "device": "CPU", "allocated_bytes": 4, "reserved_bytes": 8},
        {"t_ns": 0, "device": "host", "allocated_bytes": 99},
    ]
    assert ask("host/memory_peak", {"memory": memory}, give=GIVE) == [
        ("CPU", "", 2, 0, None, 4, 8),
        ("host", "", 1, 0, None, 99, None),
        ("process", "trainer", 2, 1, 15, None, None),
        ("process", "worker", 2, 2, 7, None, None),
    ]
