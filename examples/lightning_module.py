"""A small network, trained and validated by Lightning: `pipeprof collect -- python examples/lightning_module.py`.

Each picture is noise that is blurred in Python when it is fetched: that is what the training waits for. With
`--workers 2` two processes do it.
"""

from __future__ import annotations

import argparse
import tempfile

import lightning
import numpy as np
import torch
from torch import nn

SIDE = 24


class Pictures(torch.utils.data.Dataset):
    """Pictures that are made when they are asked for, with a label."""

    def __init__(self, count: int, cost: int) -> None:
        self.count, self.cost = count, cost

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        picture = np.random.default_rng(index).random((SIDE, SIDE), np.float32)
        for _ in range(self.cost):
            picture = sum(np.roll(picture, shift, axis) for shift in (-1, 1) for axis in (0, 1)) / 4
        return picture, index % 2


class Network(lightning.LightningModule):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 32), nn.ReLU(), nn.Linear(32, 2))

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _number: int) -> torch.Tensor:
        """The loss of a batch."""
        pictures, labels = batch
        return nn.functional.cross_entropy(self.layers(pictures), labels)

    def validation_step(self, batch: tuple[torch.Tensor, torch.Tensor], number: int) -> None:
        """Log the loss of a batch that is not trained on."""
        self.log("validation", self.training_step(batch, number))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One optimizer for all parameters."""
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    """Train for two epochs, with a validation after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=160)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--cost", type=int, default=40, help="how often a picture is blurred")
    options = parser.parse_args()
    lightning.seed_everything(0)
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        Pictures(options.pictures, options.cost), batch_size=8, shuffle=True, num_workers=options.workers
    )
    validation = torch.utils.data.DataLoader(Pictures(32, 1), batch_size=8)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            default_root_dir=folder,
        )  # fmt: skip
        trainer.fit(Network(), loader, validation)


if __name__ == "__main__":
    main()
