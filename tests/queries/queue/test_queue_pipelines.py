def pipeline(number, key="a", role="train", **more):
    return {"pipeline_id": number, "pipeline_key": key, "role": role, "created_ns": 0, "ready_ns": 5, **more}


def fetch(number, position, wait):
    return {"pipeline_id": number, "fetch": position, "wait_ns": wait}


def test_iterators_of_the_same_pipeline_are_one_row(ask):
    tables = {
        "pipeline": [pipeline(0, batch_size=8, queues="recorded"), pipeline(1, batch_size=8, queues="not_recorded: x")],
        "fetch": [fetch(0, 0, 100), fetch(0, 1, 10), fetch(1, 0, 50)],
    }
    give = "pipeline_key iterators batches wait_ns first_batch_ns build_ns queues batch_size"
    assert ask("queue/pipelines", tables, give=give) == [("a", 2, 3, 160, 100, 10, "recorded", 8)]


def test_a_pipeline_that_was_never_fetched_from_waited_for_nothing(ask):
    rows = ask("queue/pipelines", {"pipeline": [pipeline(0)]}, give="batches wait_ns first_batch_ns")
    assert rows == [(0, 0, None)]


def test_a_pipeline_without_a_key_stands_for_itself(ask):
    tables = {"pipeline": [pipeline(3, key=None), pipeline(4, key=None, role="eval")]}
    assert ask("queue/pipelines", tables, give="pipeline_key role") == [("3", "train"), ("4", "eval")]
