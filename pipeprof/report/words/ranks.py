"""What to look at on a rank that holds the others up, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Facts = Mapping[str, Any]


def _look(advice: str) -> Callable[[Facts], str]:
    return lambda facts: f"rank {facts['rank']}: {advice}"


WORDS: dict[str, Callable[[Facts], str]] = {
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


def sentence(item: Facts) -> str:
    """One suggestion of verdict/straggler_evidence."""
    return WORDS[item["code"]](item)
