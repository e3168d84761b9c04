"""Records our own workloads and appends them to baselines/, one job after the other.

    python tools/record_baselines.py --jobs 8 --reps 3

Where a CI system names the job, that is its name, and one job is recorded. Else each round gets a name of its own, as
CI would give it: on one machine that stays up, rounds differ less than jobs do (baselines/README.md).

A baseline says which revision it is of, so only a tree without changes is recorded, and baselines/ itself changes when
the last job is done, not before.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from pipeprof.collect.fingerprint import CI_JOBS, git_state

ROOT = Path(__file__).resolve().parents[1]
NEXT = ROOT / ".benchmarks" / "baselines"  # git ignores it
RANKS = ["msrun", "--worker_num=2", "--local_worker_num=2", "--join=True", "--log_dir=.benchmarks/msrun"]
TRAININGS = {
    "demo": ["python", "-m", "pipeprof.experiment.workload", "--steps", "150"],
    "two-ranks": [*RANKS, "tools/train_in_ranks.py", "--parallel", "--steps", "150"],
}
BENCHMARK, BENCHMARKS = "import", "tests/benchmarks/test_bench_import.py"
WORKLOADS = (*TRAININGS, BENCHMARK)


def main() -> int:
    """The exit code: of the first command that failed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--reps", type=int, default=3, help="repetitions of each workload in a job")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two jobs")
    parser.add_argument("--root", type=Path, default=ROOT / "baselines")
    parser.add_argument("--anew", action="store_true", help="forget the jobs recorded before, of this machine's class")
    parser.add_argument("--workload", choices=WORKLOADS, nargs="*", default=list(WORKLOADS))
    wishes = parser.parse_args()
    state = git_state(str(ROOT))
    if state is None or state["dirty"] is not False:
        sys.exit("record_baselines: the tree has changes, or no revision; a baseline is of one: commit or stash first")
    shutil.rmtree(NEXT, ignore_errors=True)
    if wishes.root.exists():
        shutil.copytree(wishes.root, NEXT)
    code = jobs(wishes)
    if code:
        print(
            f"record_baselines: a job failed; {wishes.root} is as it was, the jobs before are in {NEXT}",
            file=sys.stderr,
        )
    else:
        shutil.copytree(NEXT, wishes.root, dirs_exist_ok=True)
    return code


def jobs(wishes: argparse.Namespace) -> int:
    """Record every job into `NEXT`; the exit code of what failed, else 0."""
    named = any(os.environ.get(names[0]) for names in CI_JOBS)
    for number in range(1 if named else wishes.jobs):
        if number:
            time.sleep(wishes.pause)
        job = {} if named else {"CI_JOB_ID": f"record-baselines-{time.time_ns()}"}
        for workload in wishes.workload:
            code = record(workload, wishes.reps, os.environ | job, anew=wishes.anew and not number)
            if code:
                return code
    return 0


def record(workload: str, reps: int, environment: dict[str, str], *, anew: bool) -> int:
    """Append `reps` repetitions of a workload to its baseline, or begin it with them.

    Returns the exit code of what failed, else 0.
    """
    bin_first = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment = environment | {"PATH": bin_first}
    run = f".benchmarks/{workload}"  # within the tree: a baseline keeps this name
    shutil.rmtree(ROOT / run, ignore_errors=True)
    if workload == BENCHMARK:
        (ROOT / run).mkdir(parents=True)
        words = [sys.executable, "-m", "pytest", "-q", "-n", "0", BENCHMARKS, "--benchmark-enable"]
        commands = [[*words, f"--benchmark-json={run}/{rep}.json"] for rep in range(reps)]
    else:
        commands = [["pipeprof", "collect", "-o", run, "--reps", str(reps), "--", *TRAININGS[workload]]]
    keep = ["pipeprof", "baseline", "write", run, "--workload", workload, "--root", str(NEXT)]
    commands.append([*keep, *(["--force"] if anew else ["--append", "--restart", "--keep-jobs", "20"])])
    for command in commands:
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
