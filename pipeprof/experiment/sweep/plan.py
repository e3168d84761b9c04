"""Which variants a sweep runs, in which phases. Pure: a phase follows from what the phases before it found."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.collect.probe.redact import redacted_variable, without_secrets
from pipeprof.errors import UsageError
from pipeprof.experiment.sweep.spec import BASE, HINT, Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.experiment.sweep.spec import Named, Spec

PHASES = ("first round", "additions", "confirmation")


@dataclass(frozen=True)
class Variant:
    """One row: `options` are all of it, those of the base included; `own` is what it has beyond the base."""

    name: str
    options: Options
    own: Options

    def facts(self) -> dict[str, Any]:
        """Its own options, as the TOML has them; the values of secrets are left out."""
        facts: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.own))
        if "env" in facts:
            facts["env"] = {name: redacted_variable(name, str(value)) for name, value in facts["env"].items()}
        facts |= {name: without_secrets(facts[name]) for name in ("args", "command") if name in facts}
        return facts | ({"prepare": list(map(without_secrets, facts["prepare"]))} if "prepare" in facts else {})


@dataclass(frozen=True)
class Phase:
    """Arms that are measured in turn; the first is the reference. `family`: comparisons that share `alpha`."""

    number: int
    name: str
    arms: tuple[Variant, ...]
    family: int
    alpha: float

    @property
    def reference(self) -> Variant:
        """The arm that the others are held against."""
        return self.arms[0]


@dataclass(frozen=True)
class PhaseResult:
    """What a phase found: the best arm whose verdict is better; None without one. `is_complete`: not cut short."""

    best: str | None
    is_complete: bool = True


def next_phase(spec: Spec, done: Sequence[PhaseResult]) -> Phase | None:
    """The phase that follows those that are done; None when there is no more.

    List and grid have one phase. Greedy has three: every variant against the base; the best of them, or the base when
    none is better, plus one addition at a time; and in fresh repetitions what came out of both against the base.
    Additions are never put together. Raises UsageError for option sets that do not go together.
    """
    base = Variant(BASE, spec.base, Options())
    if done and not done[-1].is_complete:
        return None
    if spec.search == "greedy":
        return _greedy(spec, base, done)
    if done:
        return None
    variants = _grid(spec) if spec.search == "grid" else _list(spec)
    return Phase(0, "", (base, *variants), len(variants), spec.alpha)


def _greedy(spec: Spec, base: Variant, done: Sequence[PhaseResult]) -> Phase | None:
    share, first = spec.alpha / len(PHASES), _list(spec)
    if not done:  # what cannot be added to one of them is refused before anything is run
        added_to = [_added(spec, variant, addition) for variant in first for addition in spec.addition]
        _refuse_double([variant.name for variant in (*first, *added_to)], "give one of them another name")
        return Phase(0, PHASES[0], (base, *first), len(first), share)
    variant_of = {variant.name: variant for variant in (base, *first)}
    winner = variant_of[done[0].best or BASE]
    added = tuple(_added(spec, winner, addition) for addition in spec.addition)
    if len(done) == 1 and added:
        return Phase(1, PHASES[1], (winner, *added), len(added), share)
    if len(done) == (2 if added else 1):
        variant_of |= {variant.name: variant for variant in added}
        candidate = variant_of[done[-1].best or winner.name]
        return None if candidate.name == BASE else Phase(2, PHASES[2], (base, candidate), 1, share)
    return None


def combined(base: Options, more: Options, where: str) -> Options:
    """Both option sets in one; the second goes first where they speak of the same.

    Raises UsageError for changes of two different dataset operators: one can be changed at a time.
    """
    one, other = base.dataset, more.dataset
    if one and other and (one.op, one.nth) != (other.op, other.nth):
        raise UsageError(
            f"`{where}` changes two dataset operators, {one.op} {one.nth} and {other.op} {other.nth}",
            f"one operator can be changed at a time; {HINT}",
        )
    return Options(
        prepare=base.prepare + more.prepare,
        command=more.command or base.command,
        env=base.env | more.env,
        args=base.args + more.args,
        dataset=_over(one, other),
        context=_over(base.context, more.context),
    )


def _over(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    given = {name: value for name, value in msgspec.structs.asdict(other).items() if value is not None}
    return msgspec.structs.replace(one, **given)


def _list(spec: Spec) -> tuple[Variant, ...]:
    return tuple(_variant(spec, one.name, one) for one in spec.variant)


def _grid(spec: Spec) -> tuple[Variant, ...]:
    """All combinations of one or no option of each axis, but the one without any: that is the base."""
    variants = []
    for choice in itertools.product(*((None, *axis.option) for axis in spec.axis)):
        taken = [option for option in choice if option is not None]
        if not taken:
            continue
        name, own = " + ".join(option.name for option in taken), Options()
        for option in taken:
            own = combined(own, option, name)
        variants.append(_variant(spec, name, own))
    _refuse_double([variant.name for variant in variants], "give the options of the axes other names")
    return tuple(variants)


def _refuse_double(names: Sequence[str], hint: str) -> None:
    """Raises UsageError for a name that is there twice: repetitions and artefacts are known by it."""
    double = next((name for name, count in Counter(names).items() if count > 1), None)
    if double:
        raise UsageError(f"two variants would have the name `{double}`", hint)


def _added(spec: Spec, winner: Variant, addition: Named) -> Variant:
    name = addition.name if winner.name == BASE else f"{winner.name} + {addition.name}"
    return _variant(spec, name, combined(winner.own, addition, name))


def _variant(spec: Spec, name: str, own: Options) -> Variant:
    plain = Options(**{field: getattr(own, field) for field in Options.__struct_fields__})
    return Variant(name, combined(spec.base, plain, name), plain)
