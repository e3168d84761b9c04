"""Raw and derived files of invented Ascend jobs, in the forms of their writers: `ascend_files_of_a_job.py FOLDER`.

No Ascend device is here, so times are drawn (with a seed), and what MindSpore and MindInsight make of them is theirs:
`mindspore_parsers.py` and `mindinsight_answers.py` are run on what this writes.

- `job/`: what a device leaves: the training trace in two slices, descriptions of operators, tasks and points
- `job_aicpu/`: the AI CPU's own log, of MindSpore's operators and of others
- `job_track/rank<N>/`: the newer trace of two ranks, 2 of 4 of a pipeline
- `one_rank/`, `two_ranks/`: beside the step traces that MindSpore makes of the first and the last: operators, queues, work
"""

from __future__ import annotations

import csv
import json
import struct
import sys
from pathlib import Path
from random import Random

ZERO = 45_000_000_000  # of the device's counter, ticks of 10 ns
OPERATORS = [  # full name, type, block, microseconds of one execution
    ("Default/GetNext-op6", "GetNext", 1, 50),
    ("Default/Cast-op7", "Cast", 32, 12),
    ("Default/network-WithLossCell/_backbone-Net/conv1-Conv2d/Conv2D-op21", "Conv2D", 32, 180),
    ("Default/network-WithLossCell/_backbone-Net/conv2-Conv2d/Conv2D-op24", "Conv2D", 32, 240),
    ("Default/network-WithLossCell/_backbone-Net/fc-Dense/MatMul-op30", "MatMul", 32, 75),
    ("Default/network-WithLossCell/_backbone-Net/relu-ReLU/ReLU-op31", "ReLU", 16, 9),
    ("Gradients/Default/network-WithLossCell/_backbone-Net/fc-Dense/gradMatMul/MatMul-op33", "MatMul", 32, 96),
    ("Gradients/Default/network-WithLossCell/_backbone-Net/conv1-Conv2d/gradConv2D/Conv2DBackpropFilter-op35",
     "Conv2DBackpropFilter", 32, 310),
    ("Default/optimizer-Momentum/ApplyMomentum-op40", "ApplyMomentum", 8, 14),
]  # fmt: skip
SHAPES = ["32,3,224,224", "64,3,7,7", "32,64,112,112", "32,1000", "1000,512", "7"]
TICKS = ("tickDrvTopHalf", "tickDrvBottomHalf", "tickBeforeRun", "tickAfterRun")
TYPES = [39, 40, 31, 27]  # float16, float32, int32, bool


def lines(rows):
    return "\n".join(rows) + "\n"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def steps(chance, number, wait):
    """(points of the trace as tag, stream, ticks), per step: model begin, FP, BP, three events on three streams, end."""
    found, at = [], ZERO
    for _ in range(number):
        fp = at + chance.randint(*wait)
        bp = fp + chance.randint(90_000, 130_000)
        first, second = bp - chance.randint(5_000, 20_000), bp + chance.randint(500, 4_000)
        third = second + chance.randint(100, 9_000)
        events = [(first, first + chance.randint(10_000, 40_000), 11), (second, second + chance.randint(3_000, 20_000), 12),
                  (third, third + chance.randint(2_000, 9_000), 13)]  # fmt: skip
        end = max(stop for _, stop, _ in events) + chance.randint(1_000, 9_000)
        found.append((fp - 10, fp, bp, events, end))
        at = end
    return found


def training_trace(made):
    """The older trace: 20 bytes a point. Tags 3 to 8 are begin and end of the events."""
    points = []
    for begun, fp, bp, events, end in made:
        here = [(1, 0, fp), (2, 0, bp)]
        for number, (start, stop, stream) in enumerate(events):
            here += [(3 + 2 * number, stream, start), (4 + 2 * number, stream, stop)]
        points += [(1234, 0, begun), *sorted(here, key=lambda point: point[2]), (255, 0, end)]
    return b"".join(struct.pack("<QHHQ", tag, 9, stream, at) for tag, stream, at in points)


def ts_track(made, model=7):
    """The newer trace: 40 bytes a point, and other records between them. Tags from 10000 are the events'."""
    records = []
    for number, (begun, fp, bp, events, end) in enumerate(made, 1):
        here = [(10, 2, 2, 0, fp), (10, 3, 4, 0, bp)]
        for index, (start, stop, stream) in enumerate(events):
            here += [(10, 10_000 + 2 * index, 6 + 3 * index, stream, start),
                     (10, 10_001 + 2 * index, 8 + 3 * index, stream, stop)]  # fmt: skip
        inner = sorted(here, key=lambda point: point[4])
        for kind, tag, task, stream, at in [(10, 0, 1, 0, begun), (3, 2, 0, 0, begun + 1), *inner, (10, 4, 5, 0, end)]:
            records.append(struct.pack("<BBHIQQQHHHH", 1, kind, 40, 0, at, number, model, stream, task, tag, 0))
    return b"".join(records)


def described(chance):
    """Lines of graph_desc_info: operators with one to three inputs and an output."""
    found = []
    for name, kind, _, _ in OPERATORS:
        parts = [f"op_name:{name} op_type:{kind}"]
        for side, number in (*(("input", at) for at in range(chance.randint(1, 3))), ("output", 0)):
            parts.append(f"{side}_id:{number} {side}_format:{chance.choice(['DefaultFormat', 'NC1HWC0', 'FracZ'])} "
                         f'{side}_data_type:{chance.choice(TYPES)} {side}_shape:"{chance.choice(SHAPES)}"')  # fmt: skip
        found.append(" ".join(parts))
    return lines(found)


def write_job(folder, chance):
    made = steps(chance, 24, wait=(60_000, 120_000))
    content = training_trace(made)
    cut = 20 * (len(content) // 40)
    write(folder / "training_trace.46.dev.profiler_default_tag.0.slice_0", content[:cut])
    write(folder / "training_trace.46.dev.profiler_default_tag.0.slice_1", content[cut:])
    write(folder / "Framework.host.vm.graph_desc_info.0.slice_0", described(chance))
    tasks = [f"{name} {block} {51_517 + number} 0" for number, (name, _, block, _) in enumerate(OPERATORS)]
    write(folder / "Framework.host.vm.task_desc_info.0.slice_0", lines(tasks))
    points = ["1 Default/Cast-op7", f"2 {OPERATORS[7][0]}",
              *(f"{tag} Default/grad_reducer/AllReduce-op{(tag - 1) // 2 + 50}" for tag in range(3, 9))]  # fmt: skip
    write(folder / "Framework.host.vm.point.0.slice_0", lines(points))


def write_aicpu(folder, chance):
    """Two forms of a line: of MindSpore's operators, and of others."""
    found, at = [], 154_907_895_189
    for number in range(16):
        start, run = at, chance.randint(100, 2_000)
        at += run + chance.randint(50, 5_000)
        ticks = ", ".join(f"{name}={start * 17 + at}" for at, name in enumerate(TICKS))
        thread = (f"Thread[ 1] process device[0]:aicpu[ 0] task end, {ticks}, "
                  f"dispatchTime={chance.randint(20, 300)} us, totalTime={run + 300} us. ")  # fmt: skip
        name = ["GetNext", "InitData", "Default/network/TopK-op12", "Default/network/Unique-op9"][number % 4]
        more = f"compute start:{start + 5}, memcpy start:{start + 6}, memcpy end:{start + 7}," if number % 4 > 1 else ""
        node = f"[{start}] Node:{name}, Run tart:{start}, {more}Run end:{start + run}"
        found += [node, thread]
    write(folder / "data" / "DATA_PREPROCESS.dev.AICPU.0.slice_0", "\0".join(found) + "\0")


def write_operators(folder, rank, chance):
    """Totals of operators by name and type; the type table has the sums of the other."""
    runs, types = 6, {}
    with (folder / f"aicore_intermediate_{rank}_detail.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["full_op_name", "execution_time", "execution_frequency"])
        for name, kind, _, mean in OPERATORS:
            time = round(mean * chance.uniform(0.9, 1.1) / 1000, 6)
            rows.writerow([name, time, runs])
            entry = types.setdefault(kind, [0.0, 0])
            entry[0], entry[1] = entry[0] + time * runs, entry[1] + runs
    whole = sum(total for total, _ in types.values())
    with (folder / f"aicore_intermediate_{rank}_type.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["op_type", "execution_time", "execution_frequency", "percent"])
        rows.writerows(
            [kind, f"{total:.6f}", count, f"{total / whole * 100:.2f}"] for kind, (total, count) in types.items()
        )
    with (folder / f"aicpu_intermediate_{rank}.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(
            ["serial_number", "kernel_type", "total_time", "dispatch_time", "execution_time", "run_start", "run_end"]
        )
        at = ZERO // 100
        for number in range(1, 13):
            run = chance.randint(100, 900)
            rows.writerow(
                [number, chance.choice(["GetNext", "TopK"]), (run + 40) / 1000, 0.04, run / 1000, at, at + run]
            )
            at += run + 700


def write_queues(folder, rank, chance):
    """A data sink's queues, the pipeline behind them and the CPU."""
    rows, at = [], 1_000_000
    for number in range(1, 31):
        at += chance.randint(20, 60)
        depth = chance.choice([0, 0, 0, 1, 4])
        rows += [
            f"0 1 {number} 3 {at}",
            f"0 2 {number} 23 {at}",
            f"0 0 {number} 20 {at}",
            f"1 16 {number} {depth} {at}",
        ]
    write(folder / f"device_queue_profiling_{rank}.txt", lines(rows))
    sizes = {2: [chance.randint(0, 3) for _ in range(40)], 1: [chance.randint(0, 2) for _ in range(40)]}
    sizes[3] = [chance.randint(13, 16) for _ in range(40)]
    ops = [("BatchOp", 0, 1), ("MapOp", 1, 2), ("ShuffleOp", 2, 1), ("TFReaderOp", 3, 4)]
    write(folder / f"pipeline_profiling_{rank}.json", json.dumps({"sampling_interval": 10, "op_info": [
        {"op_id": number, "op_type": kind, "num_workers": workers, "children": [number + 1] if number < 3 else None,
         "metrics": {"output_queue": {"length": 16, "size": sizes[number]}} if number else None}
        for kind, number, workers in ops]}))  # fmt: skip
    usage = [chance.randint(0, 40) for _ in range(40)]
    device = {"user_utilization": usage, "sys_utilization": [5] * 40, "io_utilization": [0] * 40,
              "idle_utilization": [95 - value for value in usage], "runable_processes": [3] * 40,
              "context_switch_count": [100] * 40}  # fmt: skip
    each = [
        {"op_id": number, "metrics": {"user_utilization": [10] * 40, "sys_utilization": [1] * 40}}
        for number in range(4)
    ]
    write(folder / f"minddata_cpu_utilization_{rank}.json", json.dumps({
        "cpu_processor_num": 8, "sampling_interval": 10, "time_stamp": [1_000_000 + 30 * number for number in range(40)],
        "device_info": device, "op_info": each,
        "process_info": {"user_utilization": [60] * 40, "sys_utilization": [5] * 40}}))  # fmt: skip


def write_ranks(raw, derived, chance):
    """Two ranks in step: the same points, less than a thousandth of a millisecond apart; work, links and parts of the pipeline."""
    made = steps(chance, 20, wait=(20, 80))
    for rank in (0, 1):

        def moved(at):
            return at + chance.randint(0, 90)

        here = [
            (begun, fp, moved(bp), [(moved(a), moved(b), stream) for a, b, stream in events], end)
            for begun, fp, bp, events, end in made
        ]
        write(raw / f"rank{rank}" / "data" / f"ts_track.data.{rank}.slice_0", ts_track(here))
        work = {"FLOPs": 107146.763 - rank * 1.729, "FLOPS": 5385.552 + rank * 0.709, "FLOPS_Utilization": 2.1}
        write(derived / f"flops_summary_{rank}.json", json.dumps(work))
        head = ["computation_time", "communication_alone_time", "stage_time", "receive_alone_time",
                "collective_communication_alone_time"]  # fmt: skip
        rows = [
            ", ".join(head),
            *(
                ",".join(f"{mean * chance.uniform(0.9995, 1.0005):.4f}" for mean in (1.05, 0.12, 1.3, 0.02, 0.1))
                for _ in made
            ),
            "1,1,1,1,1",
        ]
        write(derived / f"ascend_cluster_analyse_pipeline-parallel_2_4_{rank}.csv", lines(rows))
        links = '{""0-1"": {""SDMA"": [0.002, 4.096, 2048000]}}'
        each = [f'{number},0.002,0.5,"{links}","{{""stream_12_0_AllReduce-op61"": [""1"", 0.002, 0.5, {links}]}}"'
                for number in range(1, 21)]  # fmt: skip
        head = "step_num,communication_cost,wait_cost,link_info,communication_operator_cost"
        write(derived / f"hccl_raw_{rank}.csv", lines([head, *each, '-,0.002,0.5,"{}","{}"']))


def main():
    folder, chance = Path(sys.argv[1]), Random(20261128)  # noqa: S311 - drawn again and again, the same
    write_job(folder / "job", chance)
    write_aicpu(folder / "job_aicpu", chance)
    (folder / "one_rank").mkdir()
    write_operators(folder / "one_rank", 1, chance)
    write_queues(folder / "one_rank", 1, chance)
    write_ranks(folder / "job_track", folder / "two_ranks", chance)


if __name__ == "__main__":
    main()
