"""`pipeprof demo`: a real training with a planted bottleneck, its report, the fix, and the proof."""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PLANTED = "mask_from_storage"
STEPS = 150
SHORTEST_S = 3.0


def run_demo(folder: Path, seconds: int) -> int:
    """Run both trainings and tell the story on stdout; 0 when the planted operator was named and its fix confirmed.

    Raises UsageError when MindSpore is not installed.
    """
    if importlib.util.find_spec("mindspore") is None:
        raise UsageError("the demo trains with MindSpore, which is not installed", "pip install 'pipeprof[mindspore]'")
    began = time.monotonic()
    _say(
        "A small CNN learns to tell two kinds of synthetic pictures apart, with MindSpore on this machine's CPU. "
        f"In its data pipeline one operator was made slow on purpose: `{PLANTED}` waits 2 ms for every picture, "
        "as it would for a slow disk. pipeprof does not know that."
    )
    slow = _train(folder / "slow", "1/4  Train with the planted bottleneck", "map", seconds * 0.4)
    _head("2/4  What pipeprof sees")
    _explain(slow)
    spent = time.monotonic() - began
    left = max(SHORTEST_S, seconds - spent - _outside_training(slow))
    fixed = _train(folder / "fixed", "3/4  Apply the fix: read the mask once, keep it in memory", "none", left)
    _head("4/4  Side by side")
    named = slow["diagnosis"]["op_name"] == PLANTED
    confirmed = _compare(slow, fixed)
    _farewell(folder, time.monotonic() - began)
    if not named:
        other = slow["diagnosis"]["op_name"] or "none"
        _say(f"The planted operator was not named: found {other}. The machine may be very busy.")
    return 0 if named and confirmed else 1


def _train(path: Path, title: str, slow: str, seconds: float) -> dict[str, Any]:
    _head(title)
    script = [sys.executable, "-m", "pipeprof.experiment.workload", "--slow", slow, "--steps", str(STEPS)]
    limit = max(SHORTEST_S, seconds)
    shown = ["pipeprof", "collect", "-o", str(path), "--", "python", *script[1:]]
    print(f"$ {shlex.join(shown)}", flush=True)
    command = [sys.executable, "-m", "pipeprof", "collect", "-o", str(path), "--force", "-q", "--", *script]
    done = subprocess.run([*command, "--seconds", f"{limit:.1f}"], check=False)
    if done.returncode:
        raise UsageError(f"the demo's training ended with exit code {done.returncode}", "its messages are above")
    content = _report(path)
    steps = sum(row["steps"] for row in content["steps"]["summary"])
    if steps < STEPS:
        _say(f"This machine is busy: the training was stopped after {steps} of {STEPS} steps to stay in time.")
    return content


def _report(path: Path) -> dict[str, Any]:
    """The run's report, as any program would get it."""
    command = [sys.executable, "-m", "pipeprof", "report", str(path), "--format", "json"]
    content: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return content


def _explain(content: dict[str, Any]) -> None:
    found = content["diagnosis"]
    step = _median_step(content)
    print(f"  median step      {format_ns(step)}")
    _aside("the usual time of one training step, from the end of the one before to its own end")
    print(f"  data wait        {format_ratio(found['data_wait_share'])} of the step time")
    _aside("time the training stood still in the dataset iterator; above 20 % it pays to look at the pipeline")
    print("  queues           " + "  ->  ".join(_queues(content)))
    _aside("each operator, and how full the queue behind it was; full before and empty behind means: too slow")
    print(f"  bottleneck       {found['op_type']} `{found['op_name']}` (confidence: {found['confidence']})")
    _aside("the operator where the fill drops; with service times it is: " + _service(content))
    for item in found["suggestions"]:
        print(textwrap.fill("try              " + item["text"], 100, initial_indent="  ", subsequent_indent=" " * 19))


def _queues(content: dict[str, Any]) -> list[str]:
    ops = _main_pipeline(content).get("ops", [])
    return [
        f"{op['name'] or op['op_type']} {format_ratio(op['queue']['mean_ratio'])}"
        for op in sorted(ops, key=lambda op: -op["op_id"])
        if op["queue"]
    ]


def _service(content: dict[str, Any]) -> str:
    timed = [op for op in _main_pipeline(content).get("ops", []) if op["service"]]
    slowest = max(timed, key=lambda op: op["service"]["work_per_batch_ns"], default=None)
    if slowest is None:
        return "not measured"
    name = slowest["name"] or slowest["op_type"]
    return f"{format_ns(slowest['service']['work_per_batch_ns'])} of work for a batch in `{name}`"


def _main_pipeline(content: dict[str, Any]) -> dict[str, Any]:
    training = [row for row in content["pipeline"]["pipelines"] if row["role"] == "train"]
    return max(training, key=lambda row: row["wait_ns"], default={})


def _compare(slow: dict[str, Any], fixed: dict[str, Any]) -> bool:
    before, after = _median_step(slow), _median_step(fixed)
    waits = [content["diagnosis"]["data_wait_share"] for content in (slow, fixed)]
    rows = [
        ("", "slow", "fixed"),
        ("median step", format_ns(before), format_ns(after)),
        ("data wait", format_ratio(waits[0]), format_ratio(waits[1])),
        (
            "bottleneck",
            slow["diagnosis"]["op_name"] or "-",
            fixed["diagnosis"]["op_name"] or fixed["diagnosis"]["op_type"] or "none",
        ),
        ("work for a batch", _slowest_work(slow), _slowest_work(fixed)),
    ]
    for name, one, other in rows:
        print(f"  {name:<18}{one:>22}{other:>22}")
    if after < before:
        _say(
            f"The fix is confirmed: a step takes {after / before:.2f} of the time it took, "
            f"that is {before / after:.1f} times as fast."
        )
        return True
    _say("The fix is not confirmed: the step did not get faster. The machine may be very busy.")
    return False


def _slowest_work(content: dict[str, Any]) -> str:
    work = [op["service"]["work_per_batch_ns"] for op in _main_pipeline(content).get("ops", []) if op["service"]]
    return format_ns(max(work, default=None))


def _median_step(content: dict[str, Any]) -> float:
    rows = [row for row in content["steps"]["summary"] if row["kind"] == "train"]
    return float(rows[0]["median_ns"]) if rows else float("nan")


def _outside_training(content: dict[str, Any]) -> float:
    """Seconds of a run that were not training: start, import, compilation, writing."""
    rep = content["run"]["reps"][0]
    steady = sum(row["dur_ns"] for row in content["steps"]["stages"] if row["stage"] == "steady")
    return float(rep["dur_ns"] - steady) / 1e9 + 2.0


def _farewell(folder: Path, seconds: float) -> None:
    slow, fixed = (shlex.quote(str(folder / name)) for name in ("slow", "fixed"))
    print(f"\nBoth runs are yours to explore ({seconds:.0f} s in all):")
    lines: Sequence[tuple[str, str]] = (
        (f"pipeprof report {slow}", "everything that was measured"),
        (f"pipeprof ops {fixed}", "the operators of the network"),
        (f'pipeprof sql {slow} "FROM stage"', "the tables behind it"),
        (f"pipeprof compare {slow} {fixed}", "the gate: one repetition of each is too few for a verdict"),
        ("pipeprof ab --base-ref main -- python train.py", "your own change, measured until it is sure"),
        ("pipeprof collect -- python train.py", "your own training"),
    )
    width = max(len(command) for command, _ in lines)
    for command, what in lines:
        print(f"  {command:<{width}}   # {what}")


def _head(title: str) -> None:
    print(f"\n== {title}", flush=True)


def _say(text: str) -> None:
    print("\n" + textwrap.fill(text, 100), flush=True)


def _aside(text: str) -> None:
    print(textwrap.fill(text, 100, initial_indent=" " * 19 + "(", subsequent_indent=" " * 20) + ")")
