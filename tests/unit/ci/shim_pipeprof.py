"""Stands for the `pipeprof` command: the real one, but a training is not run. Its times are read from `train.py`.

`COMPUTE_MS` and `DECODE_MS` there are the times of a step; each job and repetition differs a little, by its name alone.
"""

import hashlib
import os
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, os.environ["SHIM_TESTS"])

from conftest import write_run

from pipeprof.collect import fingerprint
from pipeprof.record.run import Rep

MS, STEPS = 1_000_000, 40
KEY = {"pipeline_id": 0}


def noise(*names):
    """A share between -0.5 and 0.5 that the names alone decide."""
    return int(hashlib.sha256("/".join(map(str, names)).encode()).hexdigest()[:8], 16) / 2**32 - 0.5


def times(slow_down, job, rep):
    text = Path("train.py").read_text(encoding="utf-8")
    found = {name: float(re.search(rf"{name} = ([\d.]+)", text)[1]) for name in ("COMPUTE_MS", "DECODE_MS")}
    if os.environ.get("SHIM_EQUAL_IN") == os.environ.get("GITHUB_JOB"):  # a runner on which nothing is slower
        found["DECODE_MS"] = 10.0
    factor = (1 + 0.01 * noise(job)) * (1 + 0.01 * noise(job, rep)) * (1 + (slow_down or 0.0))
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "DECODE_MS" in line)
    return [round(found[name] * MS * factor) for name in ("COMPUTE_MS", "DECODE_MS")], line


def rows(rep, compute, wait, line):
    """One repetition whose steps wait for a map function, then compute."""
    ends = range(0, STEPS * (compute + wait), compute + wait)
    site = str(Path.cwd() / f"train.py:{line}")
    maps = {"op_id": 1, "op_type": "MapOp", "name": "decode", "workers": 1, "capacity": 16, "code": site}
    found = {
        "step": [
            KEY | {"step": n, "kind": "train", "kind_step": n, "in_window": False, "start_ns": at, "fp_ns": at + wait,
                   "end_ns": at + compute + wait, "data_wait_ns": wait, "fetch_wait_ns": wait, "fp_source": "fetch"}
            for n, at in enumerate(ends)
        ],
        "pipeline": [KEY | {"pipeline_key": "a", "role": "train"}],
        "pipeline_op": [KEY | {"op_id": 0, "op_type": "BatchOp", "workers": 1, "capacity": 16}, KEY | maps],
        "pipeline_edge": [KEY | {"producer_id": 1, "consumer_id": 0}],
        "fetch": [
            KEY | {"fetch": n, "step": n, "start_ns": at, "wait_ns": wait, "side": "iterator"} for n, at in enumerate(ends)
        ],
        "op_service": [
            KEY | {"op_id": 1, "source": "log", "avg_ns": wait, "rows": 1, "batches": 1, "t_ns": at} for at in ends
        ],
    }  # fmt: skip
    return {table: [{"rep": rep, **row} for row in part] for table, part in found.items()}


def record(path, command, reps, slow_down=None):
    """A complete run of so many repetitions."""
    job, tables = fingerprint.job(), {}
    for rep in range(reps):
        (compute, wait), line = times(slow_down, job, f"{path.name}/{rep}")
        for table, part in rows(rep, compute, wait, line).items():
            tables.setdefault(table, []).extend(part)
    run = write_run(path, tables, f"shim-{time.time_ns()}")
    manifest = run.manifest
    manifest.state, manifest.job, manifest.command = "complete", job, list(command)
    manifest.workdir, manifest.git = str(Path.cwd()), fingerprint.git_state(".")
    manifest.fingerprint = {
        "cpu_model": os.environ.get("SHIM_CPU", "shim"), "cpu_cores": 2,
        "mindspore": os.environ.get("SHIM_MINDSPORE", "2.10"),
    }  # fmt: skip
    manifest.tables = {table: len(part) for table, part in tables.items()}
    manifest.reps = [
        Rep(rep=rep, zero_realtime_ns=time.time_ns(), zero_monotonic_ns=0, exit_code=0, dur_ns=10**9)
        for rep in range(reps)
    ]
    run.save()


def main():
    words = sys.argv[1:]
    if words[0] == "collect":
        options, command = words[1 : words.index("--")], words[words.index("--") + 1 :]
        reps = next(word for word in words if word.startswith("--reps")).removeprefix("--reps").removeprefix("=")
        record(Path(options[options.index("-o") + 1]), command, int(reps or options[options.index("--reps") + 1]))
        sys.stdout.flush()
        os._exit(0)  # as the command ends: Arrow's destructors abort now and then
    from pipeprof import cli
    from pipeprof.experiment import repetition

    def run(_self, command, _env, workdir, path, slow_down=None):
        before = Path.cwd()
        os.chdir(workdir)
        record(path, command, 1, None if os.environ.get("SHIM_IGNORES_PLANT") else slow_down)
        os.chdir(before)

    repetition.Bench.run = run
    cli.start()


if __name__ == "__main__":
    main()
