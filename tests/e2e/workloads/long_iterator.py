"""One iterator for many batches: quick ones, and some in between that are slow. Tells how its memory grew: one JSON line.

`python long_iterator.py [BATCHES]`; with a number there are no slow ones.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from mindspore.dataset import GeneratorDataset

BATCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
FROM = BATCHES // 3  # memory is compared from here on
PROBE = "_pipeprof_probe.trees"

if PROBE in sys.modules:
    sys.modules[PROBE].SAMPLES = 100  # the readings become rarer after 1 s instead of minutes


class Rows:
    """Rows made in no time."""

    def __len__(self):
        return BATCHES

    def __getitem__(self, index):
        return (np.float32(index),)


def resident():
    """Resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


before = 0
for number, _ in enumerate(GeneratorDataset(Rows(), ["x"], shuffle=False).batch(1).create_tuple_iterator(num_epochs=1)):
    if number % 1000 == 0 and len(sys.argv) == 1:
        time.sleep(0.1)
    if number == FROM:
        before = resident()
sys.stdout.write(json.dumps({"batches": number + 1, "grown": resident() - before}) + "\n")
