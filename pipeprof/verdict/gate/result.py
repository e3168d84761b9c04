"""A verdict: per metric, and of the whole comparison. Pure; the shape of `pipeprof compare --format json`.

What is to be said about a verdict, as codes with their names and numbers; reports word them. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Word = Literal["regressed", "improved", "unchanged", "inconclusive", "incomparable", "missing", "acknowledged"]

# Exit codes of the gate; 2 is a usage error and 5 a workload that failed.
EXIT: dict[Word, int] = {
    "unchanged": 0, "improved": 0, "acknowledged": 0, "regressed": 1, "incomparable": 3, "missing": 3,
    "inconclusive": 4,
}  # fmt: skip


@dataclass(frozen=True)
class MetricVerdict:
    """One metric. `base` and `new` are geometric means over repetitions, `ratio` is new / base with its 95 % interval.

    Where logarithms cannot be taken they are means on the scale that is judged; `ratio` is None unless base is above 0.
    `share_ratio`: the ratio that is judged of a metric with `share`, without what all metrics of its prefix did.
    `p_value` is one-sided, of "worse"; `alpha` what it was held against. `reps_needed`: repetitions per side that find
    a change of `reps_find` with the policy's power, or settle the one that was seen where that is None; None when more
    than can be asked for, or when it is decided. `reasons`: why the verdict is as it is, as codes with numbers.
    `counts_below`, `counts_above`: values of new beyond which the change is large enough to count, by the policy's
    `min_effect` and `floor`.
    """

    name: str
    unit: str
    direction: str
    family: str
    verdict: Word
    base: float | None
    new: float | None
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    alpha: float | None
    min_effect: float
    reps_base: int
    reps_new: int
    reps_needed: int | None = None
    reasons: tuple[Note, ...] = ()
    share_ratio: float | None = None
    counts_below: float | None = None
    counts_above: float | None = None
    reps_find: float | None = None


@dataclass(frozen=True)
class Verdict:
    """All metrics, primary ones first, and the worst of the primary ones. `notes` are codes with numbers.

    `chances`: of each undecided metric that decides, that the last look says regressed, and that it says anything at
    all; `hopeless`: looks that follow would not decide either (ahead.py). Both only while looks follow.
    """

    verdict: Word
    metrics: tuple[MetricVerdict, ...]
    notes: tuple[Note, ...] = ()
    looks: tuple[int, ...] = ()
    next_look: int | None = None
    chances: dict[str, tuple[float, float]] = field(default_factory=dict)
    hopeless: bool = False

    @property
    def exit_code(self) -> int:
        """0 judged and nothing worse, 1 regressed, 3 could not be judged, 4 inconclusive."""
        return EXIT[self.verdict]

    def metric(self, name: str) -> MetricVerdict | None:
        """The verdict on one metric."""
        return next((one for one in self.metrics if one.name == name), None)


Note = dict[str, Any]


def note(code: str, **facts: Any) -> Note:
    """`{code, ...}`; the words are in report/words/gate.py, those of experiments in report/words/experiments.py."""
    return {"code": code, **facts}
