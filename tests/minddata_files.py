"""Folders as MindSpore's dataset profiling writes them, made by hand: generator (3 rows a batch) -> map -> batch."""

import json

MS = 1_000_000
START_MS = 1_000  # the monotonic clock's first stamp
WALL_S = 1_790_000_000  # the wall clock at monotonic 0: 2026-09-21 14:13:20
PERIODS_MS = (40, 47, 43, 51, 45, 42, 49, 44, 53, 41)


def op(number, kind, sizes=None, children=(), capacity=8, workers=1):
    metrics = None if sizes is None else {"output_queue": {"length": capacity, "size": list(sizes)}}
    return {
        "op_id": number, "op_type": kind, "num_workers": workers, "children": list(children) or None, "metrics": metrics,
    }  # fmt: skip


def graph(samples=6):
    """Not in the order of the ids, as MindSpore writes it."""
    return [
        op(2, "GeneratorOp", [8, 7, 8, 8, 8, 7, 8, 8][:samples]),
        op(0, "BatchOp", [0, 0, 1, 0, 0, 0, 0, 0][:samples], [1]),
        op(1, "MapOp", [0, 1, 0, 0, 0, 0, 1, 0][:samples], [2], workers=2),
    ]


def pipeline_json(ops=None, interval=10):
    return json.dumps({"op_info": graph() if ops is None else ops, "sampling_interval": interval})


def cpu_json(samples=6, twins=True, **changes):
    """As MindSpore 2.10 writes it: host values twice, the second one 0."""
    idle = [value for number in range(samples) for value in (75 if number else 0, 0)]
    content = {
        "cpu_processor_num": 2,
        "device_info": {
            "idle_utilization": idle if twins else [75] * samples,
            "user_utilization": ([0, 0, 25, 0, 25, 0, 25, 0] if twins else [20] * 8)[:samples],
            "sys_utilization": [0] * samples if twins else [5] * samples,
        },
        "op_info": [
            {"op_id": number, "metrics": {"user_utilization": [50] * samples, "sys_utilization": [10] * samples}}
            for number in (0, 1, 2, -1)
        ],
        "process_info": {"user_utilization": [120] * (samples - 1), "sys_utilization": [30] * (samples - 1)},
        "process_memory_info": {"rss_mbytes": [100.5] * samples},
        "system_memory_info": {"used_sys_memory_mbytes": [700] * samples},
        "sampling_interval": 10,
        "time_stamp": [START_MS + 23 * number for number in range(samples)],
    }
    return json.dumps({**content, **changes})


def stamps_ms(batches=8):
    """When each batch was handed over."""
    times = [START_MS + 60]
    for number in range(1, batches):
        times.append(times[-1] + PERIODS_MS[number % len(PERIODS_MS)])
    return times


def queue_lines(batches=8, first=1, wait=30, push=0, stamped=True, capacity=8):
    """A dataset_iterator_profiling file, or with `push` a device_queue_profiling file."""
    lines = []
    for number, stamp in enumerate(stamps_ms(batches), start=first):
        tail = f" {stamp}" if stamped else ""
        rows = (
            f"0 1 {number} {push}",
            f"0 2 {number} {wait + push}",
            f"0 0 {number} {wait}",
            f"1 {capacity} {number} 0",
        )
        lines += [row + tail for row in rows]
    return "\n".join(lines) + "\n"


def device_lines(batches=8, unit_per_ms=1_000):
    lines = [
        f"GetNext_dequeue_wait {stamp * unit_per_ms} {(stamp + 5) * unit_per_ms} {number % 2}"
        for number, stamp in enumerate(stamps_ms(batches))
    ]
    return "\n".join(lines) + "\n"


def header(stamp_ms, pid=77):
    seconds, millis = divmod(stamp_ms, 1_000)
    hours, rest = divmod(14 * 3600 + 13 * 60 + 20 + seconds, 3600)
    return (
        f"[V10900] MD({pid},7f36e1416b80,python):2026-09-21-{hours:02d}:{rest // 60:02d}:{rest % 60:02d}.{millis:03d}.000 "
        "[mindspore/ccsrc/minddata/dataset/engine/consumers/tree_consumer.cc:212] GetNextAsVector] "
    )


def block(stamp_ms, pid=77, extra=""):
    return (
        f"{header(stamp_ms, pid)}\n[PROF Dataset]\n"
        "worker_time: The worker time in OP, include max, min, avg; throughput_time: The overall throughput time\n"
        "-- GeneratorOp(ID:2)   : worker_time (avg:1.14ms, max:1.26ms, min:1.09ms, count:3)\n"
        "-- MapOp(ID:1)         : worker_time (avg:5.48ms, max:6.55ms, min:5.11ms, count:3), io_time (avg:0.07ms, max:0.43ms, "
        "min:0.02ms, count:3) \n"
        f"-- BatchOp(ID:0)       : worker_time (avg:0.05ms, max: /, min: /, count:1) \n{extra}\n"
    )


def log(batches=8, skip=0, pid=77):
    return "".join(block(stamp, pid) for stamp in stamps_ms(batches)[skip:])


def write_feed(folder, rank=0):
    """A whole folder of a training without a data sink."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        f"pipeline_profiling_{rank}.json": pipeline_json(),
        f"minddata_cpu_utilization_{rank}.json": cpu_json(),
        f"dataset_iterator_profiling_{rank}.txt": queue_lines(),
        f"worker_{rank}.log": log(pid=77 + rank),
    }.items():
        folder.joinpath(name).write_text(text, encoding="utf-8")
    return folder


def write_sink(folder, rank=0):
    """A whole folder of a training with a data sink on a device."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        f"minddata_pipeline_raw_{rank}.csv": raw_csv(),
        f"device_queue_profiling_{rank}.txt": queue_lines(push=4),
        f"minddata_aicpu_{rank}.txt": device_lines(),
    }.items():
        folder.joinpath(name).write_text(text, encoding="utf-8")
    return folder


def write_gpu(folder, rank=0):
    """The same of a GPU, whose file of the device side is in ns."""
    write_sink(folder, rank).joinpath(f"minddata_aicpu_{rank}.txt").unlink()
    lines = device_lines(unit_per_ms=1_000_000).replace("GetNext_dequeue_wait", "GetNextOp")
    folder.joinpath(f"minddata_getnext_profiling_{rank}.txt").write_text(lines, encoding="utf-8")
    return folder


def raw_csv():
    return (
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        "output_queue_usage_rate,sample_interval,parent_id,children_id\r\n"
        "0,Batch,4,,,,0,10,,[1]\r\n"
        '1,Shuffle,1,"[1, 2, 3]",2.0,8,0.25,10,0,"[2, 3]"\r\n'
        '2,TFReader,4,"[8, 8, 8]",8.0,8,1.0,10,1,\r\n'
        '3,TFReader,4,"[4, 4, 4]",4.0,8,0.5,10,1,[]\r\n'
    )
