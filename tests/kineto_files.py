"""Small chrome traces for tests, and importing them."""

import gzip
import json

from pipeprof.read.chrome import reader
from pipeprof.record import store
from pipeprof.record.run import Manifest, Run

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def op(name, ts, dur, cat="cpu_op", tid=1, pid=1, **args):
    """A complete event; times in us, numbers or text."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def memory(ts, size, address, tid=1, device=0, total=0):
    args = {"Bytes": size, "Addr": address, "Device Type": device, "Device Id": -1, "Total Allocated": total}
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 1,
        "tid": tid,
        "ts": ts,
        "args": args,
    }


def step(number, ts, dur):
    return op(f"ProfilerStep#{number}", ts, dur, cat="user_annotation")


def training(steps=6, wait_us=100, work_us=1000, cat="user_annotation"):
    """Steps that each wait for the data loader and then compute."""
    events = []
    for number in range(steps):
        start = 10 + number * (wait_us + work_us + 20)
        events += [
            step(number, start, wait_us + work_us + 15),
            op(LOADER, start + 5, wait_us, cat=cat),
            op("aten::conv2d", start + wait_us + 5, work_us, **{"Input Dims": [[1, 3], []]}),
        ]
    return events


def write_trace(path, events, *, form="torch", **header):
    """A trace file; `form`: torch (one field per line, as torch writes), flat (no newline) or list (bare list)."""
    listed = json.dumps(events, indent=2 if form == "torch" else None)
    fields = {"schemaVersion": 1, "deviceProperties": [], **header}
    text = listed if form == "list" else json.dumps(fields)[:-1] + ',\n"traceEvents": ' + listed + ', "traceName": "x"}'
    content = text.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def imported(folder, *paths):
    """The run made of some traces; it is saved."""
    folder.mkdir(parents=True)
    run = Run(folder, Manifest(run_id=f"of {folder}", started_at="x", pipeprof_version="0", source="import:kineto"))
    reader.add_files(list(paths), run, lambda _text: None)
    run.save()
    assert not list(folder.glob(".kineto*"))
    assert not list(folder.rglob("*.tmp"))
    return run


def rows(run, table):
    return store.read(run, table).to_pylist()


def ops_by_name(run):
    """{name: rows of op, with those of op_info}, in order of start."""
    infos = {(info["rank"], info["op_id"]): info for info in rows(run, "op_info")}
    found = {}
    for row in sorted(rows(run, "op"), key=lambda row: (row["start_ns"], -row["dur_ns"])):
        joined = {**infos[row["rank"], row["op_id"]], **row}
        found.setdefault(joined["name"], []).append(joined)
    return found
