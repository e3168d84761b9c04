"""A training with PyTorch: gradients of four batches for each step, two optimizers, a validation in each of two epochs.

`python torch_steps.py`: prints the last loss. With WORLD_SIZE, a DistributedDataParallel of the processes that torchrun
starts, by gloo: the second of them sleeps in front of each forward pass, and the first one waits for its gradients.
"""

from __future__ import annotations

import os
import time

import numpy as np
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SLEEP_S, ACCUMULATED = 0.03, 4


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __getitem__(self, index):
        return np.full(64, index % 7, np.float32), index % 2

    def __len__(self):
        return self.count


def main():
    together = "WORLD_SIZE" in os.environ
    if together:
        distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    first, second = torch.nn.Linear(64, 256), torch.nn.Linear(256, 2)
    network = torch.nn.Sequential(first, torch.nn.ReLU(), second)
    network = DistributedDataParallel(network) if together else network
    optimizers = torch.optim.SGD(first.parameters(), lr=0.01), torch.optim.Adam(second.parameters())
    rows = Rows(320)
    loader = DataLoader(rows, batch_size=4, sampler=DistributedSampler(rows) if together else None)
    is_slow = together and distributed.get_rank() == 1
    for _ in range(2):
        for number, (x, y) in enumerate(loader, 1):
            if is_slow:
                time.sleep(SLEEP_S)
            loss = torch.nn.functional.cross_entropy(network(x), y)
            loss.backward()
            if number % ACCUMULATED == 0:
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
        with torch.no_grad():
            for x, _ in DataLoader(Rows(48), batch_size=16):
                network(x)
    print("loss", loss.item())
    if together:
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
