"""What to do about the step itself, in words, with the most that it can bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pipeprof.report.words.names import PHASES
from pipeprof.units import format_count, format_ns, format_ratio, percent
from pipeprof.verdict.network_advice import MANY

Facts = Mapping[str, Any]

SHAPES = 2  # inputs of an operator that are shown
ALONE = 1.5  # of a type per step, up to which it is one operator
# How operators of a kind become cheaper, by the beginning or a part of their type.
CHEAPER = {
    "embed|gather|scatter|index": "fewer rows at a time, smaller tables",
    "conv(?!ert)": "smaller images or a larger stride early on, fewer channels",
    "attention": "shorter sequences, a fused attention",
    "softmax": "shorter sequences, fewer classes, a fused attention",
    "lstm|gru|rnn": "shorter sequences, a smaller hidden state, one call for the whole sequence",
    "matmul|gemm|dense|linear|addmm|bmm|::mm$": "smaller layers, or a smaller matrix in place of each",
    "norm(?!al)": "smaller inputs, or fewer of them",
    "pool|interpolat|resize|upsample": "smaller images, fewer channels",
    "gelu|silu|swish|mish|erf|tanh|sigmoid|softplus": "a cheaper activation, such as ReLU, or smaller layers",
    "copy|(?<!broad)cast|transpose|contiguous": "tensors kept in one place, type and layout",
}
SLOW_RANK = {
    "data_wait": "its input is slower than the others': look at that rank's data pipeline and where it reads from",
    "host_gap": "look for what only it does in the step: logging, checkpoints, evaluation, printing",
    "optimizer": "its operators run slower or on more parameters: compare its share of the parameters and its cores",
    "other": "its operators run slower or on more data: compare batch, input shapes and what else its cores run",
}


def worded(actions: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The actions with `action` and `text`, which has its reason too, and as sentences with what each can bring."""
    said = [{**_said(item["code"], item["facts"]), **item} for item in actions]
    return said, [_stated(item) for item in said]


def action(code: str) -> str:
    """What to do, of advice that needs no numbers."""
    return _said(code, {})["action"]


def _said(code: str, facts: Facts) -> dict[str, str]:
    text = WORDS[code](facts)
    action, reason = (text, "") if isinstance(text, str) else text
    return {"text": f"{action}: {reason}" if reason else action, "action": action}


def _stated(item: dict[str, Any]) -> str:
    return item["text"] if item["share"] is None else f"{item['text']}; {bound(item['share'])}"


def bound(share: float) -> str:
    """The most that taking a part away altogether can bring."""
    if share >= 1:
        return "it is the whole step"
    return f"a step would run at most {1 / (1 - share):.2f} times as fast"


class Operator(msgspec.Struct, frozen=True):
    """One operator of the facts of advice; `site_share`: of the step, of all that its line computes."""

    name: str | None
    type: str | None
    phase: str | None
    in_shapes: str | None
    share: float
    site: str | None = None
    site_share: float = 0.0


class OfType(msgspec.Struct, frozen=True):
    """Operators of a type, from the facts of advice."""

    type: str | None
    phase: str | None
    count_per_step: float
    share: float
    largest: Operator | None

    @property
    def is_alone(self) -> bool:
        """Whether it is one operator."""
        return self.count_per_step < ALONE


def described(op: Facts) -> str:
    """One operator in words."""
    return _described(msgspec.convert(op, Operator))


def _described(op: Operator) -> str:
    return f"{_identified(op)} ({op.phase}, {format_ratio(op.share)} of the step)"


def _identified(op: Operator, *, bare: bool = False) -> str:
    """Its type, its first inputs, its name, and where it was issued; `bare`: without the latter two."""
    shapes = op.in_shapes.split("; ") if op.in_shapes else []
    others = f" and {format_count(len(shapes) - SHAPES, 'other input')}" if len(shapes) > SHAPES else ""
    inputs = f" on {'; '.join(shapes[:SHAPES])}{others}" if shapes else ""
    name = f" `{op.name}`" if op.name != op.type and not bare else ""
    site = f" of `{op.site.rpartition('/')[2]}`" if op.site and not bare else ""
    return f"{op.type or 'operator'}{name}{inputs}{site}"


def _share_of_type(kind: OfType) -> str:
    which = f"; the largest: {_described(kind.largest)}" if kind.largest and not kind.is_alone else ""
    phase = "" if kind.phase == "other" else f", {kind.phase}"
    return f"{format_ratio(kind.share)} of the step{phase}{which}"


def _of_copies(facts: Facts) -> str:
    kind = msgspec.convert(facts, OfType)
    what = f"`{kind.type}` takes"
    if kind.count_per_step >= MANY:
        what = f"{kind.count_per_step:,.0f} {kind.type} per step take"
    return (
        "copy memory less: keep tensors on the device and in the layout in which they are used, copy several at once, "
        f"or while operators compute (pinned memory, non-blocking copies): {what} {_share_of_type(kind)}"
    )


def place_of(site: str) -> str:
    """`model.py:214` of a frame `model.py(214): Net.construct`; of a place that is written otherwise, the same."""
    return re.sub(r"^(.+?)\((\d+)\)(?:: .*)?$", r"\1:\2", site)


def cheaper_by(kind: str | None) -> str:
    """` (smaller images ...)` for a type of operator; empty for a type of which nothing general can be said."""
    found = (how for names, how in CHEAPER.items() if re.search(names, kind or "", re.IGNORECASE))
    how = next(found, "")
    return f" ({how})" if how else ""


def _of_code(kind: OfType, largest: Operator, site: str) -> tuple[str, str]:
    """Of the line that issued the largest operator of a type, or the forward operator that it is a gradient of."""
    op, place = _identified(largest, bare=True), place_of(site).rpartition("/")[2]
    which = f"its gradient {op}" if largest.phase == "backward" else op
    how = cheaper_by(kind.type) or " (fewer or smaller tensors)"
    kinds = "" if kind.is_alone else f", all {kind.count_per_step:,.0f} {kind.type} {format_ratio(kind.share)}"
    line = f", all that this line computes {format_ratio(largest.site_share)}"
    reason = f"{which} takes {format_ratio(largest.share)} of the step{kinds}{line}"
    return f"make what `{place}` computes cheaper{how}", reason


def _of_type(facts: Facts) -> tuple[str, str]:
    kind = msgspec.convert(facts, OfType)
    largest, share = kind.largest, _share_of_type(kind)
    if largest and largest.site and not facts.get("in_function"):
        return _of_code(kind, largest, largest.site)
    if kind.count_per_step < MANY:
        called = _identified(largest) if largest and kind.is_alone else f"`{kind.type}`"
        return f"make {called} cheaper{cheaper_by(kind.type)}", share
    how = cheaper_by(kind.type) or ", such as fused ones on larger tensors"
    taken = f"{kind.count_per_step:,.0f} {kind.type} per step take {share}"
    if facts.get("in_function"):
        taken = f"with their gradients they take {format_ratio(kind.share)} of the step"
    return f"use fewer or cheaper {kind.type} operators{how}", taken


def _largest(facts: Facts) -> str:
    return f"; the largest operator: {described(facts['op'])}" if facts["op"] else ""


def _fixed_shapes(facts: Facts) -> str:
    steps = format_count(facts["later_steps"], "step")
    return (
        "keep shapes and types of the inputs fixed (pad, drop_remainder=True), pass tensors instead of Python numbers, "
        f"and build cells and jit functions once: {steps} after the first compiled a graph again "
        f"({format_ns(facts['later_ns'])})"
    )


def _train_longer(facts: Facts) -> str:
    return (
        f"train longer: the first step costs as much as {facts['first_in_steps']:.0f} others; from "
        f"{facts['steps']:,} steps on it is less than {percent(facts['share'])} of the training"
    )


def _grows(facts: Facts) -> str:
    cause = (
        f"it was seen with {facts['shapes']} input shapes: pad or bucket its input"
        if facts["shapes"] > 1
        else "its input shapes stay the same: look for what it accumulates or shares"
    )
    slope = f"{format_ns(facts['slope_low_ns'])} to {format_ns(facts['slope_high_ns'])}"
    return f"`{facts['name']}` grows by {format_ns(facts['slope_ns'])} per step ({slope}): {cause}"


COMPILERS = {"ms.jit": "ms.jit (a `Model`: with `set_context(mode=GRAPH_MODE)`)"}


def _compile_step(facts: Facts) -> str:
    compiler = facts["compiler"]
    condition, how = "", COMPILERS.get(compiler, compiler)
    if how is None:
        condition, how = "if Python launches each operator (PyNative or eager mode): ", "ms.jit or torch.compile"
    return (
        f"{condition}compile the whole step, gradients and optimizer included, with {how}, so that Python no longer "
        "launches each operator"
    )


def _slow_rank(facts: Facts) -> str:
    return (
        f"rank {facts['rank']} works {format_ns(facts['excess_ns'])} per step longer than the others, most of it in "
        f"{PHASES[facts['phase']]}: {SLOW_RANK.get(facts['phase'], SLOW_RANK['other'])}"
    )


# What to do, or that and its reason.
WORDS: dict[str, Callable[[Facts], str | tuple[str, str]]] = {
    "cheaper_type": _of_type,
    "fewer_of_type": _of_type,
    "fewer_copies": _of_copies,
    "cheaper_operator": lambda facts: (
        f"make this operator cheaper{cheaper_by(facts['op']['type'])}: {described(facts['op'])}"
    ),
    "fewer_bits": lambda facts: (
        "compute with fewer bits (float16 or bfloat16; in MindSpore by mindspore.amp), or on a faster device: "
        f"operators of the forward and backward pass take {format_ratio(facts['share'])} of the step"
    ),
    "equal_ranks": lambda facts: (
        "make the ranks equally fast (equal batches and shapes, no work on one rank only, cores of their own): "
        f"{format_ratio(facts['waiting_share'])} of the step is waiting for another rank, not transfer"
    ),
    "fuse_collectives": lambda facts: (
        f"fuse the {facts['events_per_step']:.0f} {facts['kind']} per step into fewer, larger ones (graph mode: "
        "comm_fusion of set_auto_parallel_context; by hand: concatenate gradients before reducing them)"
    ),
    "overlap_communication": lambda _: (
        "overlap communication with the backward pass: reduce gradients as they become ready; collectives that block, "
        "as on CPU, cannot overlap"
    ),
    "communicate_less_often": lambda _: (
        "communicate less often: accumulate gradients over several batches, or use a larger batch"
    ),
    "fewer_updates": lambda _: (
        "update fewer, larger tensors: use a fused optimizer, or keep parameters together; or accumulate gradients and "
        "update less often"
    ),
    "largest_of_optimizer": lambda facts: f"the largest operator of the optimizer: {described(facts['op'])}",
    "less_gradients": lambda facts: (
        "do less between backward pass and update (clipping, scaling, adding up): fuse it over all gradients, or "
        f"compile it together with the optimizer by ms.jit{_largest(facts)}"
    ),
    "less_after": lambda facts: (
        "do less behind the optimizer (averages of the weights, metrics, another forward pass): only every n-th step, "
        f"or compiled by ms.jit{_largest(facts)}"
    ),
    "compile_step": _compile_step,
    "fewer_launches": lambda facts: (
        f"launch fewer and larger operators: the host launches {facts['per_step']:,.0f} per step, which run for "
        f"{format_ns(facts['op_ns'])} each; compile the step or capture it in a graph (torch.compile, CUDA graphs), "
        "use a fused optimizer"
    ),
    "move_thread": lambda _: (
        "let a process of its own do this (`multiprocessing`), do it less often, or in functions "
        "that compute without the lock (NumPy)"
    ),
    "shorten_function": lambda facts: f"make `{facts['name']}` cheaper, or do it less often or in another thread",
    "see_what_it_waits_for": lambda facts: f"see what `{facts['name']}` waits for: another thread, a queue or a device",
    "wake_loop": lambda _: (
        "find what the loop sleeps in, or waits for besides its data (`time.sleep`, the network, files, a lock), and "
        "do that less often or in another thread"
    ),
    "python_out_of_step": lambda _: (
        "move Python out of the step: logging, callbacks, .asnumpy() and float(loss) only every n-th step"
    ),
    "larger_batch": lambda _: "use a larger batch: it spreads the same host time over more rows",
    "slow_rank": _slow_rank,
    "pipeline_parallel": lambda _: "ranks send to each other: in pipeline parallelism ranks differ by design",
    "fixed_shapes": _fixed_shapes,
    "train_longer": _train_longer,
    "compile_cache": lambda _: "for several short runs of the same graph, keep it compiled (enable_compile_cache)",
    "machine_slows_down": lambda facts: (
        f"{facts['growing']} of {facts['tested']} operators take longer from step to step: the machine slows down "
        "(load, heat)"
    ),
    "operator_grows": _grows,
    "make_batches_seen": lambda _: (
        "iterate over what makes the batches, with `for` or `next`, and train for some 100 steps: then the wait is "
        "measured"
    ),
    "record_more": lambda _: "record the operators of more steps: a longer run, or collect --ops all",
}
