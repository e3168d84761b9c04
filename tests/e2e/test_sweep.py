"""`pipeprof sweep` on a real training: a good option, a harmful one, and one without effect."""

import json
import signal
import subprocess
import time

import pytest
from conftest import LIMIT_S

# A map operator waits 250 ms per batch, which takes no CPU: a second worker halves that on a busy machine too. Queues
# of one batch: what is made in advance during the first step, which may take seconds, is used up before steps count.
TRAINING = """
import os
import time

import mindspore as ms
import numpy as np
from mindspore import dataset as ds
from mindspore import nn

DECODE_S = float(os.environ.get("DECODE_S", "0.25"))

print("threads", ms.get_context("runtime_num_threads"), "mode", ms.get_context("mode"))


def decode(x):
    time.sleep(DECODE_S)
    return x


class Rows:
    def __len__(self):
        return 4 * 16

    def __getitem__(self, index):
        return np.full(8, index % 5, np.float32), np.array(index % 2, np.int32)


ms.set_seed(1)
ms.set_context(mode=ms.PYNATIVE_MODE)
ds.config.set_prefetch_size(1)
data = ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=False, python_multiprocessing=False, num_parallel_workers=1)
data = data.batch(4, num_parallel_workers=1).map(decode, ["x"], num_parallel_workers=1)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 2))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
for x, y in data.create_tuple_iterator(num_epochs=1):
    optimizer(gradients(x, y)[1])
"""
# Half and more than twice the step time are planted. What counts as a change is far from both, and from noise.
PLANTED = """
looks = [3, 5]
alpha = 0.05
discard = "none"
seed = 1

[rules.steady]
min_effect = 0.2
margin = 0.2

[[variant]]
name = "good"
dataset = {op = "Map", workers = 2}

[[variant]]
name = "harmful"
env = {DECODE_S = "0.6"}

[[variant]]
name = "idle"
env = {NOTHING_READS_THIS = "1"}
args = ["--ignored"]
dataset = {op = "Batch", workers = 2}
"""
# The numbers are what the command says, so they are the same on every machine.
SAYS = """
import os
import sys

step = 100 if "--workers=2" in sys.argv else 200
print("step time:", step * float(os.environ.get("DECODE", "1")), "ms")
"""
GREEDY = """
search = "greedy"
measure = "regex"
looks = [3]
seed = 1

[stages]
steady = {pattern = "^step time: ([0-9.]+) ms"}

[[variant]]
name = "two workers"
args = ["--workers=2"]

[[variant]]
name = "idle variable"
env = {NOTHING_READS_THIS = "1"}

[[addition]]
name = "faster decoding"
env = {DECODE = "0.5"}

[[addition]]
name = "idle argument"
args = ["--ignored"]
"""
OTHERS = """
looks = [3]
discard = "none"
seed = 1

[[variant]]
name = "context"
context = {jit_level = "O0", threads = 1}

[[variant]]
name = "no such operator"
dataset = {op = "Shuffle", workers = 2}

[[variant]]
name = "processes"
dataset = {op = "Map", workers = 2, processes = true, prefetch = 8}
"""


@pytest.fixture
def home(pipeprof):
    (pipeprof.folder / "train.py").write_text(TRAINING)
    (pipeprof.folder / "says.py").write_text(SAYS)
    return pipeprof


def sweep(home, text, *words, script="train.py"):
    (home.folder / "sweep.toml").write_text(text)
    return home.run("sweep", "sweep.toml", "-o", "out", *words, "--", home.python, script)


@pytest.mark.mindspore
@pytest.mark.slow
@pytest.mark.measures
def test_a_good_and_a_harmful_option_are_found_and_an_idle_one_is_neither(home):
    done = sweep(home, PLANTED, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {row["name"]: row for row in found["tables"][0]["rows"]}
    assert {name: rows[name]["verdict"] for name in ("good", "harmful")} == {"good": "better", "harmful": "worse"}
    assert rows["idle"]["verdict"] in ("within noise", "inconclusive")
    assert found["recommendation"]["name"] == "good"
    assert rows["good"]["stages"]["steady"]["ratio"] < 0.75
    stages = rows["base"]["stages"]
    assert {"configure", "warmup_first", "warmup_second", "setup", "steady", "throughput", "peak_memory"} <= set(stages)
    assert stages["setup"]["value"] > stages["warmup_first"]["value"] > 0
    again = sweep(home, PLANTED, "--export", "env")
    assert "num_parallel_workers = 2" in again.stdout, again.stderr


def test_greedy_adds_to_the_winner_and_confirms_it_in_fresh_runs(home):
    done = sweep(home, GREEDY, "--format", "json", script="says.py")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    verdicts = [{row["name"]: row["verdict"] for row in table["rows"]} for table in found["tables"]]
    assert verdicts == [
        {"base": "base", "two workers": "better", "idle variable": "within noise"},
        {
            "two workers": "base",
            "two workers + faster decoding": "better",
            "two workers + idle argument": "within noise",
        },
        {"base": "base", "two workers + faster decoding": "better"},
    ]
    assert found["recommendation"]["name"] == "two workers + faster decoding"
    assert found["tables"][2]["rows"][1]["stages"]["steady"]["ratio"] == pytest.approx(0.25)
    assert "DECODE" in sweep(home, GREEDY, "--export", "env", script="says.py").stdout


@pytest.mark.mindspore
@pytest.mark.slow
def test_context_processes_and_an_operator_that_is_not_there(home):
    """Cut off by a budget after the first round, and a kill before that."""
    words = [home.python, "-m", "pipeprof", "sweep", "sweep.toml", "-o", "out", "--", home.python, "train.py"]
    (home.folder / "sweep.toml").write_text(OTHERS)
    started = subprocess.Popen(words, cwd=home.folder, env=home.environment(), stderr=subprocess.PIPE)
    while started.poll() is None and not any(home.folder.glob("out/run-0000/spool/rep=0/proc-*")):
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    _, stderr = started.communicate(timeout=LIMIT_S)
    assert started.returncode == 130, stderr
    assert b"run the same command again to go on" in stderr
    done = sweep(home, OTHERS, "--budget", "1s", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {row["name"]: row for row in found["tables"][0]["rows"]}
    assert rows["no such operator"]["verdict"] == "failed"
    assert "not applied" in rows["no such operator"]["failures"][0]
    assert rows["context"]["verdict"] == rows["processes"]["verdict"] == "inconclusive"
    session = json.loads((home.folder / "out" / "session.json").read_text())
    rows = [entry for entry in session["repetitions"] if entry["variant"] == "context"]
    run = next(entry["name"] for entry in rows if entry["state"] == "counted")  # the killed one may be of this variant
    assert "threads 1 mode 1" in (home.folder / "out" / f"{run}.log").read_text()
