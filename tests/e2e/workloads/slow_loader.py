"""A DataLoader with one slow stage: `python slow_loader.py row|collate STEPS WORKERS`; prints what the loop waited."""

from __future__ import annotations

import sys
import time

import mindspore as ms
import numpy as np
import parts
from mindspore.dataset.dataloader import DataLoader, Dataset

KIND, STEPS, WORKERS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SLOW_S = 0.15


class Rows(Dataset):
    def __getitem__(self, index):
        if KIND == "row":
            time.sleep(SLOW_S / parts.BATCH)
        return np.full(8, index % 5, np.float32), np.int32(index % 2)

    def __len__(self):
        return STEPS * parts.BATCH


def collate(rows):
    if KIND == "collate":
        time.sleep(2 * WORKERS * SLOW_S)
    return [np.stack(column) for column in zip(*rows, strict=True)]


def train():
    parts.pynative()
    trainer, waits, steps = parts.Trainer(), [], []
    batches = iter(DataLoader(Rows(), batch_size=parts.BATCH, collate_fn=collate, num_workers=WORKERS))
    for _ in range(STEPS):
        begin = time.perf_counter()
        x, y = next(batches)
        waits.append(time.perf_counter() - begin)
        trainer.step(ms.Tensor(x), ms.Tensor(y))
        steps.append(time.perf_counter() - begin)
    print("waited", sum(waits[STEPS // 4 :]) / sum(steps[STEPS // 4 :]))


if __name__ == "__main__":
    train()
