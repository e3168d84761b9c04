def samples(depths, op=0, pipeline=0, start=0, **more):
    row = {"pipeline_id": pipeline, "op_id": op, "capacity": 4, **more}
    return [{**row, "t_ns": start + 10 * number, "depth": depth} for number, depth in enumerate(depths)]


def pipelines(*keys):
    return {
        "pipeline": [{"pipeline_id": number, "pipeline_key": key, "role": "train"} for number, key in enumerate(keys)],
        "pipeline_op": [{"pipeline_id": number, "op_id": 0, "op_type": "BatchOp"} for number in range(len(keys))],
    }


COLUMNS = "op_id samples mean_depth capacity mean_ratio empty_share full_share"


def test_how_full_each_queue_was(ask):
    queue = samples([3, 0, 4, 2, 2]) + samples([0, 4, 4, 4, 4], op=1)
    rows = ask("queue/utilisation", {"queue": queue, **pipelines("a")}, give=COLUMNS)
    assert rows == [(0, 4, 2.0, 4, 0.5, 0.25, 0.25), (1, 4, 4.0, 4, 1.0, 0.0, 1.0)]


def test_the_start_is_left_out_by_time_the_border_kept(ask):
    tables = {"queue": samples([4, 2, 0, 0, 0]), **pipelines("a")}
    assert ask("queue/utilisation", tables, give="samples mean_depth") == [(4, 0.5)]


def test_the_start_counts_from_the_first_batch_that_the_loop_had(ask):
    fetches = [
        {"pipeline_id": 0, "fetch": n, "start_ns": at, "wait_ns": 5, "side": "iterator"} for n, at in ((0, 15), (1, 55))
    ]
    tables = {"queue": samples([4, 4, 4, 0, 1, 2]), "fetch": fetches, **pipelines("a")}
    rows = ask("queue/utilisation", tables, give="samples mean_depth")
    assert rows == [(3, 1.0)]  # the batches came at 20 and at 60 ns


def test_fewer_than_three_samples_of_the_steady_state_are_too_few_to_choose_from(ask):
    tables = {"queue": samples([4, 1, 1]), **pipelines("a")}
    assert ask("queue/utilisation", tables, give="samples mean_depth") == [(3, 2.0)]


def test_samples_of_an_unknown_pipeline_all_count(ask):
    assert ask("queue/utilisation", {"queue": samples([4, 2, 0, 0, 0])}, give="samples") == [(5,)]


def test_each_pipeline_leaves_out_its_own_start_and_equal_keys_are_pooled(ask):
    queue = samples([4, 1, 1], pipeline=0) + samples([4, 3, 3], pipeline=1, start=1000)
    tables = {"queue": queue + samples([0, 2, 2, 2], pipeline=2), **pipelines("a", "a", "b")}
    rows = ask("queue/utilisation", tables, give="pipeline_key op_type role samples mean_depth")
    assert rows == [("a", "BatchOp", "train", 4, 2.0), ("b", "BatchOp", "train", 3, 2.0)]


def test_pipelines_without_a_key_stay_apart(ask):
    queue = samples([1], pipeline=0) + samples([3], pipeline=1)
    rows = ask("queue/utilisation", {"queue": queue}, give="pipeline_key op_type mean_depth")
    assert rows == [("0", None, 1.0), ("1", None, 3.0)]


def test_an_unknown_capacity_gives_no_ratio(ask):
    rows = ask("queue/utilisation", {"queue": samples([0, 2], capacity=None)}, give=COLUMNS)
    assert rows == [(0, 2, 1.0, None, None, 0.5, None)]


def test_a_sample_without_depth_is_no_reading(ask):
    rows = ask("queue/utilisation", {"queue": samples([None, 4])}, give=COLUMNS)
    assert rows == [(0, 1, 4.0, 4, 1.0, 0.0, 1.0)]


def test_the_fill_is_the_one_that_the_diagnosis_uses(ask):
    tables = {"queue": samples([4, 0, 1, 2, 3]), **pipelines("a")}
    (fill,) = ask("queue/utilisation", tables, give="mean_ratio samples")
    assert fill in ask("diagnose/load", tables, give="output_ratio samples")
