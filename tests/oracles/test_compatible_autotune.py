"""diagnose/autotune against MindSpore's own AutoTune, executed: what it logs that it saw leads to the same changes."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typed_rows import of_dicts

from pipeprof.query.engine import Engine
from pipeprof.verdict import compatible

verdicts = of_dicts(compatible.verdicts)

pytestmark = pytest.mark.slow  # starts MindSpore

TYPES = ["BatchOp", "MapOp", "RenameOp", "MapOp", "GeneratorOp"]
LAST = re.compile(r"Device Connector Size: ([\d.e+-]+), Connector Capacity: ([\d.e+-]+)")
SEEN = re.compile(r"Op \((\w+)\(ID:(\d+)\)\) CPU=([\d.e+-]+), in=([\d.e+-]+?)out=([\d.e+-]+)")
ASKED = re.compile(r'change "(\w+)" of Operator: \w+\(ID:(\d+)\)\s*From old value: \[(\d+)\] to new value: \[(\d+)\]')


@pytest.fixture(scope="module")
def rounds(tmp_path_factory):
    """Lines of the first round of each pipeline."""
    if find_spec("mindspore") is None:
        pytest.skip("MindSpore is not installed")
    command = [sys.executable, str(Path(__file__).with_name("autotuned.py")), str(tmp_path_factory.mktemp("autotune"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "GLOG_v": "0"})
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if "auto_tune.cc" in line]
    pipelines = "\n".join(lines).split("Launching Dataset AutoTune thread")[1:]
    if not any(SEEN.search(text) for text in pipelines):
        pytest.skip("this MindSpore does not log what AutoTune saw")
    return [text.split("Run AutoTune at step")[1] for text in pipelines]


def tables_of(text, batch_workers):
    """A record with the queue fills and CPU that AutoTune logged; mean fills as samples of 0 and of a full queue."""
    size, capacity = map(float, LAST.search(text).groups())
    seen = {int(number): tuple(map(float, rest)) for _, number, *rest in SEEN.findall(text)}
    fills = {0: 0.0, 1: 0.0, 3: 0.0, 4: seen[3][1] if seen else 1.0} | {op: out for op, (_, _, out) in seen.items()}
    workers = {0: batch_workers, 1: 1, 2: 1, 3: 1, 4: 1}
    key = {"pipeline_id": 0}
    return {
        "pipeline": [{**key, "pipeline_key": "a", "role": "train"}],
        "pipeline_op": [{**key, "op_id": op, "op_type": kind, "workers": workers[op], "inlined": op == 2}
                        | {"capacity": None if op == 2 else 16} for op, kind in enumerate(TYPES)],
        "pipeline_edge": [{**key, "producer_id": op, "consumer_id": op - 1} for op in range(1, 5)],
        "queue": [{**key, "op_id": op, "t_ns": 0, "depth": round(1_000_000 * fill), "capacity": 1_000_000}
                  for op, fill in fills.items()],
        "cpu": [{**key, "op_id": op, "scope": "pipeline_op", "t_ns": 0, "user_ratio": cpu * workers[op] / 100,
                 "sys_ratio": 0.0} for op, (cpu, _, _) in seen.items()],
        "fetch": [{**key, "fetch": 0, "side": "iterator", "depth": round(1000 * size),
                   "capacity": round(1000 * capacity)}],
    }  # fmt: skip


@pytest.mark.mindspore
@pytest.mark.parametrize(("number", "batch_workers"), [(0, 1), (1, 2), (2, 1)])
def test_the_first_round_asks_for_the_same_changes(make_run, rounds, number, batch_workers):
    text = rounds[number]
    with Engine.open(make_run(tables_of(text, batch_workers))) as engine:
        rows = engine.rows("diagnose/autotune")
    part = verdicts(mindinsight=[], advice=[], mindspore=[], autotune=rows, cpu_threads=os.cpu_count())["autotune"]

    seen = {int(op): float(fill) for _, op, _, fill, _ in SEEN.findall(text)}
    assert {row["op_id"]: row["input_ratio"] for row in rows if row["op_id"] in seen} == pytest.approx(seen, abs=1e-5)
    assert part["verdict"] == ("bottleneck" if "may benefit from tuning" in text else "ok")
    asked = [(int(op), setting, int(old), int(new)) for setting, op, old, new in ASKED.findall(text)]
    assert [(item["op_id"], item["setting"], item["old"], item["new"]) for item in part["changes"]] == asked
    if part["verdict"] == "bottleneck":
        assert part["named"] == list(dict.fromkeys(op for op, *_ in asked))
    else:
        assert part["named"] == [-1]
        assert number == 2
