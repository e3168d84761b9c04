"""One queue, sampled five times."""

SAMPLES = [(0, 0), (1, 4), (2, 2), (5, 4), (9, 4)]  # ns, depth
TABLES = {
    "pipeline": [{"pipeline_id": 0, "pipeline_key": "k", "role": "train"}],
    "pipeline_op": [{"pipeline_id": 0, "op_id": 1, "op_type": "MapOp"}],
    "queue": [{"pipeline_id": 0, "op_id": 1, "t_ns": at, "depth": depth, "capacity": 4} for at, depth in SAMPLES],
}
