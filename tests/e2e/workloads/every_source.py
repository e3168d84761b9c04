"""Reads a few rows through every dataset class of MindSpore, one after the other, with a Python map behind each.

Prints one JSON line: `read`, the rows of each class or why it failed, in order, and `known`, the classes there are.
"""

import inspect
import json
import sys
import tempfile
from pathlib import Path

import mindspore.dataset as ds
from mindspore.dataset.engine.datasets import SourceDataset
from source_files import SOURCES

BASES = {"SourceDataset", "MappableDataset"}


def passed_on(column):
    return column


def read(name, folder):
    folder.mkdir()
    data = getattr(ds, name)(**SOURCES[name](folder))
    data = data.map(passed_on, [data.get_col_names()[0]])
    return sum(1 for _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True))


def attempted(name, folder):
    try:
        return read(name, folder)
    except Exception as error:  # noqa: BLE001 - one class that fails must not hide the others
        return str(error)[:300]


def main():
    known = {name for name, kind in vars(ds).items() if inspect.isclass(kind) and issubclass(kind, SourceDataset)}
    with tempfile.TemporaryDirectory() as folder:
        rows = {name: attempted(name, Path(folder, name)) for name in sys.argv[1:] or SOURCES}
    print(json.dumps({"read": rows, "known": sorted(known - BASES)}))


if __name__ == "__main__":
    main()
