"""Trainings, and each once more with the advice of its first screen done by hand: what was said, what it brought.

python lab/advice/measure.py            all of them, some 45 minutes
python lab/advice/measure.py 03 15      these
python lab/advice/measure.py --loaders  the twelve with DataLoaders, six of them of PyTorch's (`make test-torch` installs those)

Each is recorded once; then both forms run in turn, without a recorder, twice. The trainings print the seconds of their loop.
`trainings.tar.xz` holds them: `tNN.py` as written, `advised/tNN.py` with what version b496284e5 advised, and what
their author takes for the limit of each (`kinds.txt`). Those of `loaders.tar.xz` print steps/s; they have forms in which
one stage hands out what it made first, too (`tNN_STAGE.py`). t11 calls torchvision's reference script for classification, which
belongs into a folder `tvref` beside it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROUNDS, LIMIT_S = 2, 200
SECONDS, RATE = re.compile(r"loop seconds: ([\d.]+)"), re.compile(r'"rate": ([\d.]+)')
LOADERS = "--loaders"


def seconds(script: Path) -> float:
    """Of the loop of one run, or of one of its steps."""
    done = subprocess.run([sys.executable, script.name], capture_output=True, text=True, check=True, timeout=LIMIT_S,
                          cwd=script.parent)  # fmt: skip
    found = SECONDS.findall(done.stdout)
    return float(found[-1]) if found else 1 / float(RATE.findall(done.stdout)[-1])


def said(script: Path) -> str:
    """The gain on the first screen of a recording."""
    pipeprof, run = [sys.executable, "-m", "pipeprof"], script.with_suffix("")
    subprocess.run([*pipeprof, "collect", "-q", "-o", run, "--", sys.executable, script.name], capture_output=True,
                   check=True, timeout=LIMIT_S, cwd=script.parent)  # fmt: skip
    shown = subprocess.run([*pipeprof, "report", run], capture_output=True, text=True, check=True)
    found = re.search(r"^Gain: +(.*?)^(?:Also|Confidence):", shown.stdout, re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) if found else "nothing"


def main(names: list[str]) -> None:
    """Print a line for each training."""
    of_loaders, names = LOADERS in names, [name for name in names if name != LOADERS]
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(HERE / ("loaders.tar.xz" if of_loaders else "trainings.tar.xz")) as archive:
            archive.extractall(folder, filter="data")
        for script in sorted(Path(folder).glob("t[0-9][0-9].py")):
            if names and script.stem[1:] not in names:
                continue
            promise, advised = said(script), script.parent / "advised" / script.name
            pairs = [(seconds(advised), seconds(script)) for _ in range(ROUNDS)]
            times = sum(before for _, before in pairs) / sum(after for after, _ in pairs)
            print(f"{script.stem}  measured {times:.2f}  said: {promise}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
