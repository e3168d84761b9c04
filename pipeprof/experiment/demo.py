"""`pipeprof demo`: a real training with a planted bottleneck, its report, the fix, and the proof."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from pipeprof.errors import UsageError
from pipeprof.escape import shell_word
from pipeprof.units import format_ns, format_ratio, percent

PLANTED = "mask_from_storage"
STEPS = 120
SHORTEST_S = 3.0
WAIT_MS = 5.0  # for each picture on a quiet machine: 80 ms for a batch, where the training needs some 10 ms
MOST_CROWDED = 12  # where it would be a second for a batch
FASTER = 0.9  # of the step before: what is nearer to it may be chance
WIDTH = 80
# With `-m` alone Python would take a `pipeprof.py` of the current folder for this program; 3.10 has no `-P`.
SAFELY = ("-P", "-m") if sys.version_info >= (3, 11) else ("-m",)
OURS = (sys.executable, *SAFELY, "pipeprof")


def run_demo(folder: Path, seconds: int) -> int:
    """Run both trainings and tell the story on stdout; 0 when the planted operator was named and its fix confirmed.

    Raises UsageError when MindSpore is not installed, and where Python would run another `pipeprof`.
    """
    if importlib.util.find_spec("mindspore") is None:
        raise UsageError("the demo trains with MindSpore, which is not installed", "pip install 'pipeprof[mindspore]'")
    _refuse_another_pipeprof()
    began = time.monotonic()
    wait_ms = WAIT_MS * _crowd()
    _say(
        "A small CNN learns to tell two kinds of synthetic pictures apart, with MindSpore on this machine's CPU. One "
        f"operator of its data pipeline was made slow on purpose: `{PLANTED}` waits {wait_ms:.0f} ms for every "
        "picture, as it would for a slow disk. pipeprof does not know that."
    )
    slow = _train(folder / "slow", "1/4  Train with the planted bottleneck", "map", seconds * 0.4, wait_ms)
    _head("2/4  What pipeprof sees")
    _explain(folder / "slow", slow)
    spent = time.monotonic() - began
    left = max(SHORTEST_S, seconds - spent - _outside_training(slow))
    fixed = _train(folder / "fixed", "3/4  Apply the fix: read the mask once, keep it in memory", "none", left, wait_ms)
    _head("4/4  Side by side")
    named = (slow["verdict"]["causes"][0]["stage"] or {}).get("name") == PLANTED
    confirmed = _compare(slow, fixed)
    _farewell(folder, time.monotonic() - began)
    if not named:
        _say(f"The bottleneck that was found is not `{PLANTED}`, which was planted. The machine may be very busy.")
    return 0 if named and confirmed else 1


def _refuse_another_pipeprof() -> None:
    """Raises UsageError where Python looks into the current folder first, and finds another program there."""
    for name in ("pipeprof.py", "pipeprof"):
        if "-P" not in SAFELY and Path(name).exists() and Path(name).resolve() != Path(__file__).parents[1]:
            raise UsageError(f"the current folder has a `{name}`, which Python would run", "start it in another folder")


def _crowd() -> int:
    """How many processes share a core here: a wait that the training would not notice beside them is no bottleneck."""
    return min(MOST_CROWDED, max(1, round(os.getloadavg()[0] / (os.cpu_count() or 1))))


def _train(path: Path, title: str, slow: str, seconds: float, wait_ms: float) -> dict[str, Any]:
    _head(title)
    script = [*SAFELY, "pipeprof.experiment.workload", "--slow", slow, "--steps", str(STEPS)]
    if wait_ms != WAIT_MS:
        script += ["--wait-ms", f"{wait_ms:.0f}"]
    limit = max(SHORTEST_S, seconds)
    print(
        f"$ pipeprof collect -o {shell_word(str(path))} -- \\\n    python {' '.join(map(shell_word, script))}",
        flush=True,
    )
    command = [*OURS, "collect", "-o", str(path), "--force", "-q", "--", sys.executable]
    done = subprocess.run([*command, *script, "--seconds", f"{limit:.1f}"], check=False)
    if done.returncode:
        raise UsageError(f"the demo's training ended with exit code {done.returncode}", "its messages are above")
    content = _report(path)
    steps = sum(row["steps"] for row in content["steps"]["summary"])
    if steps < STEPS:
        _say(f"This machine is busy: the training was stopped after {steps} of {STEPS} steps to stay in time.")
    return content


def _report(path: Path) -> dict[str, Any]:
    """Report of the run as JSON content."""
    command = [*OURS, "report", str(path), "--format", "json"]
    content: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return content


def _explain(path: Path, content: dict[str, Any]) -> None:
    """What the operators did, then what the report says of it."""
    stages = _stages(content)
    print("  Each operator, from the source on, with the fill of the queue behind it:")
    print(f"  {'':<22}{'queue':>8}{'work per batch':>17}{'workers':>10}{'utilisation':>13}")
    for row in sorted(stages, key=lambda row: -row["op_id"]):
        cells = (format_ratio(row["output_ratio"]), format_ns(row["work_ns"]), row["workers"])
        print(f"  {_label(row):<22}{cells[0]:>8}{cells[1]:>17}{cells[2]:>10}{format_ratio(_utilisation(row)):>13}")
    said = "utilisation: work per batch x batches per second / workers; the one nearest 100 % limits"
    print(textwrap.fill(said, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6))
    print(f"\n$ pipeprof report {shell_word(str(path))}", flush=True)
    subprocess.run([*OURS, "report", str(path)], check=True)


def _stages(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The operators of the pipeline that the training waits for longest, as the diagnosis has them."""
    training = [row for row in content["pipeline"]["pipelines"] if row["role"] == "train"]
    main = max(training, key=lambda row: row["wait_ns"], default={"pipeline_key": None})["pipeline_key"]
    return [row for row in content["pipeline"]["load"] if row["pipeline_key"] == main and row["op_id"] >= 0]


def _utilisation(row: dict[str, Any]) -> float | None:
    """At most all of the time, also where the training used up what was prepared before."""
    return None if row["utilisation"] is None else min(1.0, row["utilisation"])


def _label(row: dict[str, Any]) -> str:
    return str(row["name"] or row["op_type"])


def _compare(slow: dict[str, Any], fixed: dict[str, Any]) -> bool:
    before, after = _step(slow, "median_ns"), _step(fixed, "median_ns")
    diagnoses = slow["diagnosis"], fixed["diagnosis"]
    rows = [
        ("", "slow", "fixed"),
        ("median step", format_ns(before), format_ns(after)),
        (
            "waiting for data, steady state",
            *(format_ratio(one["data_wait_share"]) for one in diagnoses),
        ),
        ("bottleneck of the pipeline", *(str(one["op_name"] or one["op_type"] or "none") for one in diagnoses)),
        ("work of the mask per batch", *_mask_work(slow, fixed)),
    ]
    for name, one, other in rows:
        print(f"  {name:<28}{one:>20}{other:>20}")
    if before is not None and after is not None and after < before * FASTER:
        slower, faster = _step(slow, "mean_ns"), _step(fixed, "mean_ns")
        on_average = f" in the median, {slower / faster:.1f} times on average" if slower and faster else ""
        _say(f"The fix is confirmed: a training step is {before / after:.1f} times as fast{on_average}.")
        return True
    _say(f"The fix is not confirmed: a step did not get {percent(1 - FASTER)} shorter. The machine may be very busy.")
    return False


def _mask_work(slow: dict[str, Any], fixed: dict[str, Any]) -> tuple[str, str]:
    """Work for a batch of the planted operator, and of the one that stands in its place after the fix."""
    op_id = next((row["op_id"] for row in _stages(slow) if row["name"] == PLANTED), None)
    works = [[row["work_ns"] for row in _stages(side) if row["op_id"] == op_id] for side in (slow, fixed)]
    one, other = (format_ns(times[0]) if times else "-" for times in works)
    return one, other


def _step(content: dict[str, Any], figure: str) -> float | None:
    """A figure of the training steps; None when the training was stopped in its warm-up."""
    found = [row.get(figure) for row in content["steps"]["summary"] if row["kind"] == "train"]
    return float(found[0]) if found and found[0] is not None else None


def _outside_training(content: dict[str, Any]) -> float:
    """Seconds of a run that were not training: start, import, compilation, writing."""
    rep = content["run"]["reps"][0]
    steady = sum(row["dur_ns"] for row in content["steps"]["stages"] if row["stage"] == "steady")
    return float(rep["dur_ns"] - steady) / 1e9 + 2.0


def _farewell(folder: Path, seconds: float) -> None:
    slow, fixed = (shell_word(str(folder / name)) for name in ("slow", "fixed"))
    print(f"\nAll of this took {seconds:.0f} s. What to type next:")
    lines = (
        (f"pipeprof report {slow}", "what limits it, and what to do"),
        (f"pipeprof ops {fixed}", "the operators of the network"),
        (f'pipeprof sql {slow} "FROM stage"', "the tables behind it"),
        (f"pipeprof compare {slow} {fixed}", "the gate; one repetition of each is too few for a verdict"),
        ("pipeprof ab --base-ref main -- python train.py", "your own change, measured until it is sure"),
        ("pipeprof collect -- python train.py", "your own training"),
    )
    for command, what in lines:
        print(f"  {command}\n      # {what}")


def _head(title: str) -> None:
    print(f"\n== {title}", flush=True)


def _say(text: str) -> None:
    print("\n" + textwrap.fill(text, WIDTH), flush=True)
