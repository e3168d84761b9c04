"""Datasets whose operator NODE can be replaced, each read for two epochs: `python replaced.py [NAME ...]`.

Prints one JSON line: for each dataset its node, the rows, shapes and dtypes of its columns, and how often the
operator's own Python was called.
"""

import json
import sys
import tempfile
from pathlib import Path

import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import text, transforms, vision
from PIL import Image

ROWS, BATCH = 90, 8  # the last batch of an epoch has 2 rows
CALLS = [0]


class Source:
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return np.full((12, 10, 3), index, np.uint8), np.array(index % 5, np.int32)


def called(value):
    CALLS[0] += 1
    return value


def rows_of_a_generator():
    for number in range(ROWS):
        CALLS[0] += 1
        yield np.full(4, number, np.float32), np.array(number, np.int64)


def source(**options):
    return ds.GeneratorDataset(Source(), ["image", "label"], shuffle=False, **options)


def sentences():
    return ds.NumpySlicesDataset({"text": [f"some words {number % 3}" for number in range(ROWS)]}, shuffle=False)


def counted(image, label):
    CALLS[0] += 1
    return image.astype(np.float32), label, np.float32(label)


def mix(images, labels, info):
    CALLS[0] += 1
    return np.stack(images).astype(np.float32) / 255, np.stack(labels)


def python_map(_folder):
    return source().map(lambda x: called(x).astype(np.float32), ["image"]).batch(BATCH)


def several_columns(_folder):
    columns = ["image", "label", "weight"]
    return source().map(counted, ["image", "label"], columns, num_parallel_workers=2).batch(BATCH)


def native_map(_folder):
    steps = [vision.Resize((6, 5)), vision.Normalize([1.0] * 3, [2.0] * 3), vision.HWC2CHW()]
    return source().map(steps, ["image"], num_parallel_workers=2).batch(BATCH)


def mixed_map(_folder):
    return source().map([vision.RandomHorizontalFlip(), called, vision.ToTensor()], ["image"]).batch(BATCH)


def process_map(_folder):
    options = {"python_multiprocessing": True, "num_parallel_workers": 2}
    return source().map(lambda x: called(x).astype(np.float16), ["image"], **options).batch(BATCH)


def decoding_map(folder):
    (folder / "cat").mkdir()
    for number in range(ROWS):
        Image.fromarray(np.full((9, 7, 3), number, np.uint8)).save(folder / "cat" / f"{number:03d}.jpg")
    return ds.ImageFolderDataset(str(folder), shuffle=False).map([vision.Decode(), vision.CenterCrop(6)], ["image"])


def text_map(_folder):
    steps = [text.WhitespaceTokenizer(), text.Lookup(text.Vocab.from_list(["some", "words"]), "some")]
    return sentences().map(steps, ["text"]).batch(BATCH)


def type_map(_folder):
    return source().map(transforms.TypeCast(np.float32), ["label"]).batch(BATCH)


def mixing_batch(_folder):
    columns = {"input_columns": ["image", "label"], "output_columns": ["image", "label"]}
    return source().batch(BATCH, per_batch_map=mix, **columns)


def random_source(_folder):
    return source(num_parallel_workers=2, python_multiprocessing=True).batch(BATCH)


def generator(_folder):
    return ds.GeneratorDataset(rows_of_a_generator, ["x", "y"]).batch(BATCH)


def limited_generator(_folder):
    return ds.GeneratorDataset(rows_of_a_generator, ["x", "y"], num_samples=30).batch(BATCH)


def sharded_source(_folder):
    return source(num_shards=3, shard_id=1).batch(BATCH)


def repeated(_folder):
    return source().map(called, ["image"]).repeat(2).batch(BATCH)


def zipped(_folder):
    parts = source().map(called, ["image"]), sentences()
    return ds.zip(parts).batch(BATCH)


DATASETS = {  # name: what makes it, number of the operator
    "python_map": (python_map, 1),
    "several_columns": (several_columns, 1),
    "native_map": (native_map, 1),
    "mixed_map": (mixed_map, 1),
    "process_map": (process_map, 1),
    "decoding_map": (decoding_map, 0),
    "text_map": (text_map, 1),
    "type_map": (type_map, 1),
    "mixing_batch": (mixing_batch, 0),
    "random_source": (random_source, 1),
    "generator": (generator, 1),
    "limited_generator": (limited_generator, 1),
    "sharded_source": (sharded_source, 1),
    "repeated": (repeated, 2),
    "zipped": (zipped, 2),
}


def read(name, folder):
    make, node = DATASETS[name]
    CALLS[0] = 0
    folder.mkdir()
    seen = [[], []]
    iterator = make(folder).create_tuple_iterator(num_epochs=2, output_numpy=True)
    for epoch in seen:
        epoch.extend([[list(part.shape), str(part.dtype)] for part in row] for row in iterator)
    return {"node": node, "epochs": seen, "calls": CALLS[0]}


def main():
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({name: read(name, Path(folder, name)) for name in sys.argv[1:] or DATASETS}))


if __name__ == "__main__":
    main()
