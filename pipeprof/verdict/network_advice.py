"""What to do about each limit of the step: sentences with measured numbers, and the most that each can bring."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

COMPILED = "Gradients/"  # so begin names of backward operators in a compiled step, also under jit in PyNative mode
COMPILES = 0.3  # of the warm-up spent compiling: from here on a compile cache is worth a word
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


class Advice(NamedTuple):
    """What to do, and the share of the step that it can take away at most; None where that is not known."""

    text: str
    share: float | None = None


def stated(item: Advice) -> str:
    """The advice with the most that it can bring."""
    return item.text if item.share is None else f"{item.text}; {bound(item.share)}"


def bound(share: float) -> str:
    """The most that taking a part away altogether can bring."""
    if share >= 1:
        return "it is the whole step"
    return f"a step is at most {1 / (1 - share):.2f}x as fast"


def advise(found: dict[str, Any], comm: Sequence[Row], mode: str | None) -> None:
    """Advice on the limit, then on what is nearly as large; on each first what can bring most."""
    for limit in found["candidates"]:
        found["actions"] += sorted(_advice_on(limit, found, comm, mode), key=lambda item: -(item.share or 0.0))
    slow = found["slowest_rank"]
    if slow is not None and "imbalance" not in found["candidates"]:
        found["actions"] += imbalance(slow)
    if any(row["kind"] in ("send", "receive") for row in comm):
        found["confidence"] = "low"
        found["doubts"].append({"code": "pipeline_parallel"})
        found["actions"].append(Advice("ranks send to each other: in pipeline parallelism ranks differ by design"))


def _advice_on(limit: str, found: Row, comm: Sequence[Row], mode: str | None) -> list[Advice]:
    share, shares, ops = found["weights"][limit], found["shares"], found["top_ops"]
    if limit == "imbalance":
        return imbalance(found["slowest_rank"])
    if limit == "communication":
        return communication(share, comm, shares["communication_overlapped"], found["waiting_share"])
    if limit == "optimizer":
        return optimizer(share, ops)
    if limit == "host_gap":
        compiled = any(str(op["name"]).startswith(COMPILED) for op in ops)
        return host_gap(share, "graph" if compiled else mode)
    return compute(share, found["top_types"], ops)


def compute(share: float, types: Sequence[Row], ops: Sequence[Row]) -> list[Advice]:
    """Suggestions for a step that consists of operators: types before single ones."""
    phases = ("forward", "backward", "other")
    mine = [op for op in ops if op["phase"] in phases]
    found = [Advice(_cheaper(kind, mine), kind["share"]) for kind in types if kind["phase"] in phases][:2]
    single = [op for op in mine if not any(kind["type"] == op["type"] for kind in types)]
    found += [Advice(f"make this operator cheaper: {described(op)}", op["share"]) for op in single[: 2 - len(found)]]
    found.append(
        Advice(
            "compute with fewer bits (float16 or bfloat16 by mindspore.amp), or on a faster device: operators of the "
            f"forward and backward pass are {format_ratio(share)} of the step"
        )
    )
    return found


def _cheaper(kind: Row, ops: Sequence[Row]) -> str:
    """Fewer or cheaper operators of a type; of several the largest is named."""
    per_step = kind["count_per_step"]
    many = per_step >= 1.5
    what = f"{per_step:,.0f} {kind['type']} per step" if many else f"`{kind['type']}`"
    largest = next((op for op in ops if (op["type"], op["phase"]) == (kind["type"], kind["phase"])), None)
    named = largest is not None and (largest["in_shapes"] or largest["name"] != kind["type"])
    which = f"; the largest: {described(largest)}" if largest is not None and named else ""
    phase = "" if kind["phase"] == "other" else f", {kind['phase']}"
    if many:
        return (
            f"use fewer or cheaper {kind['type']}, such as fused ones on larger tensors: {what} take "
            f"{format_ratio(kind['share'])} of it{phase}{which}"
        )
    return f"make {what} cheaper: {format_ratio(kind['share'])} of the step{phase}{which}"


def communication(share: float, comm: Sequence[Row], overlapped: float, waiting: float | None) -> list[Advice]:
    """Suggestions for exposed communication."""
    found = []
    if waiting is not None and waiting >= share / 2:
        found.append(
            Advice(
                "make the ranks equally fast (equal batches and shapes, no work on one rank only, cores of their own): "
                f"{format_ratio(waiting)} of the step is waiting for another rank, not transfer",
                waiting,
            )
        )
    per_step: dict[str, float] = {}
    for row in comm:
        if row["events_per_step"] is not None and row["kind"] not in ("send", "receive"):
            per_step[row["kind"]] = max(per_step.get(row["kind"], 0.0), row["events_per_step"])
    found += [
        Advice(
            f"fuse the {events:.0f} {kind} per step into fewer, larger ones (graph mode: comm_fusion of "
            "set_auto_parallel_context; by hand: concatenate gradients before reducing them)"
        )
        for kind, events in sorted(per_step.items())
        if events >= 2
    ]
    if overlapped < share:
        found.append(
            Advice(
                "overlap communication with the backward pass: reduce gradients as they become ready; collectives that "
                "block, as on CPU, cannot overlap"
            )
        )
    found.append(Advice("communicate less often: accumulate gradients over several batches, or a larger batch", share))
    return found


def optimizer(share: float, ops: Sequence[Row]) -> list[Advice]:
    """Suggestions for a step that the optimizer rules."""
    mine = [op for op in ops if op["phase"] == "optimizer"]
    found = [
        Advice(
            "update fewer, larger tensors: a fused optimizer, or parameters kept together; or accumulate gradients and "
            "update less often",
            share,
        )
    ]
    found += [Advice(f"the largest of its operators: {described(op)}") for op in mine[:1]]
    return found


def host_gap(share: float, mode: str | None) -> list[Advice]:
    """Suggestions for a step in which mostly no operator runs."""
    eager = mode is None or "pynative" in mode.lower()
    found = []
    if eager:
        condition = "" if mode else "if the step runs in PyNative mode: "
        found.append(
            Advice(
                f"{condition}compile the whole step, gradients and optimizer included, with ms.jit, so that Python no "
                "longer launches each operator",
                share,
            )
        )
    else:
        found.append(
            Advice("on a device, Model.train with dataset_sink_mode=True runs many steps without returning to Python")
        )
    found += [
        Advice("move Python out of the step: logging, callbacks, .asnumpy() and float(loss) only every n-th step"),
        Advice("a larger batch spreads the same host time over more rows"),
    ]
    return found


def imbalance(slow: Row) -> list[Advice]:
    """Suggestions for one rank that holds the others up."""
    advice = RANK_ADVICE.get(slow["phase"], RANK_ADVICE["other"])
    excess, phase = format_ns(slow["excess_ns"]), PHASE_NAMES[slow["phase"]]
    text = f"rank {slow['rank']} works {excess} per step longer than the others, most of it in {phase}: {advice}"
    return [Advice(text, slow["share"])]


def warmup(rows: Sequence[Row]) -> list[Advice]:
    """Suggestions for a training that is mostly warm-up."""
    found = []
    worst = max(rows, key=lambda row: row["share"])
    if worst["later_steps"]:
        found.append(
            Advice(
                "keep shapes and types of the inputs fixed (pad, drop_remainder=True), pass tensors instead of Python "
                f"numbers, and build cells and jit functions once: {worst['later_steps']} steps behind the first "
                f"compiled a graph again ({format_ns(worst['later_ns'])})"
            )
        )
    first = worst["warmup_ns"] - worst["later_ns"]
    if worst["train_mean_ns"]:
        steps = ceil(first * (1 - FEW) / FEW / worst["train_mean_ns"])
        if steps > worst["train_steps"]:
            found.append(
                Advice(
                    f"train longer: the first step costs as much as {first / worst['train_mean_ns']:.0f} others; from "
                    f"{steps} steps on it is less than {FEW:.0%} of the training"
                )
            )
    if worst["compile_ns"] >= COMPILES * worst["warmup_ns"]:
        found.append(Advice("for several short runs of the same graph, keep it compiled (enable_compile_cache)"))
    return found


def growth(ops: Sequence[Row], tested: int) -> list[Advice]:
    """What growing operators hint at."""
    if len(ops) >= 3 and 2 * len(ops) >= tested:
        text = f"{len(ops)} of {tested} operators take longer from step to step: the machine slows down (load, heat)"
        return [Advice(text)]
    found = []
    for op in ops[:3]:
        cause = (
            f"it was seen with {op['shapes']} input shapes: pad or bucket its input"
            if op["shapes"] > 1
            else "its input shapes stay the same: look for what it accumulates or shares"
        )
        slope = f"{format_ns(op['slope_low_ns'])} to {format_ns(op['slope_high_ns'])}"
        found.append(Advice(f"`{op['name']}` grows by {format_ns(op['slope_ns'])} per step ({slope}): {cause}"))
    return found


def described(op: Row) -> str:
    """One operator in words."""
    shapes = f" on {op['in_shapes']}" if op["in_shapes"] else ""
    name = f" `{op['name']}`" if op["name"] != op["type"] else ""
    return f"{op['type'] or 'operator'}{name}{shapes} ({op['phase']}, {format_ratio(op['share'])} of the step)"
