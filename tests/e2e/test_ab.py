"""`pipeprof ab` on real trainings: two revisions of a small repository, and the same one twice."""

import json
import signal
import subprocess
import time

import pytest
from conftest import LIMIT_S

pytestmark = pytest.mark.mindspore

# One batch waits 4 x PAUSE in one map operator. That is much longer than the rest of a step, also of one that has to
# share its cores with other programs: waiting needs none. The slow revision waits four times as long.
TRAINING = """
import time

import mindspore as ms
import numpy as np
from mindspore import dataset as ds
from mindspore import nn

PAUSE = {pause}


def decode(x):
    time.sleep(PAUSE)
    return x


class Rows:
    def __len__(self):
        return 4 * 16

    def __getitem__(self, index):
        return np.full(8, index % 5, np.float32), np.array(index % 2, np.int32)


ms.set_seed(1)
ms.set_context(mode=ms.PYNATIVE_MODE)
ds.config.set_prefetch_size(1)  # or a first step of seconds fills the queues, and the next ones wait for nothing
data = ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=False)
data = data.map(decode, ["x"], num_parallel_workers=1).batch(4, num_parallel_workers=1)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 2))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
for x, y in data.create_tuple_iterator(num_epochs=1):
    optimizer(gradients(x, y)[1])
"""
POLICY = """
[gate]
looks = [3, 4]
alpha = 0.05

[gate.metrics]
step_time_median = {min_effect = 0.2, margin = 0.25}
data_wait = {min_effect = 0.2, margin = 0.25}
step_time_p90 = {family = "secondary"}
first_step_time = {family = "secondary"}
peak_memory = {family = "secondary"}
"""


def git(folder, *words):
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def project(pipeprof_in):
    """A repository with the tags `quick`, `same` (only a comment more) and `slow` (a map operator sleeps longer)."""
    home = pipeprof_in("ab")
    root = home.folder
    git(root, "init", "--quiet", "-b", "main")
    (root / "pipeprof.toml").write_text(POLICY)
    texts = {
        "quick": TRAINING.format(pause=0.030),
        "same": TRAINING.format(pause=0.030) + "# the end\n",
        "slow": TRAINING.format(pause=0.120),
    }
    for tag, text in texts.items():
        (root / "train.py").write_text(text)
        git(root, "add", ".")
        git(root, "commit", "--quiet", "-m", tag)
        git(root, "tag", tag)
    return home


def ab(home, *words):
    """A session: up to ten trainings."""
    return home.run("ab", *words, "--format", "json", "--", home.python, "train.py")


@pytest.mark.slow
@pytest.mark.measures
def test_a_slower_map_operator_is_regressed_and_named(project):
    done = ab(project, "--base-ref", "quick", "--new-ref", "slow", "-o", "slower")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "regressed"
    step = next(metric for metric in found["metrics"] if metric["name"] == "step_time_median")
    assert step["ratio"] > 1.4
    assert found["explanation"][0]["name"] == "decode", found["explanation"]
    assert "because work of `decode` per batch grew" in found["headline"]
    assert found["session"]["arms"]["base"]["revision"] == git(project.folder, "rev-parse", "quick")
    assert git(project.folder, "worktree", "list", "--porcelain").count("worktree ") == 1
    again = ab(project, "--base-ref", "quick", "--new-ref", "slow", "-o", "slower")
    assert again.returncode == 1
    assert json.loads(again.stdout) == found
    assert "nothing was run" in again.stderr


@pytest.mark.slow
@pytest.mark.measures
def test_identical_code_is_not_regressed_also_across_an_interruption(project):
    words = ["ab", "--base-ref", "quick", "--new-ref", "same", "-o", "equal", "--", project.python, "train.py"]
    folder = project.folder / "equal"
    launcher = subprocess.Popen(
        [project.python, "-m", "pipeprof", *words], cwd=project.folder, env=project.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while launcher.poll() is None and not any(folder.glob("*-000/spool/rep=0/proc-*")):
        time.sleep(0.05)
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=LIMIT_S)
    assert launcher.returncode == 130
    assert git(project.folder, "worktree", "list", "--porcelain").count("worktree ") == 1
    entries = json.loads((folder / "session.json").read_text())["repetitions"]
    assert [entry["state"] for entry in entries] == ["running"]
    done = ab(project, "--base-ref", "quick", "--new-ref", "same", "-o", "equal")
    assert done.returncode in (0, 4), done.stderr  # inconclusive on a busy machine, never worse
    found = json.loads(done.stdout)
    assert found["session"]["starts"] == 2
    assert len(found["session"]["runs"]["base"]) >= 3


def test_an_arm_that_fails_is_named(project):
    (project.folder / "train.py").write_text("raise SystemExit('no data here')\n")
    done = ab(project, "--base-ref", "quick", "-o", "broken")
    assert done.returncode == 5
    assert "the command of `new` failed" in done.stderr
    assert "no data here" in done.stderr
    assert "that of `base` works" in done.stderr
    git(project.folder, "checkout", "--quiet", "--", "train.py")
