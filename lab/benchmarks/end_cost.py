"""What the end of a long training costs: CPU seconds and peak memory from its spool to its tables and answers.

python lab/benchmarks/end_cost.py --steps 1000000 --kinds graph jit
python lab/benchmarks/end_cost.py --steps 10000 --operators 300

The spool is that of a recorded training of this repository, its steps repeated. What `collect` does behind the command
runs in a process of its own. `--keep FOLDER` keeps the runs there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CAPTURES = Path(__file__).resolve().parents[2] / "tests" / "real" / "captures"
MARK = np.dtype(
    [("kind", "u1"), ("flag", "u1"), ("subject", "<u4"), ("number", "<u4"), ("begin", "<i8"), ("end", "<i8")]
)
FETCH, TRAIN_STEP, TRAIN_BEGIN, TRAIN_END, EPOCH_BEGIN, EPOCH_END, UPDATE = 1, 2, 3, 4, 5, 6, 10
STEP_NS, EPOCH = 1_000_000, 1000  # length of a step; steps of an epoch
S = 1_000_000_000
WORK = """
import sys
from pathlib import Path
from pipeprof.cli.messages import sum_up
from pipeprof.read.spool.finish import open_run
run = open_run(Path(sys.argv[1]))
if len(sys.argv) > 2:
    sum_up(run, quiet=True)
"""


def marks_of(kind: str, steps: int, begin: int) -> np.ndarray:
    """The marks of so many steps, as the hooks write them for `Model.train` (graph) and a loop with one jit call."""
    chance = np.random.default_rng(1)
    length = chance.integers(STEP_NS * 9 // 10, STEP_NS * 11 // 10, steps)
    end = begin + np.cumsum(length)
    start = end - length
    number = np.arange(steps)
    epoch = number // EPOCH
    wait = chance.integers(50_000, 200_000, steps)
    fetch, update, step = (np.zeros(steps, MARK) for _ in range(3))
    fetch["kind"], fetch["number"], fetch["begin"], fetch["end"] = FETCH, number, start + 5_000, start + wait
    update["kind"], update["flag"], update["subject"] = UPDATE, 1 if kind == "graph" else 2, 2
    update["begin"], update["end"] = start + wait + 10_000, end - 20_000
    rows = [fetch, update]
    if kind == "graph":
        step["kind"], step["subject"], step["number"], step["begin"], step["end"] = (
            TRAIN_STEP,
            epoch + 1,
            number,
            end,
            end,
        )
        rows.append(step)
    marks = np.stack(rows, axis=1)
    parts = []
    for first in range(0, steps, EPOCH):
        mine = marks[first : first + EPOCH].ravel()
        last, at = int(end[min(first + EPOCH, steps) - 1]), int(start[first])
        edge = np.zeros(2, MARK)
        edge["kind"], edge["flag"], edge["number"] = FETCH, 1, first + EPOCH
        edge["begin"], edge["end"] = last + 100, last + 200
        if kind == "graph":
            edge["kind"][1], edge["flag"][1], edge["subject"][1] = EPOCH_END, 0, first // EPOCH + 1
            around = np.zeros(1, MARK)
            around["kind"], around["subject"] = EPOCH_BEGIN, first // EPOCH + 1
            around["begin"] = around["end"] = at
            mine = np.concatenate([around, mine])
        parts += [mine, edge if kind == "graph" else edge[:1]]
    whole = np.zeros(2, MARK)
    whole["kind"] = TRAIN_BEGIN, TRAIN_END
    whole["begin"] = whole["end"] = begin, int(end[-1]) + 1000
    return np.concatenate([whole[:1], *parts, whole[1:]] if kind == "graph" else parts)


def make_run(folder: Path, kind: str, steps: int, operators: int) -> None:
    """A recording that was not converted yet."""
    shutil.copytree(CAPTURES / f"2.10-{kind}", folder)
    for table in folder.iterdir():
        if table.is_dir() and table.name != "spool":
            shutil.rmtree(table)
    spool = folder / "spool" / "rep=0"
    [process] = spool.glob("proc-*")
    events = [json.loads(line) for line in process.joinpath("events.jsonl").read_text().splitlines()]
    iterators = [event for event in events if event["e"] == "iterator" and event["number"] == 0]
    begin = max(event["end"] for event in iterators) + 10_000_000
    marks = marks_of(kind, steps, begin)
    marks.tofile(process / "marks.bin")
    end = int(marks["end"].max())
    kept = [one for one in events if one["e"] in ("process", "import", "context", "unit", "iterator")
            and one.get("number") in (None, 0, 2)]  # fmt: skip
    shutil.rmtree(process / "tree-1", ignore_errors=True)
    for window in process.glob("window-*"):
        shutil.rmtree(window)
    about = kept[0]
    offset = about["realtime"] - about["monotonic"]
    if operators:
        kept.append(
            {"e": "window_open", "t": begin, "number": 1, "warmup": 0, "begin": begin - 1000, "began": begin - 500}
        )
        ends = marks["end"][marks["kind"] == UPDATE] + 20_000
        _write_window(process / "window-1", marks[marks["kind"] == UPDATE], operators, offset)
        kept.append({"e": "window", "t": end + 2, "number": 1, "begin": begin - 1000, "end": end + 1, "monotonic": 0,
                     "ticks": [begin, *ends.tolist()], "realtime": offset})  # fmt: skip
    kept += [{"e": "closed", "t": end + 1_000_000, "number": 0, "rows": steps, "last": end},
             {"e": "bye", "t": end + 2_000_000, "dropped": 0, "realtime": end + offset}]  # fmt: skip
    process.joinpath("events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in kept))
    _write_host(spool / "host.jsonl", end)
    ended = json.loads(spool.joinpath("exit.json").read_text())
    ended["monotonic"], ended["realtime"] = end + 3_000_000, end + 3_000_000 + offset
    spool.joinpath("exit.json").write_text(json.dumps(ended))
    manifest = json.loads(folder.joinpath("run.json").read_text())
    manifest |= {"state": "running", "tables": {}, "parts": None, "reps": [], "ended_at": None}
    manifest["options"]["keep_spool"] = False
    folder.joinpath("run.json").write_text(json.dumps(manifest))


def _write_host(path: Path, end: int) -> None:
    """A sample a second, each like the last one that was recorded, with CPU time that goes on."""
    samples = [json.loads(line) for line in path.read_text().splitlines()]
    last = samples[-1]
    for number in range(1, (end - last["t"]) // S):
        more = {name: last[name] + part * number for name, part in (("user", 1.0), ("sys", 0.1), ("idle", 0.9))}
        procs = [one | {"user": one["user"] + 0.9 * number, "sys": one["sys"] + 0.1 * number} for one in last["procs"]]
        samples.append(last | more | {"t": last["t"] + number * S, "procs": procs})
    path.write_text("".join(json.dumps(one) + "\n" for one in samples))


def _write_window(folder: Path, updates: np.ndarray, operators: int, offset: int) -> None:
    """Executions of so many operators in each step, as MindSpore writes them: a line for each operator."""
    folder.mkdir()
    begin = updates["begin"] + offset
    each = (updates["end"] - updates["begin"]) // operators
    with folder.joinpath("cpu_op_execute_timestamp_0.txt").open("w") as file:
        for number in range(operators):
            where = "Gradients/Default" if number >= operators // 2 else "Default"
            starts = begin + number * each
            took = (each * 0.9 / 1e6).round(6)
            items = " ".join(f"{at},{ms:.6f},0" for at, ms in zip(starts.tolist(), took.tolist(), strict=True))
            file.write(
                f"{where}/network-WithLossCell/layer{number // 10}-Dense/MatMul-op{number};HostCpuOps;{items} \n"
            )


def cost(folder: Path, *words: str) -> str:
    """CPU seconds and peak memory of the end, in words."""
    child = subprocess.Popen([sys.executable, "-c", WORK, str(folder), *words])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"the end of {folder} ended with {child.returncode}")
    return f"{used.ru_utime + used.ru_stime:.2f} CPU s, {used.ru_maxrss >> 10} MiB"


def main() -> None:
    """Print a line for each kind, with and without the answers."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--steps", type=int, default=1_000_000)
    asked.add_argument("--operators", type=int, default=0, help="executions in each step")
    asked.add_argument("--kinds", nargs="+", default=["graph", "jit"])
    asked.add_argument("--keep", type=Path)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CACHE_HOME"] = f"{place}/cache"
        for kind in given.kinds:
            made = Path(place, kind)
            make_run(made, kind, given.steps, given.operators)
            tables = Path(given.keep or place, f"{kind}-tables")
            shutil.copytree(made, tables)
            print(f"{kind}, {given.steps:,} steps: tables {cost(tables)}", flush=True)
            print(f"{kind}, {given.steps:,} steps: tables, answers and rollup {cost(made, 'answers')}", flush=True)


if __name__ == "__main__":
    main()
