"""Records one training with `pipeprof collect` and packs the recording.

python lab/real_trainings/record.py --out tests/real_trainings/captures cifar_lambdas jpeg_native
python lab/real_trainings/record.py --busy 4      what has a label and is not there yet, beside 4 busy loops for each core
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "accuracy"))

from archive import pack
from catalogue import CASES, find
from quiet import busy_loops

from pipeprof.record.run import load
from pipeprof.record.schema import BY_NAME

HERE = Path(__file__).resolve().parent
STORED = HERE.parents[1] / "tests" / "real_trainings"
CAPTURES = STORED / "captures"
CROWDED = STORED / "crowded"
LEFT_OUT = {"op", "collective", "memory", "allocation", "span"}  # large, and no rule on the data pipeline reads them
KEPT = tuple(name for name in BY_NAME if name not in LEFT_OUT)
LIMIT_S = 300
SECONDS = 4.0


class FailedError(Exception):
    """The training did not end well, or nothing was recorded."""


def command(name, seconds=SECONDS):
    """What runs a training; those of `libraries/` train for as many steps as they have."""
    if script := find(name).script:
        file, *words = script.split()
        return [sys.executable, str(HERE / "libraries" / file), *words]
    return [sys.executable, str(HERE / "train.py"), name, "--seconds", str(seconds)]


def record(name, run, seconds=SECONDS):
    """The training under `pipeprof collect`, with default options, into the folder `run`."""
    words = [sys.executable, "-m", "pipeprof", "collect", "-q", "-o", str(run), "--", *command(name, seconds)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise FailedError(f"{name}: exit code {done.returncode}: {done.stderr[-1500:]}")
    return load(run)


def crowded(factor):
    """Where the recordings beside `factor` busy loops for each core are."""
    return CROWDED / f"x{factor}"


def record_all(names, out):
    """Each training into an archive of its own."""
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="record-") as folder:
            record(name, Path(folder) / "run")
            size = pack(Path(folder) / "run", out / f"{name}.tar.xz", KEPT)
        print(f"{name:24} {size / 1024:6.1f} KiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Records trainings of the catalogue.")
    parser.add_argument("names", nargs="*", help="all when none is named")
    parser.add_argument("--out", type=Path, help="captures/, or crowded/xN with --busy N")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="beside N busy loops for each core")
    options = parser.parse_args()
    out = options.out or (crowded(options.busy) if options.busy else CAPTURES)
    labelled = [path.stem for path in sorted(CAPTURES.glob("*.json"))]
    missing = [name for name in labelled if not (out / f"{name}.tar.xz").exists()]
    names = options.names or (missing if options.busy else [case.name for case in CASES])
    with busy_loops(options.busy * os.cpu_count()):
        record_all(names, out)


if __name__ == "__main__":
    main()
