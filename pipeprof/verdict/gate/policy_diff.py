"""In which settings one policy differs from another, and whether that lets more pass. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pipeprof.verdict.gate.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator

Effect = Literal["looser", "stricter", "other"]
# Whether a larger value lets more pass. Less `alpha` is surer of each "regressed", so more slips through; a budget that
# ends sooner leaves more undecided.
_LARGER: dict[str, Effect] = {
    "alpha": "stricter", "budget_s": "stricter", "least_reps": "looser", "least_jobs": "looser", "min_effect": "looser",
    "floor": "looser", "margin": "looser",
}  # fmt: skip
_OPPOSITE: dict[Effect, Effect] = {"looser": "stricter", "stricter": "looser", "other": "other"}
_WEIGHT = {"secondary": 0, "deterministic": 0, "informing": 1, "primary": 2}  # only primary metrics fail a comparison


class Departure(msgspec.Struct, kw_only=True, frozen=True):
    """One setting: its key as in the file, its value in the reference and in the policy, and what that does.

    An entry of a list (`acknowledge`, `ignore_fingerprint`) is a setting of its own; None where it is not there.
    """

    key: str
    reference: Any
    value: Any
    effect: Effect


def departures(policy: Policy, reference: Policy | None = None) -> list[Departure]:
    """Every setting in which `policy` differs from `reference` (the defaults), in the order of docs/policy.md."""
    other = reference or Policy()
    return [*_plain(policy, other), *_entries(policy, other), *_metrics(policy, other)]


def _plain(policy: Policy, reference: Policy) -> Iterator[Departure]:
    for key in ("alpha", "looks", "budget_s", "least_reps", "detect", "power", "least_jobs", "commands", "confirm"):
        yield from _one(key, key, getattr(reference, key), getattr(policy, key))


def _entries(policy: Policy, reference: Policy) -> Iterator[Departure]:
    """Each name that may differ and each accepted regression that only one of the two has."""
    for key in ("ignore_fingerprint", "acknowledge"):
        before, after = ([msgspec.to_builtins(one) for one in getattr(side, key)] for side in (reference, policy))
        for entry in after:
            if entry not in before:
                yield Departure(key=key, reference=None, value=entry, effect="looser")
        for entry in before:
            if entry not in after:
                yield Departure(key=key, reference=entry, value=None, effect="stricter")


def _metrics(policy: Policy, reference: Policy) -> Iterator[Departure]:
    for name in dict.fromkeys([*reference.metrics, *policy.metrics]):
        before, after = reference.rule(name), policy.rule(name)
        for key in ("family", "unit", "direction", "min_effect", "floor", "margin", "share", "exact"):
            yield from _one(f"metrics.{name}.{key}", key, getattr(before, key), getattr(after, key))


def _one(name: str, key: str, reference: Any, value: Any) -> Iterator[Departure]:
    if reference != value:
        yield Departure(
            key=name, reference=_listed(reference), value=_listed(value), effect=_effect(key, reference, value)
        )


def _effect(key: str, reference: Any, value: Any) -> Effect:
    if key in ("direction", "exact"):  # times that vary are never decided as exact ones
        return "looser"  # what was worse is better now
    if key == "family":
        less = _WEIGHT[value] - _WEIGHT[reference]
        return "looser" if less < 0 else "stricter" if less > 0 else "other"
    if key == "looks":
        return "looser" if value[-1] < reference[-1] else "other"  # it ends undecided sooner
    if key == "confirm":
        return "looser" if value else "stricter"  # fewer regressions fail
    if key == "commands":
        return "other" if reference and value else "stricter" if value else "looser"
    effect = _LARGER.get(key, "other")
    return effect if _number(value) > _number(reference) else _OPPOSITE[effect]


def _number(value: Any) -> float:
    """A setting as a number; no budget is more than any."""
    return float("inf") if value is None else float(value) if isinstance(value, (int, float)) else 0.0


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
