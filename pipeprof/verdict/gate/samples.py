"""What the gate is fed: one number per repetition and metric, with the order and the job it was measured in. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

HINT = "give a sequence of numbers, or pipeprof.verdict.Samples(values, order, jobs, calibration)"


@dataclass(frozen=True)
class Samples:
    """Values of one metric, one per repetition. `order`, `jobs` and `calibration` are as long as `values`, or empty.

    Any sequences will do; they become tuples. Raises UsageError when the lengths differ, a job has no name, or two
    repetitions of one job have the same place.

    `order` is the position of the repetition in the experiment, which sequential looks go by; `jobs` names the host
    between two boots, or the CI job, in which each was measured; `calibration` how long a fixed loop took on that
    machine, None where it is not known.
    """

    values: tuple[float, ...]
    order: tuple[int, ...] = ()
    jobs: tuple[str, ...] = ()
    calibration: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        for name in ("values", "order", "jobs", "calibration"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # frozen
        for name, other in (("order", self.order), ("jobs", self.jobs), ("calibration", self.calibration)):
            if other and len(other) != len(self.values):
                raise UsageError(f"{len(self.values)} values but {len(other)} entries of `{name}`")
        if None in self.jobs:
            raise UsageError("`jobs` holds None, expected the name of each job", "leave `jobs` out when not known")
        if self.order and len(set(self.repetitions())) < len(self.order):
            raise UsageError("two repetitions of one job have the same place in `order`")

    def repetitions(self) -> list[tuple[str, int]]:
        """(job, order) of each value, which tells repetitions apart; the position stands in for an unknown order."""
        number = len(self.values)
        return list(zip(self.jobs or ("",) * number, self.order or range(number), strict=True))

    def first(self, number: int) -> Samples:
        """The first repetitions by `order`, of equal ones by job."""
        places = self.repetitions()
        ranks = sorted(range(len(places)), key=lambda at: places[at][::-1] if self.order else (at, ""))[:number]
        return Samples(
            tuple(self.values[at] for at in ranks),
            tuple(self.order[at] for at in ranks) if self.order else (),
            tuple(self.jobs[at] for at in ranks) if self.jobs else (),
            tuple(self.calibration[at] for at in ranks) if self.calibration else (),
        )


Side = "Mapping[str, Samples | Sequence[float]]"


def taken(side: Mapping[str, Samples | Sequence[float]], name: str) -> dict[str, Samples]:
    """One side with every metric as Samples. Raises UsageError for what is no finite number; `name` is base or new."""
    if not isinstance(side, Mapping):
        raise UsageError(f"{name} is {type(side).__name__}, expected a mapping from metric to values", HINT)
    return {metric: _checked(values, f"metric `{metric}` of {name}") for metric, values in side.items()}


def _checked(values: Samples | Sequence[float], what: str) -> Samples:
    if isinstance(values, Mapping) or not isinstance(values, (Samples, Iterable)):
        raise UsageError(f"{what} is {type(values).__name__}, expected one number per repetition", HINT)
    samples = values if isinstance(values, Samples) else Samples(tuple(values))
    for value in samples.values:
        if type(value) is float and math.isfinite(value):
            continue
        if isinstance(value, bool) or not isinstance(value, Real) or not _is_finite(value):
            raise UsageError(f"{what} holds {value!r}, expected finite numbers", HINT)
    return samples


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False
