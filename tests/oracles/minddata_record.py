"""Record tables from a folder of MindSpore's dataset profiling: every sample of it, as other programs read it."""

from table_rows import KEY

from pipeprof.read.minddata import read_folder


def tables_from(folder):
    data = read_folder(folder)
    found = {
        "pipeline": [KEY | {"pipeline_key": "a", "role": "train"}],
        "pipeline_op": [],
        "pipeline_edge": [],
        "queue": [],
        "cpu": [],
    }
    for op in data.ops:
        key, size = KEY | {"op_id": op.op_id}, {"capacity": op.capacity}
        found["pipeline_op"].append(
            key | size | {"op_type": op.op_type, "workers": op.workers, "inlined": op.capacity is None}
        )
        found["pipeline_edge"] += [KEY | {"producer_id": child, "consumer_id": op.op_id} for child in op.children]
        found["queue"] += [key | size | {"t_ns": at, "depth": depth} for at, depth in enumerate(op.depths)]
        found["cpu"] += [
            key | {"scope": "pipeline_op", "t_ns": at, "user_ratio": user, "sys_ratio": system}
            for at, (user, system) in enumerate(op.cpu)
        ]
    found["fetch"] = [
        KEY | {"fetch": record.batch - 1, "depth": record.depth, "capacity": record.capacity, "side": "iterator"}
        for record in data.records
    ]
    return found
