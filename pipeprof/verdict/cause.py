"""The verdict on a run as typed records: every candidate cause with what it costs, the best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_SHARE = "most_share"  # evidence: what the share of a cause may be by chance, from which its bound comes

# Where a gain comes from: a prediction for the advice; an estimate from CPU times; a bound, which no change exceeds; a
# run of `whatif` or `tune` on this workload.
Origin = Literal["predicted", "estimated", "bound", "measured"]


class Gain(msgspec.Struct, frozen=True):
    """Times as fast as now: `times` within [`low`, `high`]; a bound has `high` alone."""

    origin: Origin
    times: float | None = None
    low: float | None = None
    high: float | None = None


class Advice(msgspec.Struct, frozen=True):
    """What to do about a cause, and what that brings; `gain` is of this advice and of nothing else.

    `code` says what, as `verdict/suggest.py` and `verdict/network_advice.py` name it; `parameter` goes from `old` to
    `new` at the operator `op_id`.
    """

    code: str
    op_id: int | None = None
    parameter: str | None = None
    old: int | float | bool | str | None = None
    new: int | float | bool | str | None = None
    gain: Gain | None = None


class Stage(msgspec.Struct, frozen=True):
    """An operator of the dataset pipeline, or, without a number, a call of the data loader of another framework."""

    op_id: int | None
    op_type: str
    name: str | None = None


class Evidence(msgspec.Struct, frozen=True):
    """A number that a cause rests on; `unit` is share (0..1), cores, times, ns or steps."""

    name: str
    value: float
    unit: str


class Few(msgspec.Struct, frozen=True):
    """Steps that a cause was seen in where they are too few to say what it costs, and how many are needed for that."""

    steps: int
    needed: int


class Cause(msgspec.Struct, frozen=True):
    """One thing that may hold a run up.

    `code`: one of `verdict/ranking.CODES`; `detail` says which, such as the part of the run or the kind of rank cause;
    `name` is its name in the user's code, such as that of a callback or a process.
    `share` (0..1): of the time of the training, its interruptions included, that it costs; null where nobody knows.
    `advice`: null where there is none to give by a code. `few`: null where there were steps enough.
    `of_one_mode`: it was seen in a few steps, and the steps have two lengths.
    """

    code: str
    detail: str = ""
    name: str = ""
    share: float | None = None
    confidence: str | None = None
    rank: int | None = None
    stage: Stage | None = None
    advice: Advice | None = None
    evidence: tuple[Evidence, ...] = ()
    few: Few | None = None
    of_one_mode: bool = False

    @property
    def most(self) -> float | None:
        """Times as fast at most, if it cost nothing; None where no bound is known, or the steps seen tell of none."""
        share = next((item.value for item in self.evidence if item.name == MOST_SHARE), self.share)
        return None if self.few is not None or self.of_one_mode or share is None or share >= 1 else 1 / (1 - share)


class RunVerdict(msgspec.Struct, frozen=True):
    """All candidate causes of a run, ranked: the first one leads every screen. `alike`: so many cost about as much."""

    causes: tuple[Cause, ...]
    alike: int = 1

    @property
    def lead(self) -> Cause:
        """What every screen names first."""
        return self.causes[0]

    @property
    def beside(self) -> tuple[Cause, ...]:
        """The causes that are named together with the first."""
        return self.causes[1 : self.alike]

    def find(self, codes: Iterable[str]) -> Cause | None:
        """The best cause with one of these codes."""
        return next((cause for cause in self.causes if cause.code in codes), None)
