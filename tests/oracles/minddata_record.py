"""Record tables from a folder of MindSpore's dataset profiling: every sample of it, as other programs read it."""

from pipeprof.read.minddata import read_folder


def tables_from(folder):
    data = read_folder(folder)
    key = {"pipeline_id": 0}
    return {
        "pipeline": [{**key, "pipeline_key": "a", "role": "train"}],
        "pipeline_op": [
            {**key, "op_id": op.op_id, "op_type": op.op_type, "workers": op.workers}
            | {"capacity": op.capacity, "inlined": op.capacity is None}
            for op in data.ops
        ],
        "pipeline_edge": [
            {**key, "producer_id": child, "consumer_id": op.op_id} for op in data.ops for child in op.children
        ],
        "queue": [
            {**key, "op_id": op.op_id, "t_ns": at, "depth": depth, "capacity": op.capacity}
            for op in data.ops
            for at, depth in enumerate(op.depths)
        ],
        "cpu": [
            {**key, "op_id": op.op_id, "scope": "pipeline_op", "t_ns": at, "user_ratio": user, "sys_ratio": system}
            for op in data.ops
            for at, (user, system) in enumerate(op.cpu)
        ],
        "fetch": [
            {**key, "fetch": record.batch - 1, "depth": record.depth, "capacity": record.capacity, "side": "iterator"}
            for record in data.records
        ],
    }
