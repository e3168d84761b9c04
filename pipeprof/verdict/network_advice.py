"""What to do about each limit of the step, in sentences whose numbers were measured or follow from measured ones."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

FEW = 0.10  # a warm-up below this share of the training time is no longer worth a word
PHASE_NAMES = {
    "data_wait": "waiting for data", "forward": "the forward pass", "backward": "the backward pass",
    "optimizer": "the optimizer", "host_gap": "Python and framework code on the host", "other": "other operators",
}  # fmt: skip
RANK_ADVICE = {
    "data_wait": "its input is slower than the others': look at that rank's data pipeline and where it reads from",
    "host_gap": "look for what only it does in the step: logging, checkpoints, evaluation, printing",
    "optimizer": "its operators run slower or on more parameters: compare its share of the parameters and its cores",
    "other": "its operators run slower or on more data: compare batch, input shapes and what else its cores run",
}


def bound(share: float) -> str:
    """The most that taking a part away altogether can bring."""
    if share >= 1:
        return "it is the whole step"
    return f"without it a step is at most {1 / (1 - share):.2f}x as fast"


def compute(share: float, ops: Sequence[Row]) -> list[str]:
    """Suggestions for a step that consists of operators."""
    found = [
        f"make this operator cheaper: {described(op)}; {bound(op['share'])}"
        for op in [op for op in ops if op["phase"] in ("forward", "backward", "other")][:2]
    ]
    found.append(
        "fewer bits (float16 or bfloat16 by mindspore.amp) or a faster device help only here: operators of the forward "
        f"and backward pass are {format_ratio(share)} of the step"
    )
    return found


def communication(share: float, comm: Sequence[Row], overlapped: float, waiting: float | None) -> list[str]:
    """Suggestions for exposed communication."""
    found = []
    if waiting is not None and waiting >= share / 2:
        found.append(
            f"{format_ratio(waiting)} of the step is waiting for another rank, not transfer: first make the ranks "
            "equally fast (equal batches and shapes, no work on one rank only, cores of their own)"
        )
    per_step: dict[str, float] = {}
    for row in comm:
        if row["events_per_step"] is not None and row["kind"] not in ("send", "receive"):
            per_step[row["kind"]] = max(per_step.get(row["kind"], 0.0), row["events_per_step"])
    for kind, events in sorted(per_step.items()):
        if events >= 2:
            found.append(
                f"{events:.0f} {kind} per step: fuse them into fewer, larger ones (graph mode: comm_fusion of "
                "set_auto_parallel_context; by hand: concatenate gradients before reducing them)"
            )
    if overlapped < share:
        found.append(
            "let communication run beside the backward pass: reduce gradients as they become ready; collectives that "
            "block, as on CPU, cannot overlap"
        )
    found.append(
        f"communicate less often: accumulate gradients over several batches, or a larger batch; {bound(share)}"
    )
    return found


def optimizer(share: float, ops: Sequence[Row]) -> list[str]:
    """Suggestions for a step that the optimizer rules."""
    mine = [op for op in ops if op["phase"] == "optimizer"]
    found = [f"the largest of its operators: {described(mine[0])}"] if mine else []
    found.append(
        "update fewer, larger tensors: a fused optimizer, or parameters kept together; or accumulate gradients and "
        f"update less often; {bound(share)}"
    )
    return found


def host_gap(share: float, mode: str | None) -> list[str]:
    """Suggestions for a step in which mostly no operator runs."""
    eager = mode is None or "pynative" in mode.lower()
    found = []
    if eager:
        condition = "" if mode else "if the step runs in PyNative mode: "
        found.append(
            f"{condition}compile the whole step, gradients and optimizer included, with ms.jit, so that Python no "
            "longer launches each operator"
        )
    if not eager:
        found.append("on a device, Model.train with dataset_sink_mode=True runs many steps without returning to Python")
    found += [
        "move Python out of the step: do logging, callbacks, .asnumpy() and float(loss) only every n-th step",
        f"a larger batch spreads the same host time over more rows; {bound(share)}",
    ]
    return found


def imbalance(slow: Row) -> list[str]:
    """Suggestions for one rank that holds the others up."""
    advice = RANK_ADVICE.get(slow["phase"], RANK_ADVICE["other"])
    excess, phase = format_ns(slow["excess_ns"]), PHASE_NAMES[slow["phase"]]
    return [
        f"rank {slow['rank']} works {excess} per step longer than the others, most of it in {phase}: {advice}",
        f"with rank {slow['rank']} as fast as the others a step is at most {1 / (1 - slow['share']):.2f}x as fast",
    ]


def warmup(rows: Sequence[Row]) -> list[str]:
    """Suggestions for a training that is mostly warm-up."""
    found = []
    worst = max(rows, key=lambda row: row["share"])
    if worst["later_steps"]:
        found.append(
            f"{worst['later_steps']} steps behind the first compiled a graph again ({format_ns(worst['later_ns'])}): "
            "keep shapes and types of the inputs fixed (pad, drop_remainder=True), pass tensors instead of Python "
            "numbers, and build cells and jit functions once"
        )
    first = worst["warmup_ns"] - worst["later_ns"]
    if worst["train_mean_ns"]:
        steps = ceil(first * (1 - FEW) / FEW / worst["train_mean_ns"])
        if steps > worst["train_steps"]:
            found.append(
                f"the run is short: the first step costs as much as {first / worst['train_mean_ns']:.0f} others; from "
                f"{steps} steps on it is less than {FEW:.0%} of the training"
            )
    found.append("several short runs of the same graph: keep the compiled graph (jit_config or enable_compile_cache)")
    return found


def growth(ops: Sequence[Row], tested: int) -> list[str]:
    """What growing operators hint at."""
    if len(ops) >= 3 and 2 * len(ops) >= tested:
        return [f"{len(ops)} of {tested} operators take longer from step to step: the machine slows down (load, heat)"]
    found = []
    for op in ops[:3]:
        cause = (
            f"it was seen with {op['shapes']} input shapes: pad or bucket its input"
            if op["shapes"] > 1
            else "its input shapes stay the same: look for what it accumulates or shares"
        )
        found.append(
            f"`{op['name']}` grows by {format_ns(op['slope_ns'])} per step "
            f"({format_ns(op['slope_low_ns'])} to {format_ns(op['slope_high_ns'])}): {cause}"
        )
    return found


def described(op: Row) -> str:
    """One operator in words."""
    shapes = f" on {op['in_shapes']}" if op["in_shapes"] else ""
    name = f" `{op['name']}`" if op["name"] != op["type"] else ""
    return f"{op['type'] or 'operator'}{name}{shapes} ({op['phase']}, {format_ratio(op['share'])} of the step)"
