"""A classifier trained through mindcv's public functions. `python mindcv_training.py folder|cifar10|mixup`."""

from __future__ import annotations

import sys

import mindspore as ms
import written
from mindcv.data import create_dataset, create_loader, create_transforms
from mindcv.loss import create_loss
from mindcv.models import create_model
from mindcv.optim import create_optimizer
from mindcv.utils import StateMonitor, create_trainer
from mindspore.train import LossMonitor, TimeMonitor
from truth import EPOCHS, Marks, tell

BATCH = 8
PIXELS = 64


def loader(path, name, **options):
    if name == "cifar10":
        rows = create_dataset("cifar10", root=written.cifar10(path, 120), num_samples=120)
        transforms = create_transforms("cifar10", image_resize=PIXELS, is_training=True)
    else:
        root = written.classes(path / name, split="train", of_each=60, size=160)
        rows = create_dataset("", root=root, split="train")
        transforms = create_transforms("imagenet", image_resize=PIXELS, is_training=True)
    return create_loader(rows, BATCH, drop_remainder=True, is_training=True, transform=transforms, **options)


def checked(path):
    """A loader for validation."""
    root = written.classes(path / "checked", split="val", of_each=20, size=96)
    transforms = create_transforms("imagenet", image_resize=PIXELS, is_training=False)
    return create_loader(create_dataset("", root=root, split="val", shuffle=False), BATCH, transform=transforms)


def trainer(*, classes, soft):
    network = create_model("squeezenet1_1", num_classes=classes)
    loss = create_loss(name="BCE" if soft else "CE")
    optimizer = create_optimizer(network.trainable_params(), opt="momentum", lr=0.01)
    return network, create_trainer(network, loss, optimizer, {"accuracy"}, "O0", None, loss_scale_type="fixed")


def folder(path):
    """Pictures in folders, transforms in C++, validation after each epoch, and the monitor that writes summaries."""
    data, (_, model) = loader(path, "folder"), trainer(classes=2, soft=False)
    monitor = StateMonitor(
        model, "squeezenet", dataset_sink_mode=False, dataset_val=checked(path), ckpt_save_dir=str(path / "ckpt"),
        summary_dir=str(path / "summary"), log_interval=5,
    )  # fmt: skip
    model.train(EPOCHS, data, callbacks=[monitor, Marks()], dataset_sink_mode=False)


def cifar10(path):
    data, (_, model) = loader(path, "cifar10"), trainer(classes=10, soft=False)
    model.train(EPOCHS, data, callbacks=[LossMonitor(10), TimeMonitor(), Marks()], dataset_sink_mode=False)


def mixup(path):
    """Pictures that are mixed in Python, a batch at a time."""
    data = loader(path, "mixup", mixup=0.2, num_classes=2)
    _, model = trainer(classes=2, soft=True)
    model.train(EPOCHS, data, callbacks=[LossMonitor(10), Marks()], dataset_sink_mode=False)


if __name__ == "__main__":
    ms.set_context(mode=ms.GRAPH_MODE)
    with written.folder() as path:
        {"folder": folder, "cifar10": cifar10, "mixup": mixup}[sys.argv[1]](path)
    tell()
