"""Whether a changed pipeline hands out the rows of the original: in whole epochs, and in the first batches. Pure.

Two orders of the same rows have the same sum of the rows' fingerprints and as many rows; the same order has the same
fingerprint of all batches, too. Where random operations draw other numbers, the columns that no other seed changes are
compared so, and of the others only types and shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.experiment.tune.bench import RunResult

Batches = Literal["same", "permuted", "random", "other", "not_reproducible", "not_seen"]
UNKNOWN: tuple[Batches, ...] = ("not_reproducible", "not_seen")
WORSE: tuple[Batches, ...] = ("same", "permuted", "random", "not_reproducible", "other")
LIKE = 0.5  # share of the values of a column that another seed leaves as they are: below it, it is a random one


def acceptable(batches: Batches, *, order: bool, unchecked: bool = False, draws: bool = False) -> bool:
    """Whether a change that hands these out may be taken; `order`: the same rows in another order may, too.

    `unchecked`: so may what could not be compared. `draws`: so may rows of other random numbers.
    """
    allowed = {"permuted": order, "random": draws} | dict.fromkeys(UNKNOWN, unchecked)
    return batches == "same" or allowed.get(batches, False)


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of an epoch, as fingerprints; `form`: of its types and shapes; `least`: the least of its values'."""

    name: str
    ordered: str
    sum: str
    form: str
    least: tuple[str, ...]

    def is_like(self, other: Column) -> bool:
        """Whether most values are the same, by the least fingerprints of both (Broder 1997: bottom-k sketches)."""
        least = sorted({*self.least, *other.least})[: max(len(self.least), len(other.least))]
        both = {*self.least} & {*other.least}
        return sum(one in both for one in least) >= LIKE * len(least)


class Epoch(msgspec.Struct, frozen=True, kw_only=True):
    """An epoch of the training's iterator, as fingerprints; `whole`: it was read to its end."""

    batches: int
    rows: int
    sum: str
    ordered: str
    whole: bool
    columns: tuple[Column, ...] = ()


def epochs_of(events: Iterable[Mapping[str, Any]], site: str | None) -> list[Epoch]:
    """The epochs of the iterators of a place (None: of all), in their order."""
    mine = [one for one in events if one["site"] == (site or one["site"])]
    mine.sort(key=lambda one: (one["number"], one["epoch"]))
    return [msgspec.convert(dict(one), Epoch) for one in mine]


def compared_epochs(plain: Sequence[Epoch], changed: Sequence[Epoch], *, order: bool = False) -> tuple[Batches, str]:
    """What the epochs of two runs say, and why where their rows are not the same.

    A training that runs for a time may have more of them on one side: those of both are compared. Of the last one,
    which nobody read to its end, only as many batches say anything, and not even these where another `order` is
    allowed, which brings other rows to the front.
    """
    batches: Batches = "not_seen"
    for number, (one, other) in enumerate(zip(plain, changed, strict=False), 1):
        if one.batches == other.batches and one.ordered == other.ordered:
            word: Batches = "same"
        elif _is_cut_short(one, other, order=order):
            continue
        elif (one.rows, one.sum) == (other.rows, other.sum):
            word = "permuted"
        else:
            why = f"{other.rows} rows, not {one.rows}" if one.rows != other.rows else f"not all of its {one.rows} rows"
            return "other", f"epoch {number} has other rows than that of the original: {why} are the same"
        batches = worse(batches, word)
    return batches, ""


def _is_cut_short(one: Epoch, other: Epoch, *, order: bool) -> bool:
    """Whether the rows that only one of them has may be in the rest of the other, which nobody read.

    In another `order` any of them may.
    """
    if one.batches != other.batches:
        return not min(one, other, key=lambda epoch: epoch.batches).whole
    return order and not (one.whole and other.whole)


def compared_columns(
    plain: Sequence[Epoch], reseeded: Sequence[Epoch], changed: Sequence[Epoch], *, order: bool
) -> tuple[Batches, str]:
    """What is left to compare where rows hold random numbers: `random` when that is the same; and which, or why not.

    `reseeded`: the original's epochs with other random numbers. `order`: another order of the rows is none of its
    business. `not_reproducible`: no column is without random numbers, so there is nothing to hold on to.
    """
    drawn: dict[str, None] = {}
    batches: Batches = "not_seen"
    for number, (one, seeded, other) in enumerate(zip(plain, reseeded, changed, strict=False), 1):
        if _is_cut_short(one, other, order=False):
            continue
        why = f"epoch {number} has other rows than that of the original: "
        if (one.rows, len(one.columns)) != (other.rows, len(other.columns)):
            found, expected = (f"{epoch.rows} rows of {len(epoch.columns)} columns" for epoch in (other, one))
            return "other", f"{why}{found}, not {expected}"
        steady = [first.is_like(second) for first, second in zip(one.columns, seeded.columns, strict=False)]
        if not any(steady):
            return "not_reproducible", f"epoch {number} has random numbers in every column, so nothing can be compared"
        for first, second, is_steady in zip(one.columns, other.columns, steady, strict=False):
            same = first.sum == second.sum and (order or first.ordered == second.ordered)
            if first.form != second.form or (is_steady and not same):
                what = "values" if first.form == second.form else "types or shapes"
                return "other", f"{why}the {what} of {_named(first.name)}"
            drawn |= {} if is_steady else {first.name: None}
        if all(steady) and one.sum != other.sum:
            return "other", f"{why}each column has the same values, but other ones stand beside each other"
        batches = "random"
    names = ", ".join(map(_named, drawn))
    why = f"random operations draw other numbers in {names}; all else in the epochs is the same"
    return batches, why if names else ""


def _named(column: str) -> str:
    """A column in words; tuples have places in place of names."""
    return f"column {int(column) + 1}" if column.isdecimal() else f"column `{column}`"


def compared(plain: Sequence[tuple[str, ...]], changed: Sequence[tuple[str, ...]]) -> Batches:
    """Whether both sides handed out the same first batches in the same order, from the runs of each side so far.

    `not_reproducible`: the unchanged runs differ among each other. `not_seen`: a run has no fingerprints.
    """
    if not all(plain) or not all(changed) or not plain:
        return "not_seen"
    length = min(len(one) for one in (*plain, *changed))
    firsts = {one[:length] for one in plain}
    if {one[:length] for one in changed} == firsts and len(firsts) == 1:
        return "same"
    if len(firsts) > 1:
        return "not_reproducible"
    return "other" if len(plain) > 1 else "not_seen"


@dataclass
class Handed:
    """The first batches that the runs of both sides handed out."""

    plain: list[tuple[str, ...]] = field(default_factory=list)
    changed: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, plain: RunResult, changed: RunResult) -> Batches:
        """Take a pair of runs in; returns what all of them say."""
        self.plain.append(plain.batches)
        self.changed.append(changed.batches)
        return compared(self.plain, self.changed)


def worse(one: Batches, other: Batches) -> Batches:
    """Of what was seen before and now the less good; nothing seen before counts for nothing."""
    seen = [word for word in (one, other) if word in WORSE]
    return max(seen, key=WORSE.index) if seen else other
