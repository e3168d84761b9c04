"""Small JSON of rocprofv3 for tests."""

import gzip
import json

KINDS = ["NONE", "HIP_RUNTIME_API", "MEMORY_COPY"]


def record(start, end, correlation, *, kind=0, operation=0, thread=7, **more):
    return {
        "size": 8, "kind": kind, "operation": operation, "thread_id": thread, "start_timestamp": start,
        "end_timestamp": end, "correlation_id": {"internal": correlation, "external": 0}, **more,
    }  # fmt: skip


def kernel(start, end, correlation, number=3, agent=72, queue=1):
    info = {"size": 1, "agent_id": {"handle": agent}, "queue_id": {"handle": queue}, "kernel_id": number}
    return record(start, end, correlation, dispatch_info=info)


def document():
    """Two steps on two GPUs: each launches a kernel on each and copies a batch; times are ns since the machine began."""
    zero = 63_000_000_000_001
    api, kernels, copies, ranges = [], [], [], []
    for step in range(2):
        begin = zero + 10_000 * step
        ranges.append(record(begin, begin + 8_000, 100 + step))
        for gpu in range(2):
            tied = 1 + 10 * step + gpu
            api.append(record(begin + 100 + 200 * gpu, begin + 200 + 200 * gpu, tied, kind=1, operation=1))
            kernels.append(kernel(begin + 1_000, begin + 4_000, tied, 3 + gpu, 72 + gpu))
        ends = {"src_agent_id": {"handle": 71}, "dst_agent_id": {"handle": 72}}
        copies.append(record(begin + 5_000, begin + 6_000, 8 + 10 * step, kind=2, operation=1, bytes=4096, **ends))
    tool = {
        "metadata": {"node": {"hostname": "here", "machine_id": "0"}, "pid": 7, "command": ["python", "train.py"]},
        "agents": [
            {"size": 1, "id": {"handle": 71}, "type": 1, "logical_node_type_id": 0},
            {"size": 1, "id": {"handle": 72}, "type": 2, "logical_node_type_id": 0},
            {"size": 1, "id": {"handle": 73}, "type": 2, "logical_node_type_id": 1},
        ],
        "counters": [],
        "strings": {
            "callback_records": [],
            "buffer_records": [
                {"kind": kind, "operations": ["none", name]}
                for kind, name in zip(KINDS, ["", "hipLaunchKernel", "MEMORY_COPY_HOST_TO_DEVICE"], strict=True)
            ],
            "marker_api": [{"key": 100 + step, "value": f"train step {step}"} for step in range(2)],
        },
        "kernel_symbols": [
            {"kernel_id": 3, "formatted_kernel_name": "gemm<4>(int)", "kernel_name": "gemm.kd"},
            {"kernel_id": 4, "formatted_kernel_name": "ncclDevKernel_Generic_1", "kernel_name": "nccl.kd"},
        ],
        "buffer_records": {
            "kernel_dispatch": kernels, "hip_api": api, "hsa_api": [record(1, 2, 3)], "memory_copy": copies,
            "marker_api": ranges,
        },
    }  # fmt: skip
    return {"rocprofiler-sdk-tool": [tool]}


def written(path, content):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_results(folder):
    """A folder with the results of a process."""
    folder.mkdir()
    written(folder / "7_results.json", document())
    return folder
