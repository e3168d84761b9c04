"""Captures labelled pipelines, one at a time, on a quiet machine.

python lab/accuracy/capture.py --out tests/accuracy/captures                       all designed ones
python lab/accuracy/capture.py --out tests/accuracy/captures map_wait loop_np      these
python lab/accuracy/capture.py --out tests/accuracy/captures --seed 7 --drawn 40   drawn ones
python lab/accuracy/capture.py --out tests/accuracy/captures --raw                 MindSpore's own files instead
python lab/accuracy/capture.py --out tests/accuracy/captures --relabel             label the stored ones anew
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

import psutil
from archive import pack, pack_folder, unpack
from designed import designed
from drawn import drawn
from labels import label, loads
from pipelines import from_json, to_json
from quiet import BusyError, machine, versions, wait_until_quiet

from pipeprof.record import store
from pipeprof.record.run import load

HERE = Path(__file__).resolve().parent
LIMIT_S = 40
TRIES = 3
OFF = 0.2
RAW = ("source_wait", "source_poll", "source_burst", "map_wait_two", "map_py_two", "map_np", "map_vision", "batch_wait",
       "zip_first_source", "source_filtered", "loop_sleep", "loop_np")  # fmt: skip


class OddError(Exception):
    """The recording is not that of the pipeline."""


def collect(argument, folder):
    """Record the pipeline into `folder`; its own last line, or None when it failed."""
    words = ["pipeprof", "collect", "-q", "-o", str(folder), "--", sys.executable, str(HERE / "workload.py"), argument]
    return last_line(words)


def collect_raw(argument, folder):
    """MindSpore's own files and its timing lines into `folder`."""
    folder.mkdir(parents=True)
    words = [sys.executable, str(HERE / "raw.py"), argument, str(folder)]
    environment = {**os.environ, "VLOG_v": "10900"}
    with (folder / "vlog.txt").open("wb") as errors:
        return last_line(words, env=environment, stderr=errors)


def last_line(words, **options):
    options.setdefault("stderr", subprocess.PIPE)
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, timeout=LIMIT_S, check=False, **options)
    except subprocess.TimeoutExpired:
        return None
    lines = done.stdout.decode().splitlines()
    if done.returncode or not lines:
        print((done.stderr or b"").decode()[-2000:], file=sys.stderr)
        return None
    return json.loads(lines[-1])


def ops_of(run, pipeline):
    """{stage: op_id} by operator type and, where Python gives one, name."""
    rows = store.read(run, "pipeline_op").to_pylist()
    roles = {row["pipeline_id"] for row in store.read(run, "pipeline").to_pylist() if row["role"] == "train"}
    rows = [row for row in rows if row["pipeline_id"] == min(roles)]
    found = {}
    for stage in loads(pipeline)[:-1]:
        fits = [row["op_id"] for row in rows if row["op_type"] == stage.op_type and fits_name(stage, row["name"] or "")]
        if len(fits) != 1:
            raise OddError(f"{len(fits)} operators fit stage {stage.stage}: {rows}")
        found[stage.stage] = fits[0]
    return found


def fits_name(stage, name):
    if stage.op_type == "MapOp" and stage.op_name is None:
        return "GaussianBlur" in name
    return stage.op_name is None or name == stage.op_name


def entry_of(pipeline, truth, seconds):
    return label_of(pipeline, truth) | {
        "measured": truth,
        "construction": json.loads(to_json(pipeline)),
        "captured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "took_s": round(seconds, 1),
    }


def label_of(pipeline, truth):
    right = label(pipeline)
    return {
        "label": right.bottleneck,
        "kind": right.kind,
        "accepted": list(right.accepted),
        "kinds": list(right.kinds),
        "margin": round(min(right.margin, 99.0), 3),
        "saturated": right.saturated,
        "batch_ms": round(right.batch_ms, 3),
        "rate_ratio": round(truth["steps_per_s"] * right.batch_ms / 1000, 3),
    }


def relabel(known, out, *, raw):
    """Labels of what is stored, from its construction."""
    for name, entry in known["captures"].items():
        pipeline = from_json(json.dumps(entry["construction"]))
        entry.update(label_of(pipeline, entry["measured"]))
        if not raw:
            with tempfile.TemporaryDirectory(prefix="capture-") as folder:
                unpack(out / f"{name}.tar.xz", Path(folder))
                entry["ops"] = ops_of(load(folder), pipeline)


def capture(pipeline, out, *, raw, any_load, seed):
    """One pipeline into OUT; its entry for truth.json, or None when it failed every time."""
    for _ in range(TRIES):
        quiet = (os.getloadavg()[0], psutil.cpu_percent(0.2) / 100) if any_load else wait_until_quiet()
        with tempfile.TemporaryDirectory(prefix="capture-") as folder:
            entry = attempt(pipeline, Path(folder) / "run", out / f"{pipeline.name}.tar.xz", raw=raw)
        if entry is not None:
            return {"seed": seed, "load_average": round(quiet[0], 2), "busy_before": round(quiet[1], 3), **entry}
    return None


def attempt(pipeline, run, archive, *, raw):
    argument = to_json(pipeline)
    start = time.monotonic()
    measured = (collect_raw if raw else collect)(argument, run)
    if measured is None:
        return None
    entry = entry_of(pipeline, measured, time.monotonic() - start)
    if raw:
        return entry | {"bytes": pack_folder(run, archive)}
    try:
        entry["ops"] = ops_of(load(run), pipeline)
    except OddError as reason:
        print(f"{pipeline.name}: {reason}", file=sys.stderr)
        return None
    return entry | {"bytes": pack(run, archive)}


def truth_text(known):
    """JSON with one line per capture."""
    lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in known["captures"].items()]
    head = json.dumps({name: value for name, value in known.items() if name != "captures"}, indent=1)
    return head.removesuffix("\n}") + ',\n "captures": {\n' + ",\n".join(lines) + "\n }\n}\n"


def say(pipeline, entry):
    flag = "  <- off" if abs(entry["rate_ratio"] - 1) > OFF else ""
    measured = entry["measured"]
    print(
        f"{pipeline.name:26} {entry['label']:9} {entry['kind'] or '-':6} rate/expected {entry['rate_ratio']:5.2f} "
        f"wait {measured['wait_share']:5.2f} steps {measured['steps']:5d} {entry['bytes'] / 1024:5.1f} KiB "
        f"{entry['took_s']:4.1f} s{flag}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description="Captures labelled pipelines.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=0, metavar="N")
    parser.add_argument("--raw", action="store_true", help="MindSpore's own files, into OUT/raw")
    parser.add_argument("--relabel", action="store_true", help="record nothing: label what OUT holds again")
    parser.add_argument("--any-load", action="store_true", help="also on a busy machine")
    options = parser.parse_args()
    pipelines = drawn(options.seed, options.drawn) if options.drawn else designed()
    wanted = options.names or (RAW if options.raw else None)
    pipelines = [one for one in pipelines if wanted is None or one.name in wanted]
    out = options.out / "raw" if options.raw else options.out
    out.mkdir(parents=True, exist_ok=True)
    path = out / "truth.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"captures": {}}
    if options.relabel:
        relabel(known, out, raw=options.raw)
        path.write_text(truth_text(known), encoding="utf-8")
        return
    known |= {"schema_version": 1, "machine": machine(), "versions": versions()}
    failed = []
    for pipeline in pipelines:
        seed = options.seed if options.drawn else None
        try:
            entry = capture(pipeline, out, raw=options.raw, any_load=options.any_load, seed=seed)
        except BusyError as reason:
            sys.exit(f"error: {reason}")
        if entry is None:
            failed.append(pipeline.name)
            print(f"{pipeline.name:26} failed", flush=True)
            continue
        known["captures"][pipeline.name] = entry
        known["captures"] = dict(sorted(known["captures"].items()))
        path.write_text(truth_text(known), encoding="utf-8")
        say(pipeline, entry)
    if failed:
        sys.exit(f"error: {len(failed)} failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
