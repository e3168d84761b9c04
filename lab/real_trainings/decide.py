"""What limits a training, from interventions alone: rates of the script as it is, and with parts that cost nothing. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pipeprof.experiment.pairs import Ratio, ratio_of

WORTH = 1.05  # a pipeline limits whose removal makes the training that much faster
ALONE = 1.02  # an operator's part in it that is believed
LOOP = "consumer"


@dataclass(frozen=True)
class Decision:
    """`limits`: op | loop | either | rest | undecided; `accepted`: operators by number, and "consumer".

    `either`: removing the pipeline brings about as much as is worth it, so both answers are right. `rest`: the
    pipeline limits, and no operator alone was seen to, so each of them is right and the loop is wrong.
    """

    limits: str
    accepted: tuple[int | str, ...]


def ratios(base: list[float], rates: list[float]) -> Ratio:
    """Speed-up over the runs of the same rounds."""
    return ratio_of(base[: len(rates)], rates)


def if_free(found: Ratio, standing_in: float, most: float) -> Ratio:
    """With the high end that it would have if handing out cost nothing, which took that share of a step, at most.

    At most twice the measured one, and at most `most`, what the whole pipeline brings.
    """
    high = found.high / max(0.5, 1 - standing_in)
    return Ratio(found.ratio, found.low, max(found.high, min(high, most)))


def decide(whole: Ratio, ops: dict[int, Ratio], others: list[int]) -> Decision:
    """The label. `whole`: all of the pipeline removed; `ops`: each operator alone; `others`: what cannot be removed."""
    if whole.high < WORTH:
        return Decision("loop", (LOOP,))
    best = max(ops.values(), key=lambda one: one.ratio, default=None)
    named = tuple(number for number, one in ops.items() if best and one.ratio > ALONE and one.high >= best.low)
    if whole.low < WORTH:
        return Decision("either" if whole.high < WORTH * WORTH else "undecided", (LOOP, *named))
    if best is None or best.ratio < WORTH:
        return Decision("rest", (*ops, *others))
    return Decision("op", named)
