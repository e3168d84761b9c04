"""What the gate is fed: one number per repetition and metric, with the order and the job it was measured in. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Samples:
    """Values of one metric, one per repetition. `order` and `jobs` are as long as `values`, or empty: not known.

    `order` is the position of the repetition in the experiment, which sequential looks go by; `jobs` names the host
    between two boots, or the CI job, in which each was measured.
    """

    values: tuple[float, ...]
    order: tuple[int, ...] = ()
    jobs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, other in (("order", self.order), ("jobs", self.jobs)):
            if other and len(other) != len(self.values):
                raise UsageError(f"{len(self.values)} values but {len(other)} entries of `{name}`")

    def first(self, number: int) -> Samples:
        """The first repetitions by `order`."""
        ranks = sorted(range(len(self.values)), key=lambda at: (self.order[at] if self.order else at, at))[:number]
        return Samples(
            tuple(self.values[at] for at in ranks),
            tuple(self.order[at] for at in ranks) if self.order else (),
            tuple(self.jobs[at] for at in ranks) if self.jobs else (),
        )


Side = "Mapping[str, Samples | Sequence[float]]"


def taken(side: Mapping[str, Samples | Sequence[float]], name: str) -> dict[str, Samples]:
    """One side with every metric as Samples. Raises UsageError for what is no finite number; `name` is base or new."""
    found = {}
    for metric, values in side.items():
        samples = values if isinstance(values, Samples) else Samples(tuple(values))
        for value in samples.values:
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise UsageError(f"metric `{metric}` of {name} holds {value!r}, expected finite numbers")
        found[metric] = samples
    return found
