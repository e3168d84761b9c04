"""The files that the trainings read, made once and kept in a folder of the machine's temporary directory.

Contents are drawn from a fixed seed. A few rows are drawn and repeated: what a reader or a decoder does with a row does
not depend on the others.
"""

import json
import os
import shutil
import struct
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "e2e" / "workloads"))

from source_files import checksum

ROOT = Path(os.environ.get("PIPEPROF_REAL_FILES") or Path(tempfile.gettempdir()) / "pipeprof-real-trainings")
VERSION = 2
CLASSES = 10
DISTINCT = 64
WORDS = [f"word{number}" for number in range(500)]


def once(name, write):
    """The folder of that name, filled by `write(folder)` if nobody has filled it yet."""
    folder = ROOT / f"{name}-{VERSION}"
    if folder.exists():
        return folder
    ROOT.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=ROOT, prefix=f".{name}-"))
    write(temporary)
    try:
        temporary.rename(folder)
    except OSError:  # another training was faster
        shutil.rmtree(temporary)
    return folder


def draw():
    return np.random.default_rng(7)


def pixels(side, channels=3):
    """A picture with coarse structure, so that a JPEG of it is as large as a photograph's."""
    coarse = draw().integers(0, 255, (max(1, side // 8), max(1, side // 8), channels), np.uint8)
    smooth = np.asarray(Image.fromarray(coarse.squeeze()).resize((side, side), Image.Resampling.BILINEAR))
    noise = draw().integers(-12, 12, smooth.shape)
    return np.clip(smooth.astype(int) + noise, 0, 255).astype(np.uint8)


def cifar():
    """CIFAR-10's binary format, 10,000 rows."""

    def write(folder):
        rows = draw().integers(0, 256, (10_000, 1 + 3 * 32 * 32), np.uint8)
        rows[:, 0] %= CLASSES
        (folder / "data_batch_1.bin").write_bytes(rows.tobytes())

    return str(once("cifar", write))


def mnist():
    """MNIST's format, 20,000 rows."""

    def write(folder):
        rows = 20_000
        images, labels = draw().integers(0, 256, (rows, 28, 28), np.uint8), draw().integers(0, CLASSES, rows, np.uint8)
        head = struct.pack(">4i", 2051, rows, 28, 28)
        (folder / "train-images-idx3-ubyte").write_bytes(head + images.tobytes())
        (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, rows) + labels.tobytes())

    return str(once("mnist", write))


def jpegs(side=160, rows=1200):
    """A folder for each class with JPEG files."""

    def write(folder):
        for number in range(rows):
            place = folder / f"class{number % CLASSES}"
            place.mkdir(exist_ok=True)
            first = folder / f"class{number % CLASSES}" / f"{number % DISTINCT:05d}.jpg"
            path = place / f"{number:05d}.jpg"
            if first.exists():
                shutil.copy(first, path)
            else:
                Image.fromarray(np.roll(pixels(side), number, 0)).save(path, quality=90)

    return str(once(f"jpegs-{side}-{rows}", write))


def records(kind, rows, fields, row):
    """A MindRecord file: `fields` is its schema, `row(number)` gives a row."""

    def write(folder):
        from mindspore.mindrecord import FileWriter

        writer = FileWriter(str(folder / "rows.mindrecord"), 1)
        writer.add_schema(fields, kind)
        known = [row(number) for number in range(DISTINCT)]
        writer.write_raw_data([known[number % DISTINCT] for number in range(rows)])
        writer.commit()

    return str(once(f"mindrecord-{kind}-{rows}", write) / "rows.mindrecord")


def encoded(side=128):
    """One JPEG as bytes."""
    import io

    data = io.BytesIO()
    Image.fromarray(pixels(side)).save(data, "JPEG", quality=90)
    return data.getvalue()


def tf_records(length=256, rows=6000):
    """TFRecord examples of `length` floats `x` and an integer `y`; returns (file, schema)."""

    def size(number):
        found = b""
        while number > 0x7F:
            found, number = found + bytes([number & 0x7F | 0x80]), number >> 7
        return found + bytes([number])

    def field(number, value):
        return bytes([number << 3 | 2]) + size(len(value)) + value

    def example(values, label):
        floats = field(2, field(1, values.tobytes()))
        integer = field(3, field(1, bytes([label])))
        features = field(1, field(1, b"x") + field(2, floats)) + field(1, field(1, b"y") + field(2, integer))
        return field(1, features)

    def write(folder):
        known = []
        for number in range(DISTINCT):
            data = example(draw().random(length, np.float32) + number, number % CLASSES)
            head = struct.pack("<Q", len(data))
            known.append(head + checksum(head) + data + checksum(data))
        (folder / "rows.tfrecord").write_bytes(b"".join(known[number % DISTINCT] for number in range(rows)))
        columns = {
            "x": {"type": "float32", "rank": 1, "shape": [length]},
            "y": {"type": "int64", "rank": 0, "shape": []},
        }
        schema = {"datasetType": "TF", "numRows": rows, "columns": columns}
        (folder / "schema.json").write_text(json.dumps(schema), encoding="utf-8")

    folder = once(f"tfrecord-{length}-{rows}", write)
    return str(folder / "rows.tfrecord"), str(folder / "schema.json")


def table(columns=16, rows=20_000):
    """A CSV file of numbers; the last column is the class."""

    def write(folder):
        values = draw().random((rows, columns))
        lines = (",".join(f"{value:.5f}" for value in row) + f",{n % CLASSES}" for n, row in enumerate(values))
        (folder / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    return str(once(f"csv-{columns}-{rows}", write) / "rows.csv")


def sentences(length=40, rows=20_000):
    """A text file, one sentence of `length` words in a line."""

    def write(folder):
        picks = draw().integers(0, len(WORDS), (rows, length))
        lines = (" ".join(WORDS[pick] for pick in row) for row in picks)
        (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    return str(once(f"text-{length}-{rows}", write) / "text.txt")


def sounds(rows=600, length=16_000):
    """WAV files of a second, in a folder for each of two words."""

    def write(folder):
        for word in ("yes", "no"):
            (folder / word).mkdir()
        for number in range(rows):
            samples = (draw().standard_normal(length) * 3000 + number % DISTINCT).astype(np.int16)
            with wave.open(str(folder / ("yes", "no")[number % 2] / f"{number}_nohash_0.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16_000)
                file.writeframes(samples.tobytes())

    return str(once(f"sounds-{rows}-{length}", write))


def arrays(rows=64, shape=(8, 128, 128)):
    """A file of large arrays in NumPy's format."""

    def write(folder):
        np.save(folder / "arrays.npy", draw().random((rows, *shape), np.float32))

    name = "x".join(map(str, shape))
    return str(once(f"arrays-{rows}-{name}", write) / "arrays.npy")
