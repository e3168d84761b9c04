def test_samples_of_one_iterator_from_the_last_one_before_the_stretch(ask):
    queue = [
        {"pipeline_id": pipeline, "op_id": op, "t_ns": at, "depth": at // 10, "capacity": 8}
        for pipeline in (0, 1)
        for op in (0, 1)
        for at in (10, 20, 30, 40, 50)
        if at != 30 or op
    ]
    stretch = {"rep": 0, "rank": 0, "pipeline_id": 1, "first_ns": 25, "last_ns": 45}
    found = ask("timeline/queue_depth", {"queue": queue}, give="op_id t_ns depth fill_ratio", top=9, **stretch)
    assert found == [(0, 20, 2, 0.25), (0, 40, 4, 0.5), (1, 20, 2, 0.25), (1, 30, 3, 0.375), (1, 40, 4, 0.5)]
    assert len(ask("timeline/queue_depth", {"queue": queue}, top=1, **stretch)) == 2
