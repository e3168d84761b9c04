"""What makes a distributed step slower than its peers', in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeprof.report.words import first_of
from pipeprof.units import format_count, format_ratio

Item = Mapping[str, Any]
Facts = Mapping[str, Any]

NAMES = {
    "stage_imbalance": "stage imbalance",
    "input_length": "input-length imbalance",
    "slow_worker": "slow worker",
    "fail_slow": "fail-slow",
    "slow_link": "slow link",
    "host_gap": "host gaps",
}
ADVICE = {
    "stage_imbalance": (
        "Move layers from this stage to others. A last stage also computes the loss, which grows with the vocabulary: "
        "give it fewer layers, or divide the loss over ranks."
    ),
    "input_length": (
        "Give microbatches equal amounts of work: sort or pack the samples by length, and count the attention, which "
        "grows with the square of the length."
    ),
    "slow_worker": "Look at the device and the host of this rank (clock, temperature, other programs), or replace it.",
    "fail_slow": (
        "Look at what happened to the device and the host of this rank at that time (clock, temperature, errors, other "
        "programs), or replace it."
    ),
    "slow_link": "Look at the network between these ranks: cables, errors, routes, other traffic.",
    "host_gap": (
        "Look at what the host does between passes: garbage collection (`gc.freeze()`, or collect on all ranks in the "
        "same step), logging, reading the input."
    ),
}
WHY = {
    "few_steps": "there are fewer than 3 steps that all ranks have with the same operations",
    "not_paired": "the other side of some communication was not recorded, or its group is not named",
    "many_ranks": "more than 2,730 ranks need too much memory",
    "circle": "operations seem to wait for each other",
    "inexact": "the replayed step differs from the recorded one by more than 5 %",
}
DOUBTS: dict[str, Callable[[float], str]] = {
    "some_steps": lambda value: compared(round(value)),
    "inexact": lambda value: f"the replayed step differs from the recorded one by {format_ratio(value)}",
    "close": lambda value: f"another cause costs {value:.2f} times as much",
    "whole_stage": lambda _: "one rank is the whole stage, and a slow rank looks the same",
}


def compared(steps: int) -> str:
    """`only 3 steps could be compared`."""
    return f"only {format_count(steps, 'step')} could be compared"


def sentence(item: Item) -> str:
    """What the cause is, who it is, and what it costs, without a full stop."""
    name = NAMES[item["code"]]
    said = f"{name[:1].upper()}{name[1:]}: {_SENTENCES[item['code']](item)}"
    return f"{said}, which costs {format_ratio(item['cost'])} of a step"


def as_next(item: Item) -> str:
    """What is left when the cause in front of it is gone: `slow link costs most`, `host gaps cost most`."""
    name = NAMES[item["code"]]
    return f"{name} {'cost' if name.endswith('s') else 'costs'} most"


def doubts(items: Sequence[Item]) -> str:
    """The doubts as one clause; empty without any."""
    return "; ".join(DOUBTS[item["code"]](item["value"]) for item in items)


def _stage(item: Item) -> str:
    last = ", the last one," if item["is_last"] else ""
    return f"passes of stage {item['stage']}{last} ({ranks(item['ranks'])}) take longest"


def _worker(item: Item) -> str:
    others = f" (and {ranks(item['others'])} less so)" if item["others"] else ""
    return f"passes of rank {item['rank']}{others} take {format_ratio(item['late'])} longer than its peers'"


def _fail_slow(item: Item) -> str:
    return (
        f"passes of rank {item['rank']} take {format_ratio(item['late'])} longer than its peers' "
        f"from step {item['since']} on"
    )


def _link(item: Item) -> str:
    who = f"`{item['link']}` ({ranks(item['ranks'])})"
    return f"transfers of {who} take {item['ratio']:.1f} times as long as usual"


def _input(item: Item) -> str:
    return f"microbatches differ in work, forward and backward alike (correlation {item['match']:.2f})"


def _host(_item: Item) -> str:
    return "passes begin later than what they wait for, as with garbage collection or late input"


def ranks(numbers: Sequence[int], most: int = 4) -> str:
    """`rank 3`, `ranks 4 to 7`, `ranks 1, 3, 9`; of many the first ones."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"ranks {numbers[0]} to {numbers[-1]}"
    return f"ranks {first_of([str(number) for number in numbers], most)}"


_SENTENCES: dict[str, Callable[[Item], str]] = {
    "stage_imbalance": _stage, "input_length": _input, "slow_worker": _worker, "fail_slow": _fail_slow,
    "slow_link": _link, "host_gap": _host,
}  # fmt: skip


def _look(advice: str) -> Callable[[Facts], str]:
    return lambda facts: f"rank {facts['rank']}: {advice}"


RANK_ADVICE: dict[str, Callable[[Facts], str]] = {
    "input": _look("its input is slower than the others': look at its data pipeline and where it reads from"),
    "host": _look(
        "look for what only it does in a step (logging, checkpoints, printing), and for other load on its machine"
    ),
    "device": _look(
        "compare its batch and input shapes, the clock and the temperature of its device, and what else runs there"
    ),
    "rare": _look(
        "look for what it does now and then: checkpoints, logging, evaluation, garbage collection, other programs"
    ),
    "bound": lambda facts: (
        f"with rank {facts['rank']} as fast as the others a step becomes at most {facts['times']:.2f} times as fast"
    ),
}


def rank_advice(item: Facts) -> str:
    """One suggestion of verdict/straggler_evidence."""
    return RANK_ADVICE[item["code"]](item)
