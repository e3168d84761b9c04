"""Random data in the files that public loaders read."""

from __future__ import annotations

import struct
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

CIFAR_ROWS = 10_000  # in one file; the reader refuses a shorter one
CHANCE = np.random.default_rng(1)


@contextmanager
def folder():
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def pixels(*shape):
    return CHANCE.integers(0, 256, shape, dtype=np.uint8)


def cifar10(path, rows):
    """CIFAR-10's binary form: `rows` random pictures, and zeros up to the length of a whole file."""
    labels = CHANCE.integers(0, 10, (rows, 1), dtype=np.uint8)
    with (path / "data_batch_1.bin").open("wb") as file:
        file.write(np.hstack([labels, pixels(rows, 3072)]).tobytes())
        file.truncate(CIFAR_ROWS * 3073)
    return str(path)


def mnist(path, rows):
    labels = CHANCE.integers(0, 10, rows, dtype=np.uint8)
    head = struct.pack(">4i", 2051, rows, 28, 28)
    (path / "train-images-idx3-ubyte").write_bytes(head + pixels(rows, 28, 28).tobytes())
    (path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, rows) + labels.tobytes())
    return str(path)


def pictures(path, count, size, suffix="jpg"):
    """`count` pictures named 000000.jpg and so on; smooth, as photographs are, so that their files are small."""
    path.mkdir(parents=True)
    for number in range(count):
        coarse = Image.fromarray(pixels(8, 8, 3))
        coarse.resize((size, size), Image.Resampling.BICUBIC).save(path / f"{number:06d}.{suffix}")


def classes(path, *, split, of_each, size):
    """A folder of pictures for each of two classes, as `ImageFolderDataset` and mindcv read them."""
    for name in ("cat", "dog"):
        pictures(path / split / name, of_each, size)
    return str(path)


def boxes(path, count, size):
    """Pictures with a text file of two boxes each, as mindyolo reads them."""
    pictures(path / "images", count, size)
    (path / "labels").mkdir()
    for number in range(count):
        (path / "labels" / f"{number:06d}.txt").write_text("0 0.5 0.5 0.2 0.3\n1 0.3 0.4 0.1 0.1\n", encoding="utf-8")
    return str(path / "images")
