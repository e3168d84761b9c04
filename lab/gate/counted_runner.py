"""Stands for `pipeprof` on a hosted runner that is faked: times are drawn, the instructions of each stage are counted.

Like tests/unit/ci/shim_pipeprof.py, whose rows it takes, but the functions of the dataset are those of the commit:
`STAGES` of `train.py` are called on 32 rows under the counter that `ab` and `collect --reps` count with. Times: each job
has a speed of its own (spread 5 %), each repetition one within it (2 %), and one job in ten is up to twice as slow.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import time
from importlib import import_module
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "unit" / "ci"))
os.environ.setdefault("SHIM_TESTS", str(Path(__file__).resolve().parents[2] / "tests"))
from shim_pipeprof import KEY, rows, write_run

from pipeprof.collect import fingerprint
from pipeprof.collect.probe import instructions
from pipeprof.record.run import Rep

ROWS, NS_OF_ONE = 32, 30  # rows that are counted, and the time of an instruction


def counted():
    """Stage -> (instructions of each of the rows, file:line)."""
    sys.path.insert(0, str(Path.cwd()))
    sys.dont_write_bytecode = True
    import train

    values, found = [train.source(number) for number in range(ROWS)], {}
    for stage in train.STAGES:
        window, results = instructions.Window(), []
        while (call := window.next()) is not None and len(results) < ROWS:
            results.append(window.counted(call, stage, values[len(results)]))
        code = stage.__code__
        found[stage.__name__] = (window.take(), f"{code.co_filename}:{code.co_firstlineno}")
        values = [stage(value) for value in values]
    return found


def tables_of(reps):
    """The rows of all repetitions."""
    stages, speed = counted(), random.Random(os.environ["GITHUB_RUN_ID"])  # noqa: S311 - drawn times
    job = speed.lognormvariate(0, 0.05) * (1 if speed.random() > 0.1 else speed.uniform(1.2, 2.0))
    work = 8 * NS_OF_ONE * sum(median(counts) for counts, _ in stages.values())
    tables = {}
    for rep in range(reps):
        wait = round(work * job * speed.lognormvariate(0, 0.02))
        found = rows(rep, 2_000_000, wait, 1)
        found["pipeline_op"] = [dict(found["pipeline_op"][0], rep=rep)]
        found["pipeline_edge"], found["op_service"], found["op_instructions"] = [], [], []
        for number, (name, (counts, code)) in enumerate(stages.items(), 1):
            maps = {"op_id": number, "op_type": "MapOp", "name": name, "workers": 1, "capacity": 16, "code": code}
            of = {"op_id": number, "part": 0, "calls": len(counts), "median": float(median(counts))}
            found["pipeline_op"].append(KEY | maps)
            found["pipeline_edge"].append(KEY | {"producer_id": number, "consumer_id": number - 1})
            found["op_instructions"].append(KEY | of | {"least": min(counts), "most": max(counts)})
            own = wait * sum(counts) // sum(sum(each) for each, _ in stages.values())
            found["op_service"].append(
                KEY | {"op_id": number, "source": "log", "avg_ns": own, "rows": 1, "batches": 1, "t_ns": 0}
            )
        for table, part in found.items():
            tables.setdefault(table, []).extend(KEY | row | {"rep": rep} for row in part)
    return tables


def record(path, command, reps):
    """A complete run."""
    tables = tables_of(reps)
    run = write_run(path, tables, f"faked-{time.time_ns()}")
    manifest = run.manifest
    manifest.state, manifest.job, manifest.command = "complete", fingerprint.job(), list(command)
    manifest.workdir, manifest.git = str(Path.cwd()), fingerprint.git_state(".")
    manifest.fingerprint = {"cpu_model": "faked", "cpu_cores": 2, "mindspore": "2.10"}
    manifest.tables = {table: len(part) for table, part in tables.items()}
    manifest.reps = [
        Rep(rep=rep, zero_realtime_ns=time.time_ns(), zero_monotonic_ns=0, exit_code=0, dur_ns=10**9)
        for rep in range(reps)
    ]
    run.save()


def verb(words):
    """`collect` is faked; any other verb is pipeprof's own."""
    if words[0] != "collect":
        from pipeprof import cli

        sys.argv = ["pipeprof", *words]
        cli.start()
        return
    options, command = words[1 : words.index("--")], words[words.index("--") + 1 :]
    record(Path(options[options.index("-o") + 1]), command, int(options[options.index("--reps") + 1]))
    sys.stdout.flush()
    os._exit(0)  # as the command ends: Arrow's destructors abort now and then


def serve(path):
    """Verbs for `ask`, each in a process of its own that has the libraries already: they take longer than the verbs."""
    for name in (
        "pipeprof.cli.history",
        "pipeprof.cli.baseline",
        "pipeprof.experiment.alerts",
        "ruptures",
        "scipy.stats",
    ):
        import_module(name)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        while True:
            peer, _ = server.accept()
            with peer:
                data, files, _, _ = socket.recv_fds(peer, 1 << 20, 2)
                request = json.loads(data)
                child = os.fork()
                if child == 0:
                    os.environ.clear()
                    os.environ.update(request["env"])
                    os.chdir(request["folder"])
                    for number, file in enumerate(files, 1):
                        os.dup2(file, number)
                    try:
                        verb(request["words"])
                    except SystemExit as end:
                        code = end.code if isinstance(end.code, int) else int(bool(end.code))
                        sys.stdout.flush()
                        os._exit(code)
                    os._exit(0)
                for file in files:
                    os.close(file)
                peer.sendall(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    serve(sys.argv[1])
