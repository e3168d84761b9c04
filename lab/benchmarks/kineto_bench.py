"""What importing a torch.profiler trace costs: CPU time, memory, and the size of the run.

python lab/benchmarks/kineto_bench.py [--megabytes 200 1000] [--trace FILE] [--json-load] [--keep FOLDER]

Without --trace it writes a compact trace of a GPU (operators, launches, kernels, flows), and traces that resemble those
of torch 2.13 with shapes, memory, stacks and the verbose config: of each step a data loader's wait, a forward and a
backward pass of nested operators below Python functions, and memory events. `ops_table` is the program `pipeprof ops RUN`
as a whole. Every measurement runs in a process of its own; the peak is that of the process (ru_maxrss). Beside it stand
gzip -6 of the trace, with --json-load `json.load` of it, and, when it is installed, HolisticTraceAnalysis.
"""

import argparse
import gzip
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAYERS = 14
FRAMES = ";".join(f"torch/nn/modules/module_{number}.py({100 + number}): _call_impl" for number in range(9))
HEAD = """ {
  "schemaVersion": 1,
  "deviceProperties": [],
  "record_shapes": 1, "profile_memory": 1, "with_stack": 1,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
"""
CALL = """  {
    "ph": "X",
    "cat": "%s",
    "name": "%s",
    "pid": 9015,
    "tid": 9015,
    "ts": %d.%03d,
    "dur": %d.%03d
    ,
    "args": {
      %s"Call stack": "%s", "Ev Idx": %d
    }
  }"""
MEMORY = """  {
    "ph": "i",
    "cat": "cpu_instant_event",
    "s": "t",
    "name": "[memory]",
    "pid": 9015,
    "tid": 9015,
    "ts": %d.%03d
    ,
    "args": {
      "Total Reserved": 0, "Total Allocated": %d, "Bytes": %d, "Device Id": -1, "Device Type": 0, "Addr": %d, "Ev Idx": %d
    }
  }"""
SHAPES = (
    '"External id": %d,"Sequence number": %d, "Fwd thread id": 0, "Record function id": 0, "Concrete Inputs": ["", "", ""],'
    ' "Input type": ["float", "float", "ScalarList"], "Input Strides": [[16384, 1024, 32, 1], [144, 9, 3, 1], []],'
    ' "Input Dims": [[8, %d, 32, 32], [16, 16, 3, 3], []], '
)


class Writer:
    """Writes events with a running clock in ns."""

    def __init__(self, file):
        self.file = file
        self.now = 4_329_721_190_000_000
        self.number = 0
        self.random = random.Random(1)  # noqa: S311 - no secret

    def call(self, cat, name, dur, args="", stack=FRAMES):
        if self.number:
            self.file.write(",\n")
        self.number += 1
        self.file.write(CALL % (cat, name, *divmod(self.now, 1000), *divmod(dur, 1000), args, stack, self.number))

    def memory(self, size, address):
        self.number += 1
        self.file.write(",\n" + MEMORY % (*divmod(self.now, 1000), 40_000, size, address, self.number))

    def layer(self, layer, direction):
        """Python functions around nested operators, 8 us."""
        begin = self.now
        stack = f"model_{layer}.py({layer}): {direction};{FRAMES}"
        for depth in range(4):
            self.call(
                "python_function",
                f"model_{layer}.py({depth}): {direction}",
                8000 - 200 * depth,
                '"Python id": 7, ',
                stack,
            )
            self.now += 50
        for depth in range(6):
            args = SHAPES % (self.number, layer, 16 * (1 + layer % 2))
            self.call("cpu_op", f"aten::{direction}_{layer % 5}_{depth}", 7000 - 300 * depth, args, stack)
            self.now += 40 + self.random.randrange(60)
        for size in (4096, -4096):
            self.now += 30 + self.random.randrange(20)
            self.memory(size, 94_324_000_000_000 + layer * 64)
        self.now = begin + 9000 + self.random.randrange(900)

    def step(self, number):
        begin = self.now
        length = (2 * LAYERS + 2) * 10_000
        self.call("user_annotation", f"ProfilerStep#{number}", length, '"External id": 1, ')
        self.now += 100
        self.call(
            "user_annotation",
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
            5000,
            '"External id": 2, ',
        )
        self.now += 5500
        for direction in ("forward", "backward"):
            for layer in range(LAYERS):
                self.layer(layer, direction)
        self.now = begin + length + 1000


KERNEL = {"device": 0, "context": 1, "stream": 7, "grid": [80, 1, 1], "block": [128, 1, 1], "shared memory": 0}


def launch(writer, number):
    """An operator, the call of the runtime in it, its kernel, and the flow between them: four events, no blanks."""
    now, depth = writer.now // 1000, number % 3
    calls = [
        {"ph": "X", "cat": "cpu_op", "name": f"aten::op_{number % 40}", "pid": 9, "tid": 9, "ts": now + at, "dur": 20 - 2 * at,
         "args": {"External id": 3 * number + at, "Sequence number": number, "Fwd thread id": 0}}
        for at in range(depth + 1)
    ]  # fmt: skip
    common = {"External id": 3 * number + depth, "correlation": number}
    place = {"pid": 0, "tid": 7, "ts": now + 40}
    calls += [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": now + 8, "dur": 4,
         "args": {"cbid": 211, **common}},
        {"ph": "s", "id": number, "pid": 9, "tid": 9, "ts": now + 8, "cat": "ac2g", "name": "ac2g"},
        {"ph": "X", "cat": "kernel", "name": f"void kernel_{number % 60}<float>(float*, int)", "dur": 30,
         "args": {**KERNEL, **common}, **place},
        {"ph": "f", "id": number, "bp": "e", "cat": "ac2g", "name": "ac2g", **place},
    ]  # fmt: skip
    writer.now += 45_000
    return json.dumps(calls, separators=(",", ":"))[1:-1]


def write_compact(path, megabytes):
    """As traces of GPUs are: no stacks, no blanks, a quarter of the bytes per event."""
    with path.open("w") as file:
        writer = Writer(file)
        file.write('{"schemaVersion":1,"deviceProperties":[{"id":0}],"traceEvents":[')
        number = 0
        while file.tell() < megabytes * 1_000_000:
            file.write(("," if number else "") + launch(writer, number))
            number += 1
        file.write('],"traceName":"bench"}')


def write_trace(path, megabytes):
    with path.open("w") as file:
        writer = Writer(file)
        file.write(HEAD)
        number = 0
        while file.tell() < megabytes * 1_000_000:
            writer.step(number)
            number += 1
        file.write('\n  ],"traceName": "bench" }\n')


def measured(code, *arguments):
    """What a piece of Python printed, its CPU seconds and its peak in MiB."""
    program = (
        f"import resource, sys, time\n{code}\n"
        "use = resource.getrusage(resource.RUSAGE_SELF)\nprint('\\n', use.ru_utime + use.ru_stime, use.ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True)
    cpu, peak = done.stdout.split()[-2:]
    return float(cpu), int(peak) / 1024


IMPORT = """
from pathlib import Path
from pipeprof.read.chrome import reader
from pipeprof.record.run import Manifest, Run
run = Run(
    Path(sys.argv[2]), Manifest(run_id="bench", started_at="", pipeprof_version="0", source="import:kineto")
)
run.path.mkdir(parents=True)
reader.add_files([Path(sys.argv[1])], run, lambda text: None)
run.save()
"""
TABLE = """
from pipeprof.cli import main
sys.argv = ["pipeprof", "ops", sys.argv[1]]
try:
    main()
except SystemExit:
    pass
"""
JSON_LOAD = "import json\njson.load(open(sys.argv[1]))"
HTA = "from hta.common.trace import parse_trace_file\nparse_trace_file(sys.argv[1])"


def packed_size(path):
    with (
        path.open("rb") as file,
        tempfile.TemporaryFile() as out,
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6) as packed,
    ):
        while part := file.read(1 << 20):
            packed.write(part)
        packed.close()
        return out.tell()


def bench(path, folder, *, json_load):
    run = folder / f"run-{path.stem}"
    cpu, peak = measured(IMPORT, str(path), str(run))
    size = path.stat().st_size / 1e6
    found = {
        "trace_mb": round(size, 1),
        "import_cpu_s": round(cpu, 2),
        "mb_per_cpu_s": round(size / cpu, 1),
        "peak_mib": round(peak),
        "parquet_mb": round(sum(file.stat().st_size for file in run.rglob("*.parquet")) / 1e6, 2),
        "gz_mb": round(packed_size(path) / 1e6, 2),
        "ops_table_cpu_s": round(measured(TABLE, str(run))[0], 2),
    }
    if json_load:
        cpu, peak = measured(JSON_LOAD, str(path))
        found |= {"json_load_cpu_s": round(cpu, 2), "json_load_peak_mib": round(peak)}
        if importlib.util.find_spec("hta"):
            cpu, peak = measured(HTA, str(path))
            found |= {"hta_cpu_s": round(cpu, 2), "hta_peak_mib": round(peak)}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[225, 1000])
    parser.add_argument("--trace", type=Path, nargs="*", default=[])
    parser.add_argument("--json-load", action="store_true")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        traces = list(options.trace)
        for megabytes in [] if traces else options.megabytes:
            path = folder / f"{megabytes}.pt.trace.json"
            write_trace(path, megabytes)
            traces.append(path)
        if not options.trace:
            write_compact(folder / "compact.json", options.megabytes[0])
            traces.insert(0, folder / "compact.json")
        rows = []
        for path in traces:
            begun = time.monotonic()
            rows.append(bench(path, Path(temporary), json_load=options.json_load))
            print(json.dumps(rows[-1] | {"wall_s": round(time.monotonic() - begun, 1)}), flush=True)
        if len(rows) > 2:
            print(f"peak of the largest / of the one before: {rows[-1]['peak_mib'] / rows[-2]['peak_mib']:.2f}")


if __name__ == "__main__":
    main()
