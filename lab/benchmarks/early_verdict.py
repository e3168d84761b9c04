"""How often the verdict on the first steps of a recording is the one on all of it: python lab/benchmarks/early_verdict.py [STEPS | SECONDSs]

Over the labelled recordings that have at least twice as many training steps, or seconds of steps that are no warm-up. The same: equal verdict, and the same
operator. A line for each that differs, then the shares.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "accuracy"))

from archive import unpack
from truncate import first_steps

from pipeprof.query.engine import Engine
from pipeprof.record import store
from pipeprof.record.run import load
from pipeprof.report.diagnosis import judged

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "tests" / "accuracy" / "captures", ROOT / "tests" / "real_trainings" / "captures")


def compared(path: Path, first: str):
    """(name, steps, verdict and operator of the first, of all); None of a recording that is too short."""
    with tempfile.TemporaryDirectory(prefix="early-") as folder:
        unpack(path, Path(folder))
        run = load(folder)
        rows = [row for row in store.read(run, "step").to_pylist() if row["kind"] in ("warmup", "train")]
        trained, steps = len(rows), steps_of(rows, first)
        if steps is None:
            return None
        whole = asked(run)
        first_steps(run, steps)
        return path.name.partition(".")[0], trained, asked(run), whole


def steps_of(rows, first):
    """How many steps to keep; None when there are not twice as many, or as much time."""
    if not first.endswith("s"):
        return int(first) if len(rows) >= 2 * int(first) else None
    train, span = [row for row in rows if row["kind"] == "train"], float(first[:-1]) * 1e9
    if not train or train[-1]["end_ns"] - train[0]["start_ns"] < 2 * span:
        return None
    return sum(row["end_ns"] <= train[0]["start_ns"] + span for row in train)


def asked(run):
    """Verdict, operator and confidence, as a live view would show them."""
    with Engine.open(run) as engine:
        found = judged(engine, run, engine.rows("step/data_wait"), engine.rows("queue/pipelines"))
    return found["verdict"], found["op_id"], found["confidence"]


def main(first: str) -> None:
    """Compare all, and print."""
    for folder in FOLDERS:
        paths = sorted(folder.glob("*.tar.xz"))
        with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
            found = [one for one in pool.map(compared, paths, [first] * len(paths)) if one]
        other = [one for one in found if one[2][:2] != one[3][:2]]
        for name, trained, early, whole in other:
            print(json.dumps({"name": name, "steps": trained, "first": early, "all": whole}))
        verdicts = sum(one[2][0] == one[3][0] for one in found)
        high = [one for one in found if one[2][2] == "high"]
        kept = sum(one[2][:2] == one[3][:2] for one in high)
        print(f"{folder.parent.name}: {len(found)} of {len(paths)} recordings are twice as long; after {first} "
              f"{len(found) - len(other)} have the final verdict and operator, {verdicts} the final verdict; "
              f"of {len(high)} with high confidence {kept}")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "100")
