"""A training on files of a storage that hands out so many bytes a second; what is cached can be chosen.

With --s3 the files are read from the bucket `rows` of a server, which is as slow as it is. Reading and preparing sleep, so that what limits is the same on a busy machine. Each of VARIANTS is trained for, one after
the other, and its speed printed as JSON: `full`, `share:0.5` (half of the rows in memory), `source`, `decode`, `crop` and
`batch` (all rows in memory as they are behind that operator), `fetch` (nothing is prepared).
"""

import argparse
import json
import time
from pathlib import Path

import mindspore.dataset as ds
import numpy as np

AFTER = ("source", "decode", "crop", "batch")


class Files:
    """Rows from files, read at a limited rate, or from a server; `share` of them are in memory."""

    def __init__(self, folder: Path, rate: float, share: float, server: str | None) -> None:
        self.paths = sorted(folder.glob("*.bin"))
        self.rate, self.bucket = rate, server and bucket_of(server)
        self.memory = {
            number: path.read_bytes() for number, path in enumerate(self.paths) if number % 4 < round(4 * share)
        }

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[np.ndarray]:
        data = self.memory.get(int(index))
        if data is None and self.bucket:
            data = self.bucket.Object(self.paths[index].name).get()["Body"].read()
        elif data is None:
            data = self.paths[index].read_bytes()
            time.sleep(len(data) / self.rate)
        return (np.frombuffer(data, np.uint8),)


def bucket_of(server: str):
    """The bucket `rows` of an S3 server, as boto3 has it."""
    import boto3

    return boto3.resource(
        "s3",
        endpoint_url=server,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",  # noqa: S106 - any will do
    ).Bucket("rows")


class Kept:
    """Rows that were made before."""

    def __init__(self, rows: list[np.ndarray]) -> None:
        self.rows = rows

    def __iter__(self):
        return ((row,) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def pipeline(wish: argparse.Namespace, variant: str) -> ds.Dataset:
    """Read, decode (rows grow), crop (rows shrink), batch; what is cached neither reads nor prepares."""
    pause = 0.0 if variant == "fetch" else 1e-3
    share = float(variant.partition(":")[2]) if variant.startswith("share") else 0.0

    def decode(row: np.ndarray) -> np.ndarray:
        time.sleep(wish.decode_ms * pause)
        return np.repeat(row, wish.grow)

    def crop(row: np.ndarray) -> np.ndarray:
        time.sleep(wish.crop_ms * pause)
        return row[: len(row) // wish.shrink].copy()

    ds.config.set_prefetch_size(2)
    if variant in AFTER:
        rows = [np.frombuffer(path.read_bytes(), np.uint8) for path in sorted(wish.folder.glob("*.bin"))]
        kept = AFTER.index(variant)
        rows = [np.repeat(row, wish.grow) for row in rows] if kept > 0 else rows
        rows = [row[: len(row) // wish.shrink].copy() for row in rows] if kept > 1 else rows
        if kept > 2:
            rows = [np.stack(rows[at : at + wish.batch]) for at in range(0, len(rows), wish.batch)]
        data = ds.GeneratorDataset(Kept(rows), ["row"], shuffle=False)
    else:
        kept = 0
        source = Files(wish.folder, wish.rate * 1e6, share, wish.s3)
        data = ds.GeneratorDataset(
            source, ["row"], shuffle=False, num_parallel_workers=wish.readers, python_multiprocessing=False
        )
    if kept < AFTER.index("decode"):
        data = data.map(decode, ["row"], num_parallel_workers=wish.decoders)
    if kept < AFTER.index("crop"):
        data = data.map(crop, ["row"], num_parallel_workers=1)
    return data if kept == AFTER.index("batch") else data.batch(wish.batch, drop_remainder=True)


def speed(wish: argparse.Namespace, variant: str) -> dict[str, float]:
    """Steps/s and the share of the time spent waiting, from the second epoch on."""
    batches = pipeline(wish, variant).create_tuple_iterator(num_epochs=wish.epochs, output_numpy=True)
    waited = steps = 0
    began = 0.0
    for epoch in range(wish.epochs):
        asked = time.perf_counter()
        for _batch in batches:
            if epoch:
                began = began or asked
                waited += time.perf_counter() - asked
                steps += 1
            time.sleep(wish.step_ms / 1e3)
            asked = time.perf_counter()
    span = asked - began
    return {"steps_s": steps / span, "wait": waited / span}


def main() -> None:
    """Train: a step is a sleep of so many milliseconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("variants", nargs="*", default=["full"])
    parser.add_argument("--rate", type=float, default=4.0, help="MB/s of one reader")
    parser.add_argument("--s3", metavar="URL", help="of an S3 server that has the files, too")
    parser.add_argument("--decode-ms", type=float, default=2.0)
    parser.add_argument("--crop-ms", type=float, default=1.0)
    parser.add_argument("--step-ms", type=float, default=10.0)
    parser.add_argument("--readers", type=int, default=1)
    parser.add_argument("--decoders", type=int, default=1)
    parser.add_argument("--grow", type=int, default=4)
    parser.add_argument("--shrink", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=3)
    wish = parser.parse_args()
    print(json.dumps({variant: speed(wish, variant) for variant in wish.variants}))


if __name__ == "__main__":
    main()
