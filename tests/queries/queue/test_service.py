def service(t, avg, rows, op=1, pipeline=0, **more):
    return {"pipeline_id": pipeline, "op_id": op, "t_ns": t, "avg_ns": avg, "rows": rows, **more}


def test_times_are_weighted_by_rows(ask):
    rows = [service(0, 10, 1, max_ns=None), service(1, 20, 3, max_ns=50)]
    give = "op_id batches rows mean_ns p90_ns max_ns work_per_batch_ns io_share"
    assert ask("queue/service", {"op_service": rows}, give=give) == [(1, 2, 4, 17.5, 19.0, 50, 35.0, None)]


def test_the_only_row_of_a_batch_can_be_the_longest(ask):
    rows = [service(0, 90, 1), service(1, 20, 3, max_ns=50)]
    assert ask("queue/service", {"op_service": rows}, give="max_ns") == [(90,)]


def test_reading_is_a_share_of_the_work_that_says_so(ask):
    rows = [service(0, 10, 2, io_ns=5), service(1, 1000, 2, io_ns=None)]
    assert ask("queue/service", {"op_service": rows}, give="io_share") == [(0.5,)]


def test_equal_keys_are_pooled_and_operators_named(ask):
    tables = {
        "pipeline": [{"pipeline_id": number, "pipeline_key": "a"} for number in (0, 1)],
        "pipeline_op": [{"pipeline_id": number, "op_id": 1, "op_type": "MapOp", "workers": 2} for number in (0, 1)],
        "op_service": [service(0, 10, 1), service(9, 30, 1, pipeline=1)],
    }
    rows = ask("queue/service", tables, give="pipeline_key op_type workers batches mean_ns")
    assert rows == [("a", "MapOp", 2, 2, 20.0)]
