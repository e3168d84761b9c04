"""Trainings with DataLoaders, labelled by intervention, against what pipeprof says of them.

python lab/loaders/label.py                       all but those that are held out
python lab/loaders/label.py --held-out            the third that is drawn for the end
python lab/loaders/label.py ImageFolder/torch     these
python lab/loaders/label.py --any-load            on a busy machine: such labels are listed, and do not count

Each training runs as it is, and with each stage handing out what it made first, in alternation. The stage without which it
is fastest limits; where that brings less than 10 %, the training itself does. Where the training is said to limit, it does,
too, if it is as much faster when its loop does nothing else. Rates are the script's own, by a stopwatch.
There is no label where some pairs of runs say that a stage limits and others that it does not, where plain runs differ by
more than a third, nor beside other programs.
Results are JSON lines in `--results` (default: results.jsonl here); what is there is not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "accuracy"))

from quiet import BusyError, Neighbours, wait_until_quiet
from training import CASES, SlowSampler

HERE = Path(__file__).parent
STAGES = ("Dataset", "Collate")
ROUNDS, LEAST, STEADY = 2, 1.10, 1 / 3
QUIET_CORES = 0.3  # of other programs, over all runs of a training
LIMIT_S = 300
SAME = 0.8  # of the pairs


def held_out(name: str) -> bool:
    """Every third by its digest: drawn, not chosen."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0


def train(name: str, *words: str) -> dict[str, float]:
    """A run as it is, without a recorder."""
    case, library = name.split("/")
    command = [sys.executable, str(HERE / "training.py"), case, library, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S, cwd=HERE)
    return json.loads(done.stdout.splitlines()[-1])


def recorded(name: str) -> dict[str, object]:
    """What the report on a recording says: cause, stage, confidence, advice with its gain, and the wait."""
    case, library = name.split("/")
    pipeprof = [sys.executable, "-m", "pipeprof"]
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        command = [sys.executable, "training.py", case, library]
        collected = subprocess.run([*pipeprof, "collect", "-q", "-o", run, "--", *command],
                                   capture_output=True, text=True, check=True, timeout=LIMIT_S, cwd=HERE)  # fmt: skip
        said = subprocess.run([*pipeprof, "report", run, "--format", "json"],
                              capture_output=True, text=True, check=True, timeout=LIMIT_S, cwd=HERE)  # fmt: skip
    report, own = json.loads(said.stdout), json.loads(collected.stdout.splitlines()[-1])
    lead = (report["verdict"]["causes"] or [{"code": "none", "stage": None, "confidence": None}])[0]
    kept = ("code", "new", "gain", "gain_low", "gain_high")
    advice = [
        {key: one[key] for key in kept} | {"persistent": one["facts"].get("persistent")}
        for one in report["diagnosis"]["suggestions"]
        if one["code"].startswith("loader_") and one["gain_high"]
    ]
    return {
        "code": lead["code"], "stage": (lead["stage"] or {}).get("op_type"), "confidence": lead["confidence"],
        "advice": advice, "wait": report["diagnosis"]["data_wait_share_all_steps"], "stopwatch": own["waits"],
        "steps": own["steps"], "steps_seen": sum(row["steps"] for row in report["steps"]["summary"]),
    }  # fmt: skip


def label(name: str, known: dict | None) -> dict[str, object]:
    """Everything that is measured of a training; of one that is known only the arms that it lacks, beside it as it is."""
    kind, beside = CASES[name.partition("/")[0]], Neighbours()
    arms = {"plain": (), "Loop": ("--cached", "Loop"), **{stage: ("--cached", stage) for stage in STAGES}}
    if kind is SlowSampler:  # the others order their rows once, before the first step
        arms["Sampler"] = ("--cached", "Sampler")
    if kind.workers:
        arms["start-up"] = ("--persistent",)
    rates: dict[str, list[float]] = {arm: [] for arm in arms} | (known["rates"] if known else {})
    arms = {arm: words for arm, words in arms.items() if arm == "plain" or not rates[arm]}
    for number in range(ROUNDS):
        for arm in list(arms) if number % 2 == 0 else list(reversed(arms)):
            rates[arm].append(train(name, *arms[arm])["rate"])
    if known:
        return known | {"rates": rates, "beside": max(known["beside"], beside.cores())}
    said = recorded(name)
    first = said["advice"][0] if said["advice"] else None
    if first is not None:
        words = ["--workers", str(first["new"])] if first["code"] == "loader_workers" else []
        words += ["--persistent"] if first["persistent"] or not words else []
        pairs = [(train(name)["rate"], train(name, *words)["rate"]) for _ in range(ROUNDS)]
        first["measured"] = statistics.median(b / a for a, b in pairs)
    return {"name": name, "rates": rates, "said": said, "beside": beside.cores()}


def limit_of(rates: dict[str, list[float]]) -> tuple[str, dict[str, float]]:
    """The stage that limits by the interventions, or the training, and what each brings."""
    plain = statistics.median(rates["plain"])
    gains = {arm: statistics.median(values) / plain for arm, values in rates.items() if arm != "plain"}
    best = max((arm for arm in gains if arm != "Loop"), key=lambda arm: gains[arm])
    return (best if gains[best] >= LEAST else "training"), gains


def is_right(row: dict) -> bool:
    """Whether the stage that was named limits; or the training does, as much as any stage: a tenth less is the same."""
    (limit, gains), answer = limit_of(row["rates"]), answer_of(row["said"])
    beside = answer == "training" and gains.get("Loop", 0.0) * LEAST >= gains.get(limit, LEAST)
    return answer == limit or beside


def is_told(rates: dict[str, list[float]]) -> bool:
    """Whether nearly all pairs of a plain run and one without the stage that limits most say the same of it."""
    _limit, gains = limit_of(rates)
    best = max((arm for arm in gains if arm != "Loop"), key=lambda arm: gains[arm])
    pairs = [without / plain >= LEAST for without in rates[best] for plain in rates["plain"]]
    return sum(fast is (gains[best] >= LEAST) for fast in pairs) >= SAME * len(pairs)


def answer_of(said: dict[str, object]) -> str:
    """What pipeprof says limits, in the words of the labels."""
    first = next(iter(said["advice"]), None)
    if first is not None and first["code"] == "loader_persistent":
        return "start-up"
    if said["code"] != "input_bound":
        return "training"
    return str(said["stage"])


def score(rows: list[dict]) -> None:
    """A table, and how often the answer is right."""
    counted = [row for row in rows if is_steady(row)]
    for row in rows:
        print(line(row))
    right = sum(map(is_right, counted))
    sure = [row for row in counted if row["said"]["confidence"] == "high"]
    wrong = sum(not is_right(row) for row in sure)
    inside = [fits for row in counted if (fits := fits_of(row)) is not None]
    print(f"{right} of {len(counted)} right, {wrong} of {len(sure)} with high confidence wrong, "
          f"{sum(inside)} of {len(inside)} gains inside; {len(rows) - len(counted)} do not count")  # fmt: skip


def fits_of(row: dict) -> bool | None:
    """Whether the gain of the advice was measured inside its interval; None without advice."""
    first = next(iter(row["said"]["advice"]), None)
    return None if first is None else first["gain_low"] <= first["measured"] <= first["gain_high"]


def line(row: dict) -> str:
    """One training: its label, what was said, the wait and the steps against the stopwatch, and the gain."""
    (limit, gains), said, first = limit_of(row["rates"]), row["said"], next(iter(row["said"]["advice"]), None)
    answer, gain = answer_of(said), ""
    if first is not None:
        gain = f"{first['gain_low']:.2f} to {first['gain_high']:.2f}, measured {first['measured']:.2f}"
    words = (
        "right" if is_right(row) else "WRONG", row["name"], f"{limit}: said {answer} ({said['confidence']})",
        f"wait {said['wait']:.2f} of {said['stopwatch']:.2f}, steps {said['steps_seen']} of {said['steps']}",
        " ".join(f"{arm} x{value:.2f}" for arm, value in gains.items()), gain,
        "" if is_steady(row) else f"does not count: {row['beside']:.1f} cores of other programs, or unlike rates",
    )  # fmt: skip
    return " | ".join(filter(None, words))


def is_steady(row: dict) -> bool:
    """Whether its runs say the same, on a machine that did nothing else."""
    plain = row["rates"]["plain"]
    is_alike = min(plain) >= (1 - STEADY) * max(plain)
    return is_alike and is_told(row["rates"]) and row["beside"] <= QUIET_CORES


def main() -> None:
    """Label what has no label yet, and score all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--any-load", action="store_true")
    parser.add_argument("--results", type=Path, default=HERE / "results.jsonl")
    options = parser.parse_args()
    libraries = [name for name in ("mindspore", "torch") if find_spec(name)]
    every = [f"{case}/{library}" for case in CASES for library in libraries]
    wanted = options.names or [name for name in every if held_out(name) is options.held_out]
    rows = {}
    if options.results.exists():
        rows = {row["name"]: row for row in map(json.loads, options.results.read_text("utf-8").splitlines())}
    for name in wanted:
        known = rows.get(name)
        if known and not options.names:
            continue
        try:
            if not options.any_load:
                wait_until_quiet()
            rows[name] = label(name, known)
        except BusyError as error:
            sys.exit(f"the machine is not quiet: {error}")
        except subprocess.SubprocessError as error:
            print(name, "failed:", getattr(error, "stderr", "") or error, file=sys.stderr)
            continue
        options.results.write_text("".join(json.dumps(row) + "\n" for row in rows.values()), "utf-8")
        score([rows[name]])
    score([rows[name] for name in wanted if name in rows])


if __name__ == "__main__":
    main()
