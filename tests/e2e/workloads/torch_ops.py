"""A network in PyTorch over four epochs: `torch_ops.py [--workers N] [--profile STEP]` prints losses, and what it saw."""

import argparse

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        is_recorded = torch.autograd._profiler_enabled()  # in a worker it must not be: for its whole life
        return torch.full((3, 16, 16), float(index % 5)).sqrt(), index % 4, int(is_recorded)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.head = nn.Linear(8 * 14 * 14, 4)

    def forward(self, pictures):
        features = torch.relu(self.conv(pictures))
        return self.head(features.flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--profile", type=int, default=-1)
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = Net()
    optimizer = torch.optim.Adam(network.parameters())
    loader = DataLoader(Rows(), batch_size=8, num_workers=given.workers)
    step, recorded, own = 0, 0, None
    for _ in range(4):
        for pictures, labels, seen in loader:
            if step == given.profile:
                own = profile(activities=[ProfilerActivity.CPU])
                own.start()
            loss = nn.functional.cross_entropy(network(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recorded += int(seen.sum())
            step += 1
            if own is not None and step == given.profile + 2:
                own.stop()
                print(sorted((row.key, row.count) for row in own.key_averages() if row.key.startswith("aten::")))
                own = None
            print(step, loss.item())
    print("rows made in a recorded worker:", recorded if given.workers else 0)


if __name__ == "__main__":
    main()
