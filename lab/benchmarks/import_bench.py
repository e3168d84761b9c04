"""What reading a big MegEngine profile costs, beside Python's json.load on the same file.

    python lab/benchmarks/import_bench.py [--operators 200000] [--folder DIR] [--keep]

Prints a table: file size, CPU seconds (user and system) and peak resident memory of each way in a process of its own,
and the ratio to json.load. json.load alone does nothing with what it read: a tool that makes a table needs more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NODE = 'CompNode("gpu0:0" from "xpux:0")'
IMPORT = (
    "import sys; from pathlib import Path; from pipeprof.read.foreign import import_path; "
    "import_path(Path(sys.argv[1]), Path(sys.argv[2]), force=True)"
)
TABLE = (
    "import sys; from pipeprof.read.spool.finish import open_run; from pipeprof.report.ops import show; "
    "from pipeprof.report.ops.question import Question; "
    "show.show(open_run(sys.argv[2]), Question(), 'terminal', None, sys.argv[2])"
)
LOAD = "import json, sys; json.load(open(sys.argv[1], encoding='utf-8'))"
WAYS = (("json.load", LOAD), ("import", IMPORT), ("table of the imported run", TABLE))


def write_profile(path, operators):
    """A profile in the engine's style: key order by hash, variables and memory chunks are most of it."""
    ids = [4 * number for number in range(operators)]
    mixed = sorted(ids, key=lambda key: key * 2654435761 % 2**32)
    with path.open("w", encoding="utf-8") as file:
        file.write('{ "profiler": { "opr_internal_pf": { }, "host": ')
        _map(file, mixed, lambda key: f'{{ "worker": {_times(key, 1e-6)}}}')
        file.write(', "device": ')
        _map(file, mixed, lambda key: f"{{ {json.dumps(NODE)}: {_times(key, 1e-5)}}}")
        file.write(', "opr_footprint": ')
        _map(file, mixed, _footprint)
        file.write('}, "graph_exec": { "comp_seq": [ ')
        file.write(", ".join(f'"{key}"' for key in ids))
        file.write('], "operator": ')
        _map(file, mixed, _operator)
        file.write(', "var": ')
        _map(file, [key + part for key in mixed for part in (1, 2)], _var)
        file.write(', "mem_chunk": ')
        file.write("{ " + ", ".join(f'"chk{key}": {_chunk(key)}' for key in mixed) + "}")
        file.write("}}")


def _map(file, keys, text_of):
    file.write("{ ")
    for place, key in enumerate(keys):
        file.write(f'{", " if place else ""}"{key}": {text_of(key)}')
    file.write("}")


def _times(key, length):
    start = key * length
    kern, end = start + length * (key % 97) / 400, start + length * (0.5 + key % 89 / 178)
    return f'{{ "start": {start:.9f}, "kern": {kern:.9f}, "end": {end:.9f}}}'


def _footprint(key):
    channels = 2 ** (key // 4 % 8 + 3)
    kind = key // 4 % 3
    computation = ("null", 2 * channels * 9 * 56 * 56, channels * 56 * 56)[kind]
    return (
        f'{{ "computation": {computation}, "memory": {channels * 56 * 56 * 4}, "in_shapes": [ [ 1, {channels}, 56, 56], '
        f'[ {channels}, {channels}, 3, 3]], "out_shapes": [ [ 1, {channels}, 56, 56]], '
        '"param": { "mode": "CROSS_CORRELATION", "pad_h": 1, "pad_w": 1, "stride_h": 1, "stride_w": 1}}'
    )


def _operator(key):
    kind = ("Reshape", "ConvolutionForward", "Elemwise")[key // 4 % 3]
    return (
        f'{{ "node_type": "operator", "id": "{key}", "name": "{kind.lower()}(FUSE_ADD_RELU[{key - 4}],const{{64,3}}[{key}])'
        f'[{key}]", "type": "{kind}", "input": [ "{max(key - 3, 1)}", "{key + 2}"], "output": [ "{key + 1}"], '
        f'"extra": {{ }}, "waiting_spec": {{ {json.dumps(NODE)}: {{ "dev_ready": [ "{key + 2}"]}}}}}}'
    )


def _var(key):
    tags = ", ".join(
        f'"{name}": {{ "node_type": "static_infer_tag", "infer_type": "CONST", "inferred_result": [ 1, 64, 56, 56], '
        '"deps": [ "12", "14"]}'
        for name in ("SHAPE", "VALUE")
    )
    return (
        f'{{ "node_type": "var", "id": "{key}", "name": "FUSE_ADD_RELU(conv[{key}],const{{1,64,1,1}}[{key}])[{key}]", '
        '"mem_readonly_fwd_src": null, "force_update_src": null, "mem_plan": { "mem_chunk_id": "chk1", "layout": '
        '{ "shape": [ 1, 64, 56, 56], "stride": [ 200704, 3136, 56, 1], "dtype": "Float32"}, "offset_byte": 0}, '
        f'"comp_node": {json.dumps(NODE)}, "dev_ptr": 94106063605632, "prev_dev_ptr": 94106063605632, "flag": '
        '[ "NO_MEM_RECLAIM", "ALLOW_EMPTY_SHAPE", "PERSISTENT_DEVICE_VALUE", "DISALLOW_RT_FORCE_DYNAMIC_MEM_ALLOC"], '
        f'"static_infer_tags": {{ {tags}}}, "prev_dev_ptr_end": 94106064207744}}'
    )


def _chunk(key):
    return (
        f'{{ "node_type": "mem_chunk", "id": "chk{key}", "size": 602112, "owner_var": "{key + 1}", '
        '"dev_ptr": 94106063605632}'
    )


def write_timeline(path, operators):
    """A chrome timeline of the current generation: for each operator its dispatch, host and device side, and memory."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"traceEvents": [')
        for number in range(operators):
            start, place = 100.0 * number, number % 500
            args = {"__id__": str(place), "__name__": f"conv{place}", "__device__": "gpu0:0"}
            for event in (
                {"ph": "B", "name": "OpDispatch", "ts": start, "tid": 0},
                {"ph": "E", "name": "OpDispatch", "ts": start + 10, "tid": 0},
                {"ph": "B", "name": "Convolution", "ts": start + 12.125, "tid": 1},
                {"ph": "E", "name": "Convolution", "ts": start + 40.25, "tid": 1, "args": args},
                {"ph": "B", "name": "Convolution", "ts": start + 15, "tid": 2, "cat": "Kernel"},
                {"ph": "E", "name": "Convolution", "ts": start + 70, "tid": 2, "cat": "Kernel", "args": args},
                {"ph": "C", "name": "gpu0:0_alloc_mem", "ts": start + 71, "tid": 0, "args": {"value": 100 * number}},
            ):
                file.write(json.dumps({"pid": 42, **event}) + ",\n")
            if place == 499:
                file.write(json.dumps({"pid": 42, "ph": "i", "name": "StopStep", "ts": start + 80, "tid": 0}) + ",\n")
        names = ({"pid": 42, "ph": "M", "name": "thread_name", "tid": tid, "args": {"name": name}}
                 for tid, name in enumerate(("channel", "worker", "gpu0:0")))  # fmt: skip
        file.write(",\n".join(map(json.dumps, names)) + '], "metadata": {"localTime": "1625027241000000000"}}')


def measure(code, *words):
    """(CPU seconds, peak MiB, wall seconds) of `python -c code words`."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", code, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"a measured program failed with {child.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operators", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="where the profile is written.  [default: a temporary folder]")
    parser.add_argument("--keep", action="store_true", help="leave the profile there, and use one that is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = options.folder or Path(passing)
        for name, write, ways in (
            (f"profile_{options.operators}.json", write_profile, WAYS),
            (f"{options.operators}.chrome_timeline.json", write_timeline, WAYS[:2]),
            (f"{5 * options.operators}.chrome_timeline.json", write_timeline, WAYS[1:2]),
        ):
            path = folder / name
            if not path.is_file():
                write(path, int("".join(filter(str.isdigit, name))))
            compare(path, ways, Path(passing) / "run")
            if not options.keep:
                path.unlink()


def compare(path, ways, run):
    print(f"{path.name}, {path.stat().st_size / 1e6:.0f} MB")
    print(f"{'':28}{'CPU s':>8}{'peak MiB':>10}{'wall s':>8}   of {ways[0][0]}: CPU, peak")
    first = None
    for name, code in ways:
        cpu, peak, wall = measure(code, path, run)
        first = first or (cpu, peak)
        print(f"{name:28}{cpu:8.2f}{peak:10.0f}{wall:8.1f}   {cpu / first[0]:.2f}, {peak / first[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
