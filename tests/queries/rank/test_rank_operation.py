MS = 1_000_000


def tables(steps=((0, (0, 1)),)):
    """Per (step, ranks): two ranks of two stages, one microbatch, in ms; rank 1 receives what rank 0 sends."""
    found = {"step": [], "op": [], "op_info": [], "collective": []}
    for rank in (0, 1):
        info = {"rank": rank, "op_id": 0, "name": "Chunk1/Forward-3", "phase": "forward", "category": "pass"}
        found["op_info"] += [
            info,
            {"rank": rank, "op_id": 1, "name": "MatMul", "phase": "forward", "category": "kernel"},
        ]
    for step, ranks in steps:
        for rank in ranks:
            here, begin = {"rank": rank, "step": step}, (100 * step + 10 * rank) * MS
            found["step"].append({**here, "kind_step": step, "kind": "train", "start_ns": 0, "end_ns": 1000 * MS})
            found["op"] += [{**here, "op_id": op_id, "start_ns": begin, "dur_ns": 8 * MS} for op_id in (0, 1)]
            moved = {"kind": "receive" if rank else "send", "name": f"chunk_1_Forward-{'recv' if rank else 'send'}"}
            found["collective"].append({**here, **moved, "group_name": "p", "track": "s", "start_ns": 8 * MS, "dur_ns": 2 * MS})  # fmt: skip
    return found


def test_passes_and_communication_with_what_they_belong_to(ask):
    rows = ask(
        "rank/operation", tables(), steps=5, give="rank place name kind group_name peers is_comm start_ns end_ns"
    )
    assert rows == [
        (0, 1, "chunk1/forward-3", "forward", "", 0, False, 0, 8 * MS),
        (0, 2, "chunk_1_forward-send", "send", "p", 0, True, 8 * MS, 10 * MS),
        (1, 1, "chunk_1_forward-recv", "receive", "p", 1, True, 8 * MS, 10 * MS),
        (1, 2, "chunk1/forward-3", "forward", "", 1, False, 10 * MS, 18 * MS),
    ]


def test_only_steps_that_all_ranks_have(ask):
    both = (0, 1)
    rows = ask("rank/operation", tables([(0, both), (1, (0,)), (2, both)]), steps=5, give="position")
    assert {row[0] for row in rows} == {0, 2}


def test_with_many_steps_evenly_spaced_ones(ask):
    rows = ask("rank/operation", tables([(step, (0, 1)) for step in range(9)]), steps=3, give="position")
    assert sorted({row[0] for row in rows}) == [0, 3, 6]


def test_without_whole_passes_there_is_nothing(ask):
    found = tables()
    for row in found["op_info"]:
        row["category"] = "kernel"
    assert ask("rank/operation", found, steps=5) == []
