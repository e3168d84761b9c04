"""Rules as data: conditions that decide, and that say afterwards which facts a decision rested on."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "at_least": operator.ge,
    "at_most": operator.le,
    "above": operator.gt,
    "below": operator.lt,
}
_OPPOSITES = {"short_of": "at_least", "not_above": "above"}


@dataclass(frozen=True)
class Clause:
    """One fact and what is asked of it; `bound` is in the fact's unit, None where nothing is compared.

    `relation`: at_least | at_most | above | below, which a fact that is not known (None) never meets; their opposites
    short_of | not_above, which it always meets; known | unknown; noted, which always holds.
    """

    fact: str
    relation: str
    bound: float | None = None

    def holds(self, facts: object) -> bool:
        """Whether the fact, an attribute of `facts`, is as asked."""
        if self.relation == "noted":
            return True
        value = getattr(facts, self.fact)
        if self.bound is None:
            return (value is None) == (self.relation == "unknown")
        if self.relation in _OPPOSITES:
            return value is None or not _COMPARISONS[_OPPOSITES[self.relation]](value, self.bound)
        return value is not None and _COMPARISONS[self.relation](value, self.bound)

    def shown(self, facts: object) -> dict[str, Any]:
        """{fact, value, relation, bound}, for reports."""
        value = getattr(facts, self.fact)
        return {"fact": self.fact, "value": value, "relation": self.relation, "bound": self.bound}


@dataclass(frozen=True)
class Rule:
    """When every clause holds, the stage that is the attribute `chooses` of the facts limits.

    `code` is the rule that reports state; several rules may have the same one. `kind`: of that stage, whatever its own
    facts say.
    """

    name: str
    code: str
    chooses: str
    when: tuple[Clause, ...]
    kind: str | None = None


@dataclass(frozen=True)
class Code:
    """A code that follows when every clause holds, for rules with a code in `only` (if given) and not in `never`."""

    code: str
    when: tuple[Clause, ...] = ()
    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def at_least(fact: str, bound: float) -> Clause:
    """Known, and not smaller."""
    return Clause(fact, "at_least", bound)


def at_most(fact: str, bound: float) -> Clause:
    """Known, and not larger."""
    return Clause(fact, "at_most", bound)


def above(fact: str, bound: float) -> Clause:
    """Known, and larger."""
    return Clause(fact, "above", bound)


def below(fact: str, bound: float) -> Clause:
    """Known, and smaller."""
    return Clause(fact, "below", bound)


def short_of(fact: str, bound: float) -> Clause:
    """Not known to be at least that."""
    return Clause(fact, "short_of", bound)


def not_above(fact: str, bound: float) -> Clause:
    """Not known to be larger."""
    return Clause(fact, "not_above", bound)


def known(fact: str) -> Clause:
    """Measured, whatever it is."""
    return Clause(fact, "known")


def unknown(fact: str) -> Clause:
    """Not measured."""
    return Clause(fact, "unknown")


def noted(fact: str) -> Clause:
    """No condition: what the rule goes by that is left when no other one applies."""
    return Clause(fact, "noted")


def all_hold(clauses: Sequence[Clause], facts: object) -> bool:
    """Whether every clause holds; True of none."""
    return all(clause.holds(facts) for clause in clauses)


def codes(outcomes: Sequence[Code], facts: object, rule: str | None = None) -> Iterator[str]:
    """The codes of the outcomes that follow from the facts under a rule's code, in their order, each once."""
    given: set[str] = set()
    for outcome in outcomes:
        possible = rule not in outcome.never and (not outcome.only or rule in outcome.only)
        if possible and outcome.code not in given and all_hold(outcome.when, facts):
            given.add(outcome.code)
            yield outcome.code
