"""Trainings on records, tables and text: MindRecord, TFRecord, CSV, sentences."""

import files
import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import text, transforms, vision

LENGTH = 40
IDS = {word: number for number, word in enumerate(files.WORDS)}


def standardised(values):
    """A row to mean 0 and deviation 1, in plain Python."""
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5 or 1.0
    return np.array([(value - mean) / deviation for value in values], np.float32)


def stacked(*columns):
    return np.stack(columns[:-1]).astype(np.float32), np.int32(columns[-1])


def numbered(line):
    """Words to numbers, in plain Python."""
    found = [IDS.get(word, 0) for word in str(line).split(" ")][:LENGTH]
    return np.array(found + [0] * (LENGTH - len(found)), np.int32)


def long_enough(line):
    return len(str(line)) > 10


def record_pictures():
    path = files.records(
        "pictures", 3000, {"x": {"type": "bytes"}, "y": {"type": "int32"}},
        lambda number: {"x": files.encoded(), "y": number % files.CLASSES},
    )  # fmt: skip
    steps = [vision.Decode(), vision.Resize((64, 64)), vision.Normalize([120.0] * 3, [60.0] * 3), vision.HWC2CHW()]
    return ds.MindDataset(path, ["x", "y"], shuffle=False).map(steps, ["x"], num_parallel_workers=1).batch(32)


def vectors():
    fields = {"x": {"type": "float32", "shape": [256]}, "y": {"type": "int32"}}
    rows = np.random.default_rng(3).random((files.DISTINCT, 256), np.float32)
    return files.records("vectors", 12_000, fields, lambda number: {"x": rows[number], "y": number % files.CLASSES})


def record_vectors():
    return ds.MindDataset(vectors(), ["x", "y"]).batch(64, drop_remainder=True)


def record_shards():
    data = ds.MindDataset(vectors(), ["x", "y"], num_shards=2, shard_id=0)
    return data.map(standardised, ["x"], num_parallel_workers=1).batch(32, drop_remainder=True)


def tensor_records():
    path, schema = files.tf_records()
    data = ds.TFRecordDataset(path, schema, shuffle=False, num_parallel_workers=1)
    return data.map(transforms.TypeCast(np.int32), ["y"])


def tensor_records_native():
    return tensor_records().map(transforms.TypeCast(np.float32), ["x"]).batch(64, drop_remainder=True)


def tensor_records_python():
    return tensor_records().map(standardised, ["x"], num_parallel_workers=2).batch(32, drop_remainder=True)


def csv_rows():
    names = [f"c{number}" for number in range(17)]
    data = ds.CSVDataset(files.table(), column_defaults=[0.0] * 16 + [0], column_names=names, shuffle=False)
    return data.map(stacked, names, ["x", "y"], num_parallel_workers=1).batch(64, drop_remainder=True)


def lines():
    data = ds.TextFileDataset(files.sentences(), shuffle=False)
    labels = ds.NumpySlicesDataset({"y": np.arange(20_000, dtype=np.int32) % files.CLASSES}, shuffle=False)
    return data, labels


def text_native():
    data, labels = lines()
    steps = [text.WhitespaceTokenizer(), text.Lookup(text.Vocab.from_list(files.WORDS), files.WORDS[0])]
    return ds.zip((data.map(steps, ["text"], num_parallel_workers=1), labels)).batch(32, drop_remainder=True)


def text_python():
    data, labels = lines()
    return ds.zip((data.map(numbered, ["text"], num_parallel_workers=1), labels)).batch(64, drop_remainder=True)


def text_pieces():
    data, labels = lines()
    known = text.Vocab.from_list([*files.WORDS, "[UNK]"])
    steps = [text.BertTokenizer(known, lower_case=True), text.Lookup(known, "[UNK]")]
    return ds.zip((data.map(steps, ["text"], num_parallel_workers=2), labels)).batch(32, drop_remainder=True)


def text_filtered():
    data, labels = lines()
    data = ds.zip((data, labels)).filter(long_enough, ["text"])
    return data.map(numbered, ["text"], num_parallel_workers=2).batch(32, drop_remainder=True)
