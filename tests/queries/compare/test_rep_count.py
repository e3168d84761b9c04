def test_graphs_of_all_ranks_and_the_largest_batches(ask):
    parts = [
        {"part": "compile", "count": 1}, {"part": "recompile", "count": 3}, {"part": "compile_eval", "count": 1},
        {"part": "training", "count": 90}, {"part": "compile", "count": 1, "rank": 1}, {"part": "training", "rep": 1},
    ]  # fmt: skip
    pipelines = [
        {"pipeline_id": 0, "role": "train", "epoch_batches": 8, "batch_size": 4, "batch_bytes": 96},
        {"pipeline_id": 1, "role": "train", "epoch_batches": None, "batch_size": 2, "batch_bytes": None},
        {"pipeline_id": 2, "role": "eval", "epoch_batches": 80, "batch_size": 40, "batch_bytes": 960},
    ]
    found = ask("compare/rep_count", {"run_part": parts, "pipeline": pipelines})
    assert [tuple(row.values()) for row in found] == [(0, 6, 8, 4, 96, None), (1, 0, None, None, None, None)]


def test_without_parts_graphs_are_not_known(ask):
    rows = [{"pipeline_id": 0, "role": "train", "batch_size": 4}]
    assert ask("compare/rep_count", {"pipeline": rows}, give="compilations batch_rows") == [(None, 4)]


def test_allocations_count_where_each_was_recorded(ask):
    rows = [{"bytes": 4, "evidence": None}, {"bytes": 8, "evidence": None}, {"bytes": 8, "evidence": "inferred"}]
    assert ask("compare/rep_count", {"allocation": rows}, give="rep allocations") == [(0, 2)]
