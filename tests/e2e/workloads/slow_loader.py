"""A DataLoader with one slow stage: `python slow_loader.py mindspore|torch row|collate STEPS WORKERS`.

Prints what the loop waited.
"""

from __future__ import annotations

import sys
import time

import loader_kinds
import numpy as np

LIBRARY = loader_kinds.of(sys.argv[1])
KIND, STEPS, WORKERS = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
BATCH = 4
SLOW_S = 0.15


class Rows(LIBRARY.Dataset):
    def __getitem__(self, index):
        if KIND == "row":
            time.sleep(SLOW_S / BATCH)
        return np.full(8, index % 5, np.float32), np.int32(index % 2)

    def __len__(self):
        return STEPS * BATCH


def collate(rows):
    if KIND == "collate":
        time.sleep(2 * WORKERS * SLOW_S)
    return [np.stack(column) for column in zip(*rows, strict=True)]


def train():
    step, waits, steps = LIBRARY.trainer(), [], []
    batches = iter(LIBRARY.DataLoader(Rows(), batch_size=BATCH, collate_fn=collate, num_workers=WORKERS))
    for _ in range(STEPS):
        begin = time.perf_counter()
        x, y = next(batches)
        waits.append(time.perf_counter() - begin)
        step(x, y)
        steps.append(time.perf_counter() - begin)
    print("waited", sum(waits[STEPS // 4 :]) / sum(steps[STEPS // 4 :]))


if __name__ == "__main__":
    train()
