"""How many requests questions over runs in object storage cost, counted at moto's S3 server, and their CPU seconds.

python lab/benchmarks/bucket_cost.py --runs 200

Complete runs of one to three ranks (fleet_runs.py) are compacted and pushed below one prefix. Each question is a process
of its own: the first reads every run, the second finds what is kept of them, the third has one run more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fleet_runs import make_fleet
from pyarrow import fs
from ranks_cost import cost

from pipeprof.record.compact import compact
from pipeprof.record.run import load

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from object_server import object_server

BUCKET = "bench"
VERBS = ("fleet", "runs", "history")


def pushed(folder, url_of):
    """Push every complete run of a folder but the last below a prefix. Returns the words that push the last one."""
    words = []
    for manifest in sorted(folder.rglob("run.json")):
        try:
            state = load(manifest.parent).manifest.state
        except Exception:  # noqa: BLE001, S112 - some are damaged on purpose
            continue
        if state == "complete":
            compact(manifest.parent)
            words.append(["push", "-q", manifest.parent, url_of(f"runs/{manifest.parent.name}")])
    for number, one in enumerate(words[:-1], 1):
        subprocess.run([sys.executable, "-m", "pipeprof", *map(str, one)], check=True)
        print(f"{number} pushed", end="\r", file=sys.stderr)
    return len(words) - 1, words[-1]


def asked(server, url, verb, when, runs):
    """Ask once, and print how many requests of each kind that took."""
    before = len(server.requests())
    used = cost(verb, url, "--format", "json")
    kinds = Counter("list" if "list-type" in path else method for method, path in server.requests()[before:])
    said = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{verb:8} {when:26} {runs:6,} runs {used[0]:7.2f} CPU s {used[1]:6.0f} MiB  {said}", flush=True)


def main():
    """Make and push the runs, and print a line for each question."""
    given = argparse.ArgumentParser()
    given.add_argument("--runs", type=int, default=200)
    runs = given.parse_args().runs
    os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "sec" + "ret"}
    with tempfile.TemporaryDirectory() as place, object_server(Path(place)) as server:
        os.environ["XDG_CACHE_HOME"] = f"{place}/cache"
        fs.S3FileSystem(
            endpoint_override=server.address, scheme="http", region="us-east-1", allow_bucket_creation=True
        ).create_dir(BUCKET)

        def url_of(path):
            return f"s3://{BUCKET}/{path}?endpoint_override=http://{server.address}&region=us-east-1"

        make_fleet(Path(place) / "fleet", runs)
        there, last = pushed(Path(place) / "fleet", url_of)
        time.sleep(61)  # a run whose manifest is younger than a minute is asked again
        for verb in VERBS:
            asked(server, url_of("runs"), verb, "nothing is kept", there)
        for verb in VERBS:
            asked(server, url_of("runs"), verb, "again", there)
        cost(*last)
        for verb in VERBS:
            asked(server, url_of("runs"), verb, "with one run more", there + 1)


if __name__ == "__main__":
    main()
