"""The DataLoaders of MindSpore and PyTorch, which are of one shape, each with a network to train: `of("torch")`.

`of("torchdata")` is torch with torchdata's StatefulDataLoader.
"""

from __future__ import annotations

from types import SimpleNamespace


def of(library):
    """DataLoader, Dataset, IterableDataset and get_worker_info of a library; what else a script needs with them.

    `generator(seed)` draws the order of rows, `plain(part)` makes lists of a tensor, `train(x, y)` of a `trainer()` is a
    step, and gives the loss.
    """
    made = _mindspore() if library == "mindspore" else _torch()
    if library == "torchdata":
        from torchdata.stateful_dataloader import StatefulDataLoader

        made.DataLoader = StatefulDataLoader
    return made


def _mindspore():
    import mindspore as ms
    import numpy as np
    import parts
    from mindspore.dataset import dataloader

    def trainer():
        parts.pynative()
        ms.set_seed(1)
        made = parts.Trainer()
        return lambda x, y: float(made.step(ms.Tensor(x), ms.Tensor(y)))

    return _kind(
        dataloader, trainer, np.random.default_rng, lambda part: part.asnumpy() if isinstance(part, ms.Tensor) else part
    )


def _torch():
    import torch
    from torch.utils import data

    def trainer():
        torch.manual_seed(1)
        network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01)

        def train(x, y):
            loss = torch.nn.functional.cross_entropy(network(torch.as_tensor(x)), torch.as_tensor(y).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()

        return train

    return _kind(
        data,
        trainer,
        lambda seed: torch.Generator().manual_seed(seed),
        lambda part: part.numpy() if isinstance(part, torch.Tensor) else part,
    )


def _kind(module, trainer, generator, plain):
    names = ("DataLoader", "Dataset", "IterableDataset", "get_worker_info")
    return SimpleNamespace(
        trainer=trainer, generator=generator, plain=plain, **{name: getattr(module, name) for name in names}
    )
