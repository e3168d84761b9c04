"""A real training is tuned; the patch applies, and the patched script has the settings that were proven."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipeprof.experiment.runs import LIGHT
from pipeprof.experiment.trial import Trial, run_trial
from pipeprof.experiment.tune.bench import TuneBench
from pipeprof.record import store
from pipeprof.record.settings_file import OperatorSetting, Settings

pytestmark = [pytest.mark.mindspore, pytest.mark.slow]
SCRIPT = '''"""A map that waits for storage holds the training up."""

import time

import numpy as np
from mindspore import dataset as ds


class Rows:
    def __len__(self):
        return 4 * 24

    def __getitem__(self, index):
        return np.full(8, index, np.float32), np.array(index % 2, np.int32)


def fetch_mask(x):
    time.sleep(0.06)
    return x + 1


data = ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=True, num_parallel_workers=1)
data = data.map(fetch_mask, ["x"], num_parallel_workers=1)  # slow
data = data.batch(4, num_parallel_workers=1)
for x, y in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
    time.sleep(0.02)
'''
WORKERS = "SELECT op_type, workers FROM pipeline_op ORDER BY op_id"


def workers(home, run):
    done = home.run("sql", str(run), WORKERS, "--format", "json")
    return [(row["op_type"], row["workers"]) for row in json.loads(done.stdout)]


@pytest.mark.measures
def test_a_slow_map_is_found_proven_and_patched(pipeprof_in):
    """Rows wait 60 ms, which takes no CPU: beside other programs every row takes as much longer on both sides."""
    home = pipeprof_in("tune")
    (home.folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    command = [home.python, "train.py"]
    done = home.run("tune", "--budget", "30m", "-o", "tuned", "--format", "json", "--", *command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "proven", done.stderr
    accepted = [one for one in found["trials"] if one["verdict"] == "accepted"]
    assert {one["batches"] for one in accepted} == {"same"}
    setting = next(one for one in found["settings"]["operators"] if one["name"] == "fetch_mask")
    assert setting["workers"] > 1
    assert found["final"]["low"] > 1.2
    assert found["patch"]["by_hand"] == []
    again = home.run("tune", "--budget", "30m", "-o", "tuned", "--format", "json", "--", *command)
    assert json.loads(again.stdout)["final"] == found["final"]  # nothing was run again

    run = home.collect(command, "-q", "--apply", "tuned/settings.json")
    assert run.done.returncode == 0, run.done.stderr
    assert ("MapOp", setting["workers"]) in workers(home, run.path)

    applied = subprocess.run(["git", "apply", "tuned/patch.diff"], cwd=home.folder, capture_output=True, text=True)
    assert applied.returncode == 0, applied.stderr
    assert "time.sleep(0.06)" in (home.folder / "train.py").read_text(encoding="utf-8")
    patched = home.collect(command, "-q")
    assert patched.done.returncode == 0, patched.done.stderr
    assert workers(home, patched.path) == workers(home, run.path)


FILES = '''"""Two text files, read by one worker, whose storage hands out a line each 20 ms: named pipes take their place."""

import multiprocessing
import os
import threading
import time

FILES = ["a.txt", "b.txt"]


def put(path, make):
    make(f"{path}.new")
    os.replace(f"{path}.new", path)


def serve(path):
    wait_s = 0.0  # the first reader only counts the lines
    while True:
        with open(path, "w", buffering=1) as file:
            for row in range(60):
                time.sleep(wait_s)
                file.write(f"{path} {row}\\n")
            put(path, os.mkfifo)  # for the next reader
        wait_s = 0.02


def storage(begin):
    begin.wait()
    for path in FILES:
        threading.Thread(target=serve, args=(path,)).start()


if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    begin = fork.Event()
    fork.Process(target=storage, args=(begin,), daemon=True).start()

    from mindspore import dataset as ds

    for path in FILES:
        put(path, lambda new: open(new, "w").close())
    data = ds.TextFileDataset(FILES, shuffle=False, num_parallel_workers=1)
    for path in FILES:
        put(path, os.mkfifo)
    begin.set()
    data = data.batch(4, num_parallel_workers=1)
    for _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        pass
'''


@pytest.mark.measures
def test_another_order_of_the_rows_is_proven_and_patched(pipeprof_in):
    """Two workers read the files side by side: the same lines, by turns. Waiting takes no CPU."""
    home = pipeprof_in("files")
    (home.folder / "train.py").write_text(FILES, encoding="utf-8")
    command = [home.python, "train.py"]
    done = home.run("tune", "--allow-order", "--budget", "30m", "-o", "tuned", "--format", "json", "--", *command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["verdict"], found["final"]["batches"]) == ("proven", "permuted"), done.stderr
    reader = next(one for one in found["settings"]["operators"] if one["op_type"] == "TextFileOp")
    assert reader["workers"] > 1
    assert found["final"]["low"] > 1.2
    applied = subprocess.run(["git", "apply", "tuned/patch.diff"], cwd=home.folder, capture_output=True, text=True)
    assert applied.returncode == 0, applied.stderr
    patched = home.collect(command, "-q")
    assert patched.done.returncode == 0, patched.done.stderr
    assert ("TextFileOp", reader["workers"]) in workers(home, patched.path)


LOOPS = Path(__file__).parent / "workloads" / "loops.py"


STYLES = {
    "model_train": 4, "model_fit_with_eval": 4, "pynative_loop": 4, "jit_function_with_eval": 4,
    "gradient_accumulation": 2,  # whose batches count: two make a step
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_a_training_of_any_style_ends_after_so_many_steps(tmp_path, style):
    trial = Trial(tmp_path / "run", [sys.executable, str(LOOPS), style], replace(LIGHT, stop_after=4))
    ended = run_trial(trial)
    assert ended.failure == ""
    steps = [row for row in store.read(ended.run, "step").to_pylist() if row["kind"] != "eval"]
    assert len(steps) == STYLES[style]
    assert "stopped" in {one.code for one in ended.run.manifest.warnings}


LOOP = "for x, y in data.create_tuple_iterator(num_epochs=1, output_numpy=True):\n    time.sleep(0.02)\n"
LONG = """try:
    for _ in range(2_000):
        for x, y in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
            time.sleep(0.02)
    print("over")
finally:
    print("left")
"""


def test_a_long_training_is_measured_by_its_first_steps(pipeprof_in, monkeypatch):
    """Its own end is never reached, but its `finally` is."""
    home = pipeprof_in("long")
    (home.folder / "train.py").write_text(SCRIPT.replace(LOOP, LONG), encoding="utf-8")
    monkeypatch.chdir(home.folder)
    bench = TuneBench([home.python, "train.py"], record_s=2.0)
    seen = bench.look(Settings(), home.folder / "look", None)
    assert {row["name"] for row in seen.ops} >= {"fetch_mask"}
    assert seen.ended_after >= 40  # steps of 0.25 s
    assert bench.look(Settings(), home.folder / "look", None).ended_after == seen.ended_after
    bench.stop_after = 30
    ran = bench.run(Settings(), home.folder / "runs", ("a", 0), None)
    # 4 rows of 60 ms a batch; of the 22 that count two may have been made while the loop was kept from its core.
    assert 0.5 < ran.rate < 4.2 * 22 / 20
    assert len(ran.batches) == 8 + 6  # of the first and the second epoch
    (epoch, other) = bench.rows(Settings(), home.folder / "rows", None)
    assert (epoch.batches, epoch.whole, other.batches, other.whole) == (24, True, 6, False)
    assert (home.folder / "runs" / "a0.log").read_text(encoding="utf-8").split() == ["left"]


SPARE = '''"""Two worker processes, each with memory of its own, for a map that one thread could do."""

import time

import numpy as np
from mindspore import dataset as ds


class Rows:
    def __len__(self):
        return 8 * 60

    def __getitem__(self, index):
        return (np.full((16, 16), index, np.float32),)


kept = []


def scale(x):
    if not kept:
        kept.append(np.ones(8_000_000, np.float64))
    return x * 2 + 1


data = ds.GeneratorDataset(Rows(), ["x"], shuffle=False, num_parallel_workers=1)
data = data.map(scale, ["x"], num_parallel_workers=2, python_multiprocessing=True)
data = data.batch(8, num_parallel_workers=1)
for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
    time.sleep(0.03)
'''


@pytest.mark.parametrize("goal", ["memory", "cores"])
def test_what_a_run_needs_is_measured(pipeprof_in, monkeypatch, goal):
    """61 MiB in each of two processes; and the CPU time of a step, which is some of the 30 ms that it takes."""
    home = pipeprof_in(f"needs-{goal}")
    (home.folder / "train.py").write_text(SPARE, encoding="utf-8")
    monkeypatch.chdir(home.folder)
    bench = TuneBench([home.python, "train.py"], goal)
    plain = bench.run(Settings(), home.folder / "runs", ("a", 0), None)
    one = OperatorSetting(node=1, op_type="MapOp", workers=1, processes=False)
    changed = bench.run(Settings(operators=(one,)), home.folder / "runs", ("b", 0), None)
    assert plain.batches == changed.batches != ()
    if goal == "memory":
        assert plain.need - changed.need > 40 * 2**20
    else:
        assert 0 < changed.need < 2 / changed.rate
        assert 0 < plain.need < 2 / plain.rate


SHORT = '''"""Two functions for each row, which take whole batches as well. Prints what the loop gets, and how often it was read."""

import hashlib
import sys

import numpy as np
from mindspore import dataset as ds


class Rows:
    def __len__(self):
        return 128

    def __getitem__(self, index):
        read.append(index)
        return np.full((4, 4), index, np.uint8), np.array(index % 2, np.int32)


read = []
ds.config.set_seed(7)
data = ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=True)
data = data.map(lambda x: x / 255, ["x"])
data = data.map(lambda x: (x[..., ::-1] - 0.5).astype(np.float32), ["x"])
data = data.batch(16)
state = hashlib.sha256()
iterator = data.create_tuple_iterator(num_epochs=3, output_numpy=True)
for _ in range(3):
    for x, y in iterator:
        state.update(x.tobytes() + y.tobytes() + str((x.shape, x.dtype, y.shape)).encode())
print(state.hexdigest())
print(len(read), "rows were read", file=sys.stderr)
'''


def test_batch_in_front_of_its_maps_and_kept_rows_hand_out_the_same(pipeprof_in):
    home = pipeprof_in("order")
    (home.folder / "train.py").write_text(SHORT, encoding="utf-8")
    runs = []
    for one in (
        None,
        {"node": 0, "op_type": "BatchOp", "maps_after": 2},
        {"node": 1, "op_type": "MapOp", "cache": 1 << 20},
    ):
        settings = {"schema_version": 1, "operators": [one] if one else []}
        (home.folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        runs.append(home.collect([home.python, "train.py"], "-q", "--apply", "settings.json"))
        assert runs[-1].done.returncode == 0, runs[-1].done.stderr
    plain, moved, kept = runs
    assert kept.done.stdout == moved.done.stdout == plain.done.stdout != ""
    order = "SELECT op_type FROM pipeline_op WHERE op_type <> 'EpochCtrlOp' ORDER BY op_id"
    assert [row["op_type"] for row in plain.sql(order)] == ["BatchOp", "MapOp", "MapOp", "GeneratorOp"]
    assert [row["op_type"] for row in moved.sql(order)] == ["MapOp", "MapOp", "BatchOp", "GeneratorOp"]
    assert [row["op_type"] for row in kept.sql(order)] == ["BatchOp", "GeneratorOp"]
    assert "384 rows were read" in plain.done.stderr
    assert "128 rows were read" in kept.done.stderr
