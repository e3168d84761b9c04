"""The DataLoaders of MindSpore and PyTorch, which are of one shape, each with a network to train."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

NAMES = ("DataLoader", "Dataset", "IterableDataset", "get_worker_info")


def of(library: str) -> Any:
    """What a training needs of a library; `trainer()` gives a function that trains a step."""
    module, trainer = (_torch if library == "torch" else _mindspore)()
    return SimpleNamespace(trainer=trainer, **{name: getattr(module, name) for name in NAMES})


def _mindspore() -> Any:
    import mindspore as ms
    from mindspore import nn
    from mindspore.dataset import dataloader

    def trainer() -> Any:
        ms.set_context(mode=ms.PYNATIVE_MODE)
        network, loss = nn.Dense(64, 2), nn.CrossEntropyLoss()
        optimizer = nn.SGD(network.trainable_params(), 0.01)
        gradients = ms.value_and_grad(lambda x, y: loss(network(x), y), None, optimizer.parameters)

        def step(x: Any, y: Any) -> None:
            _, found = gradients(ms.Tensor(x), ms.Tensor(y))
            optimizer(found)

        return step

    return dataloader, trainer


def _torch() -> Any:
    import torch
    from torch.utils import data

    def trainer() -> Any:
        torch.set_num_threads(1)
        network = torch.nn.Linear(64, 2)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01)

        def step(x: Any, y: Any) -> None:
            loss = torch.nn.functional.cross_entropy(network(torch.as_tensor(x)), torch.as_tensor(y).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    return data, trainer
