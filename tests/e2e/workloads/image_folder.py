"""Images in a folder, whose transforms torchvision composes; one of them is slow: `python image_folder.py WORKERS`.

Prints the sum of each batch, and the loss of each step.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import other_torch
import torch
from PIL import Image

IMAGES, BATCH, SLOW_S = 160, 8, 0.01


class Slow:
    def __call__(self, image):
        time.sleep(SLOW_S)
        return image


def write(folder):
    random = np.random.default_rng(0)
    for number in range(IMAGES):
        place = Path(folder, "ab"[number % 2])
        place.mkdir(exist_ok=True)
        Image.fromarray(random.integers(0, 255, (48, 48, 3), np.uint8)).save(place / f"{number}.png")


def train(folder):
    from torchvision import datasets, transforms

    composed = transforms.Compose([transforms.Resize(32), Slow(), transforms.ToTensor(), transforms.RandomErasing()])
    torch.manual_seed(0)
    rows = torch.utils.data.Subset(datasets.ImageFolder(folder, composed), range(IMAGES))
    loader = torch.utils.data.DataLoader(rows, batch_size=BATCH, shuffle=True, num_workers=int(sys.argv[1]))
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 2))
    optimizer = torch.optim.AdamW(network.parameters())
    for _ in range(2):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(network(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(x.sum().item(), loss.item())


if __name__ == "__main__":
    names = other_torch.own_operators()
    with tempfile.TemporaryDirectory() as made:
        write(made)
        train(made)
