"""What to do about each limit of the step: codes with measured numbers, and the most that each can bring."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.rows import CommSummary, WarmupShare

    Row = Mapping[str, Any]

COMPUTING = ("forward", "backward", "other")  # phases
COMPILERS = {"pynative": "ms.jit", "eager": "torch.compile"}  # by the mode in which Python launches each operator
COMPILED = "Gradients/"  # so begin names of backward operators in a compiled step, also under jit in PyNative mode
COMPILES = 0.3  # of the warm-up spent compiling: from here on a compile cache is worth a word
FEW = 0.10  # a warm-up below this share of the training time is no longer worth a word
SHORT_OP_NS = 50_000  # of a device: to launch an operator from Python costs some 10 to 50 us
MANY = 1.5  # executions per step from which an operator type is several operators
COPY = re.compile("_?(memcpy|copy(?!sign)|to_copy|tensormove)", re.IGNORECASE)  # so begin types that only move bytes
WHOLE = 0.9  # of what computes: so much in one line of a compiled step is all of its function
_OF_GRADIENT = re.compile("(Grad|Backprop|Backward)[A-Z]?[a-zA-Z0-9]*$")
OP = ("name", "type", "phase", "in_shapes", "share")


@dataclass(frozen=True)
class Advice:
    """What to do, and the share of the step that it can take away at most; None where that is not known."""

    code: str
    share: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For reports, which word the code and its facts."""
        return {"code": self.code, "share": self.share, "facts": dict(self.facts)}


def advise(diagnosis: dict[str, Any], comm: Sequence[CommSummary], mode: str | None) -> None:
    """Advice on the limit and on what is nearly as large; first what can bring most."""
    found = [
        sorted(_advice_on(limit, diagnosis, comm, mode), key=lambda item: -(item.share or 0.0))
        for limit in diagnosis["candidates"]
    ]
    for items in sorted(found, key=lambda items: -(items[0].share or 0.0) if items else 0.0):
        diagnosis["actions"] += items
    slow = diagnosis["slowest_rank"]
    if slow is not None and "imbalance" not in diagnosis["candidates"]:
        diagnosis["actions"] += imbalance(slow)
    if any(row.kind in ("send", "receive") for row in comm):
        diagnosis["confidence"] = "low"
        diagnosis["doubts"].append({"code": "pipeline_parallel"})
        diagnosis["actions"].append(Advice("pipeline_parallel"))


def _advice_on(limit: str, diagnosis: Row, comm: Sequence[CommSummary], mode: str | None) -> list[Advice]:
    share, shares, ops = diagnosis["weights"][limit], diagnosis["shares"], diagnosis["top_ops"]
    if limit == "imbalance":
        return imbalance(diagnosis["slowest_rank"])
    if limit == "communication":
        return communication(share, comm, shares["communication_overlapped"], diagnosis["limit_waiting_share"])
    if limit == "optimizer":
        return optimizer(share, ops)
    if limit in ("gradients", "after"):
        return beside(limit, share, ops)
    if limit == "host_gap":
        return host_gap(share, mode_of(mode, ops), diagnosis["device"])
    eager = diagnosis["device"] is None and launched_by_python(mode, ops)
    computing = compute(share, diagnosis["top_types"], ops, compiler=COMPILERS.get(mode or "") if eager else None)
    return [Advice("make_batches_seen")] if limit == "other_loader" else computing


def compute(share: float, types: Sequence[Row], ops: Sequence[Row], *, compiler: str | None = None) -> list[Advice]:
    """Advice for a step that consists of operators: types before single ones.

    `compiler`: Python launches each of them on a CPU, which may be most of a short one's time, and this compiles them.
    """
    mine = _of_computing(ops, share)
    kinds = _of_computing(types, share)
    cheaper = [_cheaper(kind, mine, share, kinds) for kind in kinds]
    families = [item.facts.get("type") if item.facts.get("in_function") else at for at, item in enumerate(cheaper)]
    advice = [item for at, item in enumerate(cheaper) if families[at] not in families[:at]][:2]
    single = [op for op in mine if not any(kind["type"] == op["type"] for kind in types)]
    advice += [Advice("cheaper_operator", op["share"], {"op": _named(op)}) for op in single[: 2 - len(advice)]]
    compiled = [Advice("compile_step", None, {"compiler": compiler})] if compiler else []
    return [*advice, Advice("fewer_bits", None, {"share": share}), *compiled]


def _of_computing(rows: Sequence[Row], share: float) -> list[dict[str, Any]]:
    """Operators of the computing part of a step: side by side they take longer than it, but bring no more than it."""
    return [{**row, "share": min(row["share"], share)} for row in rows if row["phase"] in COMPUTING]


def _cheaper(kind: Row, ops: Sequence[Row], most: float, kinds: Sequence[Row] = ()) -> Advice:
    """Fewer or cheaper operators of a type, or fewer copies; of several the largest is named.

    Of one whose line is known, what that line computes is made cheaper: all its operators, `most` of the step. Where
    that is all of a compiled function, the operators of its type are, with their gradients among `kinds`.
    """
    own = kind["type"]
    largest = next((op for op in ops if (op["type"], op["phase"]) == (own, kind["phase"])), None)
    named = largest is not None and (largest["in_shapes"] or largest["name"] != own)
    facts = {name: kind[name] for name in ("type", "phase", "count_per_step", "share")}
    facts["largest"] = _named(largest) if largest is not None and named else None
    whole, several = kind["share"], kind["count_per_step"] >= MANY
    if COPY.match((own or "").rpartition("::")[2]):
        return Advice("fewer_copies", whole, facts)
    if named and largest is not None and _is_compiled_whole(largest, ops, most):
        forward = _forward_type(kind)
        whole = min(most, sum(other["share"] for other in kinds if _forward_type(other) == forward))
        facts |= {"type": forward, "phase": "other", "in_function": True, "share": whole}
    elif named and largest is not None and largest.get("site"):
        whole = max(whole, min(largest.get("site_share", 0.0), most))  # the line's other operators, such as gradients
    return Advice("fewer_of_type" if several else "cheaper_type", whole, facts)


def _is_compiled_whole(op: Row, ops: Sequence[Row], most: float) -> bool:
    """Whether the line of an operator is that of a compiled function, which computes `most` of the step."""
    site = op.get("site")
    compiled = site and any(other.get("site") == site and _is_compiled(other) for other in ops)
    return bool(compiled and op.get("site_share", 0.0) >= WHOLE * most)


def _forward_type(kind: Row) -> str:
    """The type of the forward operator that operators of a type are, or are gradients of."""
    own: str = kind["type"] or ""
    return _OF_GRADIENT.sub("", own) or own


def communication(share: float, comm: Sequence[CommSummary], overlapped: float, waiting: float | None) -> list[Advice]:
    """Advice for exposed communication; `waiting`: for another rank, of the ranks whose `share` it is."""
    advice = []
    if waiting is not None and waiting >= share / 2:
        within = min(waiting, share)  # it is seen in fewer steps: those that all ranks recorded
        advice.append(Advice("equal_ranks", within, {"waiting_share": within}))
    per_step: dict[str, float] = {}
    for row in comm:
        if row.events_per_step is not None and row.kind not in ("send", "receive"):
            per_step[row.kind] = max(per_step.get(row.kind, 0.0), row.events_per_step)
    advice += [
        Advice("fuse_collectives", None, {"kind": kind, "events_per_step": events})
        for kind, events in sorted(per_step.items())
        if events >= 2
    ]
    if overlapped < share:
        advice.append(Advice("overlap_communication"))
    return [*advice, Advice("communicate_less_often", share)]


def optimizer(share: float, ops: Sequence[Row]) -> list[Advice]:
    """Advice for a step that the optimizer rules."""
    mine = [op for op in ops if op["phase"] == "optimizer"]
    largest = [Advice("largest_of_optimizer", None, {"op": _named(op)}) for op in mine[:1]]
    return [Advice("fewer_updates", share), *largest]


def beside(limit: str, share: float, ops: Sequence[Row]) -> list[Advice]:
    """Advice for what a step does between backward pass and update, or behind the update."""
    mine = [op for op in ops if op["phase"] == limit]
    facts = {"op": _named(mine[0]) if mine else None}
    return [Advice("less_gradients", share, facts) if limit == "gradients" else Advice("less_after", share, facts)]


def host_gap(share: float, mode: str | None, device: Row | None = None) -> list[Advice]:
    """Advice for a step in which mostly no operator runs; `device`: what runs on one, if there is one."""
    if device is not None:
        return idle_device(share, device)
    if not is_eager(mode):
        return [Advice("python_out_of_step", share), Advice("larger_batch")]
    first = Advice("compile_step", share, {"compiler": COMPILERS.get(mode or "")})
    return [first, Advice("python_out_of_step"), Advice("larger_batch")]


def on_call(call: Row | None) -> list[Advice]:
    """Advice on the one function that the host is busy with, or waits in; it brings at most what the function takes."""
    if call is None:
        return []
    facts = {"name": call["name"].rpartition(": ")[2]}
    return [Advice("see_what_it_waits_for" if call["waits"] else "shorten_function", call["share"], facts)]


def mode_of(mode: str | None, ops: Sequence[Row]) -> str | None:
    """The mode that was recorded, unless the names of operators tell of a compiled step."""
    return "graph" if any(_is_compiled(op) for op in ops) else mode


def _is_compiled(op: Row) -> bool:
    return str(op["name"]).startswith(COMPILED)


def launched_by_python(mode: str | None, ops: Sequence[Row]) -> bool:
    """Whether Python is known to launch each operator."""
    return mode is not None and is_eager(mode_of(mode, ops))


def is_eager(mode: str | None) -> bool:
    """Whether Python launches each operator; taken to do so where the mode was not recorded."""
    return mode is None or mode in COMPILERS


def idle_device(share: float, device: Row) -> list[Advice]:
    """Advice for a device that waits for its host, which launches too slowly or does something else."""
    launches = Advice("fewer_launches", share, device)
    rest = [Advice("python_out_of_step", share), Advice("larger_batch")]
    return [launches, *rest] if device["op_ns"] < SHORT_OP_NS else [*rest[:1], launches, *rest[1:]]


def imbalance(slow: Row) -> list[Advice]:
    """Advice for one rank that holds the others up."""
    return [Advice("slow_rank", slow["share"], {name: slow[name] for name in ("rank", "phase", "excess_ns")})]


def warmup(rows: Sequence[WarmupShare]) -> list[Advice]:
    """Advice for a training that is mostly warm-up."""
    advice = []
    worst = max(rows, key=lambda row: row.share)
    if worst.later_steps:
        advice.append(Advice("fixed_shapes", None, {"later_steps": worst.later_steps, "later_ns": worst.later_ns}))
    first = worst.warmup_ns - worst.later_ns
    if worst.train_mean_ns:
        steps = ceil(first * (1 - FEW) / FEW / worst.train_mean_ns)
        if steps > worst.train_steps:
            facts = {"steps": steps, "first_in_steps": first / worst.train_mean_ns, "share": FEW}
            advice.append(Advice("train_longer", None, facts))
    if worst.compile_ns >= COMPILES * worst.warmup_ns:
        advice.append(Advice("compile_cache"))
    return advice


def growth(ops: Sequence[Row], tested: int) -> list[Advice]:
    """What growing operators hint at."""
    if len(ops) >= 3 and 2 * len(ops) >= tested:
        return [Advice("machine_slows_down", None, {"growing": len(ops), "tested": tested})]
    names = ("name", "shapes", "slope_ns", "slope_low_ns", "slope_high_ns")
    return [Advice("operator_grows", None, {name: op[name] for name in names}) for op in ops[:3]]


def _named(op: Row) -> dict[str, Any]:
    return {name: op[name] for name in (*OP, *(("site", "site_share") if op.get("site") else ()))}
