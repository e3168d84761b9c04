"""Scores causes across ranks on drawn trainings: the first cause against the planted one, and S against the truth.

python lab/accuracy/fleet_score.py --jobs 1000 --seed 100000   through written runs, as a report does
python lab/accuracy/fleet_score.py --jobs 1000 --cause none    healthy jobs
python lab/accuracy/fleet_score.py --jobs 1000 --json          one JSON line for each job

Jobs of a seed are always the same. A new draw takes seeds that nobody has looked at: the rules were fixed before it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet_jobs import CAUSES, Job, draw, write

from pipeprof.query.engine import Engine
from pipeprof.report.ranks import causes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

CODES = {"last_stage": "stage_imbalance"}  # of a planted cause, where it is called otherwise
WHO = ("rank", "stage", "link", "since")


@dataclass(frozen=True)
class Scored:
    """One job: what was planted, what was named first, whether that is right, and how far S is off (0.01 is 1 %)."""

    seed: int
    cause: str
    named: str | None
    right: bool
    s_error: float
    parts_error: float
    cost: float


def score(seed: int, cause: str | None = None) -> Scored:
    """Of the job of a seed; without a cause the seed's place in CAUSES says which one is planted."""
    job = draw(seed, cause or CAUSES[seed % len(CAUSES)])
    with tempfile.TemporaryDirectory() as folder, Engine.open(write(job, Path(folder) / "run")) as engine:
        causes = causes_of(engine)
    assert causes is not None
    first = causes["found"][0] if causes["found"] else None
    slow, truth = causes["slowdown"], job.truth
    if slow is None:
        return Scored(seed, job.cause, causes["why"], False, 1.0, 1.0, truth["cost"])
    parts = [abs(row["s"] / truth[f"stage_{row['stage']}"] - 1) for row in slow["by_stage"]]
    parts += [abs(row["s"] / truth[f"replica_{row['replica']}"] - 1) for row in slow["by_replica"]]
    return Scored(
        seed,
        job.cause,
        first["code"] if first else None,
        _is_right(job, first),
        abs(slow["s"] / truth["slowdown"] - 1),
        max(parts),
        truth["cost"],
    )


def _is_right(job: Job, first: dict[str, Any] | None) -> bool:
    """The cause, and who it is; an onset within one step."""
    if first is None or job.cause == "none":
        return first is None and job.cause == "none"
    if first["code"] != CODES.get(job.cause, job.cause):
        return False
    facts = {name: job.planted[name] for name in WHO if name in job.planted and first.get(name) is not None}
    onset = abs(facts.pop("since", 0) - (first.get("since") or 0)) <= 1
    return onset and all(first[name] == value for name, value in facts.items())


def summary(scored: Sequence[Scored]) -> dict[str, Any]:
    """Counts over all jobs, and the worst errors."""
    healthy = [one for one in scored if one.cause == "none"]
    return {
        "jobs": len(scored),
        "planted": len(scored) - len(healthy),
        "right": sum(one.right for one in scored if one.cause != "none"),
        "healthy": len(healthy),
        "false_causes": sum(not one.right for one in healthy),
        "worst_s_error": max(one.s_error for one in scored),
        "worst_part_error": max(one.parts_error for one in scored),
        "by_cause": {
            cause: f"{sum(one.right for one in scored if one.cause == cause)} of {count}"
            for cause, count in sorted(Counter(one.cause for one in scored).items())
        },
    }


def main() -> int:
    """Prints the summary, and each job that was judged wrongly; 1 when the goals are missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first job")
    parser.add_argument("--cause", choices=CAUSES, help="of all jobs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one line for each job")
    given = parser.parse_args()
    with ProcessPoolExecutor(given.processes) as pool:
        seeds = range(given.seed, given.seed + given.jobs)
        scored = []
        for one in pool.map(score, seeds, [given.cause] * given.jobs, chunksize=8):
            scored.append(one)
            if given.json or not one.right:
                print(json.dumps(asdict(one)), file=sys.stdout if given.json else sys.stderr, flush=True)
    found = summary(scored)
    print(json.dumps(found, indent=2), file=sys.stderr if given.json else sys.stdout)
    missed = found["right"] < 0.95 * found["planted"] or found["false_causes"] > 0.001 * max(found["healthy"], 1)
    return int(missed or found["worst_s_error"] > 0.01)


if __name__ == "__main__":
    sys.exit(main())
