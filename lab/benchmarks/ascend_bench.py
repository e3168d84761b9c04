"""What reading big Ascend profiles costs: CPU time, peak memory, and how the peak grows with the file.

    python lab/benchmarks/ascend_bench.py [--megabytes 200] [--and 1000] [--only trace_view] [--folder DIR]

Prints, for each kind of file: size, MB per CPU second (user and system, the interpreter's start included), and peak
resident memory of the import in a process of its own; with `--and`, the same for a second size and the ratio of peaks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

EPOCH_US = 1_736_408_883_000_000
BLOCK = 4000  # rows that differ; the blocks after them repeat these with later times
IMPORT = (
    "import sys; from pathlib import Path; from pipeprof.read.foreign import import_path; "
    "run = import_path(Path(sys.argv[1]), Path(sys.argv[2]), force=True); print(run.manifest.tables)"
)
TYPES = ("MatMulV2", "Cast", "TransData", "ForeachAddList", "BNTrainingUpdate", "Relu", "Add", "StridedSliceD")
COUNTERS = ["aicore_time(us)", "aic_total_cycles", *(f"aic_counter_{n}(us)" for n in range(20)), "cube_utilization(%)"]


def time_us(row):
    return f"{EPOCH_US + 12 * row}.{row * 7919 % 1000:03d}"


def short_kernels(file, wanted):
    """`kernel_details.csv` of level 0: eight columns."""
    file.write("Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\n")
    first = 0
    while file.tell() < wanted:
        lines = []
        for row in range(first, first + BLOCK):
            kind = row % 300
            core = "N/A" if kind % 30 else "COMMUNICATION"
            name = f"aclnn{TYPES[kind % 8]}_{kind}" if kind % 30 else f"hcom_allReduce__586_{kind}_1"
            dur = row * 31 % 90_000
            lines.append(f"{row // 3000},{name},N/A,{core},{time_us(row)}\t,{dur / 1000},{row % 977 / 1000},0\n")
        first += BLOCK
        file.write("".join(lines))


def wide_kernels(file, wanted):
    """`kernel_details.csv` of level 1: shapes, types, formats and counters."""
    file.write("Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
               "Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
               f"Output Shapes,Output Data Types,Output Formats,Context ID,{','.join(COUNTERS)}\n")  # fmt: skip
    first = 0
    while file.tell() < wanted:
        lines = []
        for row in range(first, first + BLOCK):
            kind = row % 300
            counters = ",".join(str((row * 17 + n) % 1000 / 1000) for n in range(len(COUNTERS)))
            lines.append(
                f"{row // 3000},4294967295,{row % 65535},{kind % 4},aclnn{TYPES[kind % 8]}_{kind},{TYPES[kind % 8]},dynamic,"
                f'AI_VECTOR_CORE,{time_us(row)}\t,{row * 31 % 90_000 / 1000},{row % 977 / 1000},32,0,NO,"""32,{kind},224,224'
                f';64""",FLOAT;FLOAT,NCHW;ND,"""32,{kind},112,112""",FLOAT,NCHW,N/A,{counters}\n'
            )
        first += BLOCK
        file.write("".join(lines))


def trace_view(file, wanted):
    """`trace_view.json` with host operators, device tasks, communication and CANN calls."""
    processes = ("Python", "CANN", "Ascend Hardware", "HCCL", "Overlap Analysis")
    heads = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for pid, name in enumerate(processes, 1)
    ]
    heads += [{"ph": "M", "name": "thread_name", "pid": 3, "tid": 2, "args": {"name": "Stream 2"}},
              {"ph": "M", "name": "thread_name", "pid": 4, "tid": 3, "args": {"name": "Plane 0"}}]  # fmt: skip
    file.write("[" + json.dumps(heads)[1:-1])
    first = 0
    while file.tell() < wanted:
        file.write("".join(_event(row) for row in range(first, first + BLOCK)))
        first += BLOCK
    file.write("]")


def _event(row):
    kind, at, dur = row % 10, time_us(row), row * 31 % 9000 / 1000
    if kind < 3:
        return (f', {{"ph": "X", "name": "aten::op_{row % 200}", "pid": 1, "tid": 7, "ts": "{at}", "dur": {dur}, "cat": '
                f'"cpu_op", "args": {{"Sequence number": {row}, "Fwd thread id": 0, "Input Dims": "32,3,224,224;\\r\\n64", '
                '"Input type": "float;\\r\\nfloat"}}')  # fmt: skip
    if kind < 5:
        return (f', {{"ph": "X", "name": "AscendCL@aclnn{TYPES[row % 8]}", "pid": 2, "tid": 7, "ts": "{at}", "dur": {dur}, '
                f'"cat": "", "args": {{"Thread Id": 7, "connection_id": {row}, "Mode": "launch"}}}}')  # fmt: skip
    if kind < 6:
        return (f', {{"ph": "s", "name": "HostToDevice{row}", "id": "{row}", "cat": "HostToDevice", "pid": 2, "tid": 7, '
                f'"ts": "{at}"}}')  # fmt: skip
    if kind < 8:
        return (f', {{"ph": "X", "name": "{TYPES[row % 8]}{row % 300}", "pid": 3, "tid": 2, "ts": "{at}", "dur": {dur}, '
                f'"args": {{"Model Id": 4294967295, "Task Type": "AI_CORE", "Stream Id": 2, "Task Id": {row % 65535}}}}}')  # fmt: skip
    if kind < 9:
        return (f', {{"ph": "X", "name": "Notify_Wait", "pid": 4, "tid": 3, "ts": "{at}", "dur": {dur}, "args": '
                f'{{"notify_id": "{row}", "duration estimated(us)": 0.5, "stream id": 11, "task id": {row % 65535}}}}}')  # fmt: skip
    return f', {{"ph": "X", "name": "Computing", "pid": 5, "tid": 0, "ts": "{at}", "dur": {dur}}}'


def communication(file, wanted):
    """`communication.json`: steps of 40 operators."""
    times = {f"{name} Time(ms)": 1.25 for name in ("Elapse", "Transit", "Wait", "Synchronization", "Idle")}
    links = {
        link: {"Transit Size(MB)": 28.647232, "Transit Time(ms)": 1.8168363437500001, "Bandwidth(GB/s)": 15.7676,
               "Large Packet Ratio": 0.0, "Size Distribution": {"2.064384": [12, 1.578891625]}}
        for link in ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
    }  # fmt: skip
    one = json.dumps({"Communication Time Info": times, "Communication Bandwidth Info": links})
    step = 0
    file.write("{")
    while file.tell() < wanted:
        operators = ", ".join(f'"hcom_allReduce__586_{number}_1@17522688603477080586": {one}' for number in range(40))
        file.write(f'{", " if step else ""}"step{step}": {{"p2p": {{}}, "collective": {{{operators}}}}}')
        step += 1
    file.write("}")


KINDS = {
    "trace_view": ("trace_view.json", trace_view), "kernels_8_columns": ("kernel_details.csv", short_kernels),
    "kernels_wide": ("kernel_details.csv", wide_kernels), "communication": ("communication.json", communication),
}  # fmt: skip

# What the biggest file is held to: MB per CPU second, peak MiB, and the peak's growth from the smaller to the bigger.
LEAST = {"trace_view": 50, "kernels_8_columns": 50, "kernels_wide": 50, "communication": 0}
PEAK_MIB, GROWTH = 300, 1.2


def measure(path, target):
    """(CPU seconds, peak MiB, what was imported) of importing a folder in a process of its own."""
    with tempfile.TemporaryFile() as answer:
        child = subprocess.Popen([sys.executable, "-c", IMPORT, str(path), str(target)], stdout=answer)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"the import failed with {child.returncode}")
        answer.seek(0)
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, answer.read().decode().strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--and", dest="more", type=int, help="a second size in MB, for the ratio of the peaks")
    parser.add_argument("--only", choices=sorted(KINDS), action="append")
    parser.add_argument("--repeat", type=int, default=3, help="the best of how many imports.  [default: 3]")
    parser.add_argument("--folder", type=Path, help="where the files are made.  [default: a temporary folder]")
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 when a rate, a peak or its growth is not held"
    )
    options = parser.parse_args()
    print(f"{'':20}{'MB':>7}{'CPU s':>8}{'MB/CPU s':>10}{'peak MiB':>10}")
    missed = []
    with tempfile.TemporaryDirectory(dir=options.folder) as passing:
        for kind in options.only or KINDS:
            sizes = [size for size in (options.megabytes, options.more) if size]
            found = [_one(kind, size, options.repeat, Path(passing)) for size in sizes]
            growth = found[-1][1] / found[0][1]
            if len(found) == 2:
                print(f"{'':20}peak at {options.more} MB / peak at {options.megabytes} MB: {growth:.2f}")
            if found[-1][0] < LEAST[kind] or found[-1][1] > PEAK_MIB or growth > GROWTH:
                missed.append(kind)
    if options.check and missed:
        sys.exit(f"not held: {', '.join(missed)}")


def _one(kind, megabytes, repeat, passing):
    """(MB per CPU second, peak MiB) of a file of this size."""
    name, write = KINDS[kind]
    path = passing / f"{kind}_{megabytes}" / name
    path.parent.mkdir()
    with path.open("w", encoding="ascii", newline="") as file:
        write(file, megabytes * 1_000_000)
    size = path.stat().st_size / 1e6
    found = [measure(path.parent, passing / "run") for _ in range(repeat)]
    cpu, peak = min(one[0] for one in found), max(one[1] for one in found)
    print(f"{kind:20}{size:7.0f}{cpu:8.2f}{size / cpu:10.0f}{peak:10.0f}   {found[0][2]}", flush=True)
    path.unlink()
    return size / cpu, peak


if __name__ == "__main__":
    main()
