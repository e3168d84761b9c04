"""Records one training with `pipeprof collect` and packs the recording.

python tests/real_trainings/record.py --out tests/real_trainings/captures cifar_lambdas jpeg_native
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "accuracy"))

from archive import pack
from catalogue import CASES

from pipeprof.record.run import load
from pipeprof.record.schema import BY_NAME

HERE = Path(__file__).resolve().parent
CAPTURES = HERE / "captures"
LEFT_OUT = {"op", "collective", "memory", "allocation", "span"}  # large, and no rule on the data pipeline reads them
KEPT = tuple(name for name in BY_NAME if name not in LEFT_OUT)
LIMIT_S = 300
SECONDS = 4.0


class FailedError(Exception):
    """The training did not end well, or nothing was recorded."""


def command(name, seconds=SECONDS):
    return [sys.executable, str(HERE / "train.py"), name, "--seconds", str(seconds)]


def record(name, run, seconds=SECONDS):
    """The training under `pipeprof collect`, with default options, into the folder `run`."""
    words = [sys.executable, "-m", "pipeprof", "collect", "-q", "-o", str(run), "--", *command(name, seconds)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise FailedError(f"{name}: exit code {done.returncode}: {done.stderr[-1500:]}")
    return load(run)


def main():
    parser = argparse.ArgumentParser(description="Records trainings of the catalogue.")
    parser.add_argument("names", nargs="*", help="all when none is named")
    parser.add_argument("--out", type=Path, default=CAPTURES)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or [case.name for case in CASES]:
        with tempfile.TemporaryDirectory(prefix="record-") as folder:
            record(name, Path(folder) / "run")
            size = pack(Path(folder) / "run", options.out / f"{name}.tar.xz", KEPT)
        print(f"{name:24} {size / 1024:6.1f} KiB", flush=True)


if __name__ == "__main__":
    main()
