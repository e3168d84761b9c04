"""Real bisections: a repository of small MindSpore trainings with a slower map planted in one commit.

python lab/gate/real_bisect.py FOLDER --slow 11 [--commits 16] [--factor 1.15] [options of `pipeprof bisect`]
Run it again in the same folder to go on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from git_repository import GitRepository

TRAINING = """import time

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset

ROUNDS = {rounds}  # of 10 us, in the map


class Rows:
    def __len__(self):
        return 640

    def __getitem__(self, index):
        return np.full((32,), index % 7, np.float32), np.array(index % 2, np.int32)


def decode(row):
    time.sleep(ROUNDS * 1e-5)  # storage that takes its time
    return row


data = GeneratorDataset(Rows(), ["x", "y"], shuffle=False).map(decode, ["x"], num_parallel_workers=1).batch(8)
net = nn.SequentialCell(nn.Dense(32, 8), nn.ReLU(), nn.Dense(8, 2))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
model = ms.train.Model(net, loss, nn.SGD(net.trainable_params(), 0.01))
ms.set_context(mode=ms.GRAPH_MODE)
model.train(1, data, dataset_sink_mode=False)
"""
ROUNDS = 400


def repository(folder, commits, slow, factor):
    """The repository, made when it is not there, and the hashes of its commits."""
    if not (folder / ".git").exists():
        made = GitRepository(folder)
        for at in range(commits + 1):
            rounds = round(ROUNDS * (factor if at >= slow else 1))
            made.commit({"train.py": TRAINING.format(rounds=rounds), "notes.txt": f"{at}\n"}, f"part {at}")
    made = GitRepository(folder)
    return made.git("rev-list", "--reverse", "HEAD").split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slow", type=int, default=11)
    parser.add_argument("--commits", type=int, default=16)
    parser.add_argument("--factor", type=float, default=1.15)
    wish, more = parser.parse_known_args()
    revisions = repository(wish.folder, wish.commits, wish.slow, wish.factor)
    print(f"planted: {revisions[wish.slow][:10]}", flush=True)
    words = ["bisect", revisions[0], revisions[-1], *more, "--", sys.executable, "train.py"]
    sys.exit(subprocess.run([sys.executable, "-m", "pipeprof", *words], cwd=wish.folder, check=False).returncode)


if __name__ == "__main__":
    main()
