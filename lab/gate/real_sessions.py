"""Real sessions of `pipeprof ab`: identical code, and a map operator that does more.

python lab/gate/real_sessions.py --sessions 30 --out real-sessions.json
python lab/gate/real_sessions.py --sessions 5 --slower 1.1 --out real-slower.json
python lab/gate/real_sessions.py --training network --out real-network.json
python lab/gate/real_sessions.py --training python --slower 1.03 --load --out real-python.json
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from multiprocessing import Process
from pathlib import Path
from random import Random

# Each has one argument, which says how much its map does. Of `python` the instructions of a row decide alone.
TRAININGS = {
    "waits": ("real_training.py", 4.0), "network": ("real_network.py", 200.0), "python": ("real_python.py", 1000.0),
}  # fmt: skip
POLICY = "looks = [5, 8]\n"
POLICIES = {
    "python": 'least_reps = 2\nlooks = [2, 5]\nbudget_s = 600\n[metrics]\ninstructions = "decides"\n'
    'step_time_median = "informs"\ndata_wait = "informs"\npeak_memory = "informs"\n'
}
SPINNERS, LONGEST_S = 3, 15  # of the changing load: at most so many processes, for so long


def changing_load(seed: int) -> None:
    """None to three processes that spin, others every few seconds; until it is ended."""
    random = Random(seed)  # noqa: S311 - a drawn load
    while True:
        spinners = [Process(target=_spin, daemon=True) for _ in range(random.randint(0, SPINNERS))]
        for spinner in spinners:
            spinner.start()
        time.sleep(random.uniform(2, LONGEST_S))
        for spinner in spinners:
            spinner.kill()


def _spin() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        sum(range(100_000))


def session(folder: Path, training: str, slower: float) -> dict[str, object]:
    """One session; what it said."""
    policy = folder / "policy.toml"
    policy.write_text(POLICIES.get(training, POLICY))
    name, work = TRAININGS[training]
    amounts = f"{work:.3f}", f"{work * slower:.4f}"  # equal commands are no two arms, so one has a digit more
    arms = [f"{sys.executable} {Path(__file__).with_name(name)} {text}" for text in amounts]
    sides = ["--base", arms[0], "--new", arms[1]]
    words = ["pipeprof", "ab", *sides, "--policy", str(policy), "-o", str(folder / "ab"), "--format", "json"]
    began, load = time.monotonic(), [os.getloadavg()[0]]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    if not done.stdout:
        return {"verdict": "failed", "why": done.stderr[-500:]}
    content = json.loads(done.stdout)
    kept = ("name", "verdict", "ratio", "ci_low", "ci_high", "p_value", "reps_base")
    metrics = [{name: one[name] for name in kept} for one in content["metrics"] if one["family"] == "primary"]
    kept_session = folder / "ab" / "session.json"
    causes = [f"{one.get('what') or one.get('name')} {one.get('place_new') or ''}" for one in content["explanation"]]
    return {
        "verdict": content["verdict"],
        "headline": content["headline"],
        "seconds": round(time.monotonic() - began, 1),
        "load": [round(one, 1) for one in (*load, os.getloadavg()[0])],
        "causes": causes[:3],
        "metrics": metrics,
        "session": json.loads(kept_session.read_text()) if kept_session.exists() else None,
    }


def main() -> None:
    """Run the sessions one after the other, writing after each."""
    parser = argparse.ArgumentParser(description="Real sessions of the gate.")
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--slower", type=float, default=1.0, metavar="FACTOR")
    parser.add_argument("--training", choices=TRAININGS, default="waits")
    parser.add_argument("--load", action="store_true", help="beside processes that come and go")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the sessions' runs there")
    options = parser.parse_args()
    found: list[dict[str, object]] = []
    if options.load:
        load = Process(target=changing_load, args=(1,))
        load.start()
        atexit.register(load.kill)
    for number in range(options.sessions):
        with tempfile.TemporaryDirectory(prefix="session-") as folder:
            found.append(session(Path(folder), options.training, options.slower))
            if options.keep:
                shutil.copytree(folder, options.keep / str(number))
        options.out.write_text(json.dumps(found, indent=1))
        print(number + 1, found[-1]["verdict"], found[-1].get("headline", found[-1].get("why")), flush=True)
    print(dict(Counter(str(one["verdict"]) for one in found)))


if __name__ == "__main__":
    main()
