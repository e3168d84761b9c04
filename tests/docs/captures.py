"""Records the two trainings of docs/tutorial.md and stores them in `captures/`: `python tests/docs/captures.py`.

About two minutes; on a quiet machine, for what it records is what the pages show. `make docs` writes them anew.
With a folder as its argument it stores the runs `slow` and `fast` that are there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from pipeprof.record.schema import BY_NAME

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab" / "accuracy"))
from archive import pack

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SIDES = {"slow": (), "fast": ("--rotation", "built-in")}


def record(folder: Path) -> None:
    """Record both sides as the tutorial says."""
    script = folder / "train.py"
    script.write_bytes((ROOT / "examples" / "tutorial" / "train.py").read_bytes())
    for side, options in SIDES.items():
        command = [sys.executable, "-m", "pipeprof", "collect", "-o", side, "--reps", "5", "--", "python", script.name]
        subprocess.run([*command, *options], cwd=folder, check=True)


def main() -> None:
    """Record, or take what is there, and store it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(place)
        if len(sys.argv) == 1:
            record(folder)
        (HERE / "captures").mkdir(exist_ok=True)
        for side in SIDES:
            print(side, pack(folder / side, HERE / "captures" / f"{side}.tar.xz", tuple(BY_NAME)), "bytes")


if __name__ == "__main__":
    main()
