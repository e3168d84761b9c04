"""Views over the training pipelines: which graph stands for them, their batches, the use of queues and CPUs."""


def samples(pipeline, op, *depths, capacity=4):
    return [
        {"pipeline_id": pipeline, "op_id": op, "t_ns": at, "depth": depth, "capacity": capacity}
        for at, depth in enumerate(depths)
    ]


def pipelines(*keys, role="train"):
    return [{"pipeline_id": number, "pipeline_key": key, "role": role} for number, key in enumerate(keys)]


CHOICE = "SELECT pipeline_key, pipeline_id FROM train_pipeline ORDER BY pipeline_key"


def test_of_equal_pipelines_the_first_with_samples_stands_for_all(look):
    tables = {
        "pipeline": pipelines("a", "a", "a", "b"),
        "queue": samples(1, 0, 1) + samples(2, 0, 1) + samples(3, 0, 1),
    }
    assert look(CHOICE, tables) == [("a", 1), ("b", 3)]


def test_only_training_has_a_choice(look):
    assert look(CHOICE, {"pipeline": pipelines("a", role="eval"), "queue": samples(0, 0, 1)}) == []


def batches(side, *depths):
    return [
        {"pipeline_id": 0, "fetch": at, "start_ns": 10 * at, "wait_ns": 1, "depth": depth, "side": side}
        for at, depth in enumerate(depths)
    ]


BATCHES = 'SELECT side, "fetch", t_ns, depth FROM train_batch ORDER BY side, "fetch"'


def test_batches_of_the_iterator_are_the_host_side(look):
    tables = {"pipeline": pipelines("a"), "fetch": batches("iterator", 3, None, 0)}
    assert look(BATCHES, tables) == [("host", 0, 1, 3), ("host", 2, 21, 0)]


def test_a_queue_to_the_device_replaces_the_iterator(look):
    fetches = batches("iterator", 3) + batches("host_queue", 2) + batches("data_queue", 1)
    tables = {"pipeline": pipelines("a"), "fetch": fetches}
    assert look(BATCHES, tables) == [("device", 0, 1, 1), ("host", 0, 1, 2)]


USAGE = (
    "SELECT op_id, capacity, has_queue, samples, empty_samples, mean_depth, usage_ratio, cpu_samples, mean_cores "
    "FROM pipeline_usage ORDER BY op_id"
)


def test_use_is_the_mean_over_all_graphs_of_a_key(look):
    cpu = {"t_ns": 0, "scope": "pipeline_op", "op_id": 0, "user_ratio": 0.5}
    tables = {
        "pipeline": pipelines("a", "a"),
        "pipeline_op": [
            {"pipeline_id": pipeline, "op_id": op, "capacity": capacity, "inlined": capacity is None}
            for pipeline in (0, 1)
            for op, capacity in ((0, 4), (1, None))
        ],
        "pipeline_edge": [{"pipeline_id": pipeline, "producer_id": 1, "consumer_id": 0} for pipeline in (0, 1)],
        "queue": samples(0, 0, 0, 4, None) + samples(1, 0, 2),
        "cpu": [{**cpu, "pipeline_id": 0, "sys_ratio": 0.25}, {**cpu, "pipeline_id": 1, "sys_ratio": None}],
    }
    assert look(USAGE, tables) == [(0, 4, True, 3, 1, 2.0, 0.5, 1, 0.75), (1, None, False, 0, 0, None, None, 0, None)]


def test_queues_of_changing_size_are_averaged_by_fill(look):
    tables = {
        "pipeline": pipelines("a"),
        "pipeline_op": [{"pipeline_id": 0, "op_id": 0, "capacity": 4}],
        "queue": [*samples(0, 0, 4), {"pipeline_id": 0, "op_id": 0, "t_ns": 9, "depth": 4, "capacity": 8}],
    }
    assert look("SELECT capacity, mean_depth, usage_ratio FROM pipeline_usage", tables) == [(4, 4.0, 0.75)]
