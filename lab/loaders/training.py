"""A training with a DataLoader of one kind: `python training.py CASE mindspore|torch [--cached STAGE ...] [--workers N]`.

`--cached` has a stage (Sampler, Dataset, Collate) hand out what it made first, or the loop (Loop) do nothing but train, `--workers` and `--persistent` are other
arguments of the loader. Prints steps/s behind the first steps, and the share of that time that the loop waited.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import tarfile
import tempfile
import time
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from libraries import of

BATCH, SETTLED, MOST_S = 8, 4, 6.0


class Kind:
    """A case: rows that one function makes of an index, and how the loader is made. Times are of a row, or of a batch."""

    workers, persistent, steps, consume_s, epochs = 0, False, 60, 0.004, 1
    iterable = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prepare()

    def prepare(self) -> None:
        """Write the files that the rows are read from."""

    def row(self, index: int) -> np.ndarray:
        """One row, cheap unless a case says otherwise."""
        return np.full(64, index % 7, np.float32)

    def collate(self, rows: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
        """One batch of rows."""
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def order(self, count: int) -> list[list[int]]:
        """The indices of all batches."""
        numbers = list(range(count))
        random.Random(0).shuffle(numbers)  # noqa: S311
        return [numbers[at : at + BATCH] for at in range(0, count, BATCH)]


def computed(rounds: int, size: int = 2048) -> np.ndarray:
    """Some CPU time, one thread's."""
    values = np.arange(size, dtype=np.float32)
    for _ in range(rounds):
        values = np.sin(values) + 1
    return values[:64]


class ImageFolder(Kind):
    def prepare(self) -> None:
        from PIL import Image

        pixels = np.random.default_rng(0).integers(0, 255, (96, 96, 3), np.uint8)
        for number in range(16):
            Image.fromarray(np.roll(pixels, number, 0)).save(self.folder / f"{number}.png")

    def row(self, index: int) -> np.ndarray:
        from PIL import Image

        picture = Image.open(self.folder / f"{index % 16}.png").resize((64, 64))
        return np.asarray(picture, np.float32).reshape(-1)[:64] / 255


class Parquet(Kind):
    """Hugging Face's datasets over a Parquet file, with a transform of its own."""

    def prepare(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {f"c{number}": np.arange(4096, dtype=np.float32) for number in range(16)}
        pq.write_table(pa.table(columns), self.folder / "rows.parquet", row_group_size=512)
        self.table = self.opened()

    def opened(self):
        import datasets

        datasets.disable_progress_bars()
        table = datasets.Dataset.from_parquet(str(self.folder / "rows.parquet"), cache_dir=str(self.folder))
        return table.with_transform(self.decoded)

    def decoded(self, batch: dict[str, list[float]]) -> dict[str, list[np.ndarray]]:
        columns = np.stack([np.asarray(column, np.float32) for column in batch.values()], 1)
        return {
            "x": [
                np.resize(np.sort(np.outer(row, np.arange(2000, dtype=np.float32)), 1)[:, :4].reshape(-1), 64)
                for row in columns
            ]
        }

    def row(self, index: int) -> np.ndarray:
        return self.table[index % 4096]["x"]


class Tokenizer(Kind):
    """Byte pairs by the tokenizers library, learned in place."""

    text = "the slow stage of a loader is named with its line and what it would buy " * 60

    def prepare(self) -> None:
        from tokenizers import Tokenizer as Trained
        from tokenizers import models, pre_tokenizers, trainers

        self.trained = Trained(models.BPE())
        self.trained.pre_tokenizer = pre_tokenizers.Whitespace()
        self.trained.train_from_iterator([self.text], trainers.BpeTrainer(vocab_size=80, show_progress=False))

    def row(self, _index: int) -> np.ndarray:
        return np.resize(np.array(self.trained.encode(self.text).ids, np.float32), 64)


class Audio(Kind):
    def prepare(self) -> None:
        with wave.open(str(self.folder / "a.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(np.random.default_rng(0).integers(-9000, 9000, 32000, np.int16).tobytes())

    def row(self, _index: int) -> np.ndarray:
        with wave.open(str(self.folder / "a.wav"), "rb") as file:
            sound = np.frombuffer(file.readframes(32000), np.int16).astype(np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(sound, 512)[::256] * np.hanning(512)
        return np.log1p(np.abs(np.fft.rfft(frames)).mean(0))[:64].astype(np.float32)


class VideoFrames(Kind):
    def prepare(self) -> None:
        np.save(self.folder / "v.npy", np.random.default_rng(0).integers(0, 255, (64, 128, 128, 3), np.uint8))

    def row(self, index: int) -> np.ndarray:
        clip = np.load(self.folder / "v.npy", mmap_mode="r")[index % 48 :][:16]
        return clip.astype(np.float32).mean((0, 3)).reshape(-1)[:64]


class TarShards(Kind):
    iterable = True

    def prepare(self) -> None:
        for shard in range(2):
            with tarfile.open(self.folder / f"{shard}.tar", "w") as archive:
                for number in range(256):
                    data = io.BytesIO()
                    np.savez_compressed(data, x=np.random.default_rng(number).random((48, 48), np.float32))
                    entry = tarfile.TarInfo(f"{number}.npz")
                    entry.size = data.tell()
                    data.seek(0)
                    archive.addfile(entry, data)

    def stream(self, worker: int, workers: int):
        for shard in range(2):
            with tarfile.open(self.folder / f"{shard}.tar") as archive:
                for number, entry in enumerate(archive):
                    if number % workers == worker:
                        yield np.load(io.BytesIO(archive.extractfile(entry).read()))["x"].reshape(-1)[:64]


class HeavyCollate(Kind):
    def collate(self, rows: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
        computed(900)
        return super().collate(rows)


class HeavyCollateApart(HeavyCollate):
    workers = 1


class SleepStorage(Kind):
    def row(self, index: int) -> np.ndarray:
        time.sleep(0.005)
        return super().row(index)


class SleepStorageApart(SleepStorage):
    workers = 1


class RateLimited(Kind):
    """Files of a storage that gives so many bytes a second to all that read it together."""

    workers, bytes_per_s = 2, 8e6

    def prepare(self) -> None:
        (self.folder / "shard").write_bytes(bytes(64_000))
        (self.folder / "free").write_text("0")

    def row(self, index: int) -> np.ndarray:
        import fcntl

        with (self.folder / "free").open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            free = max(float(file.read()), time.monotonic()) + 64_000 / self.bytes_per_s
            file.seek(0)
            file.write(repr(free))
            file.truncate()
        time.sleep(max(0.0, free - time.monotonic()))
        return np.frombuffer((self.folder / "shard").read_bytes()[:64], np.uint8).astype(np.float32) + index % 7


class GilThreads(Kind):
    """A row is made by four threads, whose Python keeps each other waiting."""

    def prepare(self) -> None:
        self.threads = ThreadPoolExecutor(4)

    def row(self, index: int) -> np.ndarray:
        parts = list(self.threads.map(self.part, range(index, index + 4)))
        return np.resize(np.array(parts, np.float32), 64)

    def part(self, number: int) -> float:
        return sum(k * number % 7 for k in range(12_000)) % 7


class UnevenRows(Kind):
    workers = 2

    def row(self, index: int) -> np.ndarray:
        time.sleep(0.12 if index % 16 == 0 else 0.001)
        return super().row(index)


class TooManyWorkers(Kind):
    workers = 4

    def row(self, _index: int) -> np.ndarray:
        return computed(200)


class SlowFirstEpoch(Kind):
    epochs, steps = 3, 20

    def prepare(self) -> None:
        self.known: dict[int, np.ndarray] = {}

    def row(self, index: int) -> np.ndarray:
        if index not in self.known:
            time.sleep(0.01)
            self.known[index] = super().row(index)
        return self.known[index]


class ShortEpochs(Kind):
    workers, epochs, steps = 2, 12, 6


class SlowSampler(Kind):
    def order(self, count: int) -> list[list[int]]:
        self.slow = True
        return super().order(count)


class SlowNetwork(Kind):
    workers, consume_s = 1, 0.06

    def row(self, _index: int) -> np.ndarray:
        return computed(20)


CASES = {
    kind.__name__: kind
    for kind in (
        ImageFolder, Parquet, Tokenizer, Audio, VideoFrames, TarShards, HeavyCollate, HeavyCollateApart, SleepStorage,
        SleepStorageApart, RateLimited, GilThreads, UnevenRows, TooManyWorkers, SlowFirstEpoch, ShortEpochs, SlowSampler, SlowNetwork,
    )
}  # fmt: skip


class Once:
    """A function that hands out what it made first."""

    def __init__(self, function) -> None:
        self.function, self.made = function, None

    def __call__(self, *args):
        if self.made is None:
            self.made = self.function(*args)
        return self.made


def main() -> None:
    """Train, and print what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=CASES)
    parser.add_argument("library", choices=("mindspore", "torch"))
    parser.add_argument("--cached", nargs="*", default=[])
    parser.add_argument("--workers", type=int)
    parser.add_argument("--persistent", action="store_true")
    options = parser.parse_args()
    library = of(options.library)
    with tempfile.TemporaryDirectory() as folder:
        kind = CASES[options.case](Path(folder))
        if "Loop" in options.cached:
            kind.consume_s = 0.0
        rows, collate, order = dataset_of(kind, library, options.cached)
        workers = kind.workers if options.workers is None else options.workers
        more = {} if order is None else {"batch_sampler": order}
        more |= {"batch_size": BATCH} if order is None else {}
        more |= {"persistent_workers": True} if options.persistent and workers else {}
        loader = library.DataLoader(rows, num_workers=workers, collate_fn=collate, **more)
        print(json.dumps(trained(kind, loader, library.trainer())))


def dataset_of(kind: Kind, library, cached: list[str]):
    """The dataset, the function that collates and the batches' indices, with what is cached."""
    row, collate = kind.row, kind.collate
    count = BATCH * kind.steps
    order = Batches(kind.order(count), 0.04 if isinstance(kind, SlowSampler) and "Sampler" not in cached else 0.0)
    if "Dataset" in cached:
        row = Once(row)
    if "Collate" in cached:
        collate = Once(collate)
    if not kind.iterable:

        class Rows(library.Dataset):
            def __len__(self) -> int:
                return count

            def __getitem__(self, index):
                return row(index), np.int32(index % 2)

        return Rows(), collate, order

    class Stream(library.IterableDataset):
        def __iter__(self):
            info = library.get_worker_info()
            worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
            made = kind.stream(worker, workers)
            if "Dataset" in cached:
                first = next(made)
                made = (first for _ in range(512 // workers))
            return ((x, np.int32(0)) for x in made)

    return Stream(), collate, None


class Batches:
    """A sampler of batches."""

    def __init__(self, batches: list[list[int]], slow_s: float) -> None:
        self.batches, self.slow_s = batches, slow_s

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self):
        for batch in self.batches:
            if self.slow_s:
                time.sleep(self.slow_s)
            yield batch


def trained(kind: Kind, loader, step) -> dict[str, float]:
    """Steps/s and share of waiting, from the first settled step on."""
    began, waited, steps, started = 0.0, 0.0, 0, time.perf_counter()
    for _ in range(kind.epochs):
        asked = time.perf_counter()
        for x, y in loader:
            got = time.perf_counter()
            if steps == SETTLED:
                began = asked
            if steps >= SETTLED:
                waited += got - asked
            step(x, y)
            time.sleep(kind.consume_s)
            steps += 1
            asked = time.perf_counter()
            if asked - started > MOST_S:
                break
        if asked - started > MOST_S:
            break
    took = time.perf_counter() - began
    return {"rate": (steps - SETTLED) / took, "waits": waited / took, "steps": steps}


if __name__ == "__main__":
    main()
