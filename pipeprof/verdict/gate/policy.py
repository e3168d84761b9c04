"""What the gate fails on and how sure it has to be: `[tool.pipeprof.gate]` of pyproject.toml or pipeprof.toml. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

Family = Literal["primary", "secondary", "deterministic"]
Direction = Literal["lower", "higher"]
MOST_PRIMARY = 5
DAY = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"


class Rule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """How one metric is judged.

    A change counts from `min_effect` (relative) and `floor` (absolute, in `unit`) on; `margin` is the relative change
    inside which "unchanged" is said. `direction`: lower or higher is better. With `share`, the median over all metrics
    of the same prefix is taken out of each repetition first (common mode), so that a metric stands for its share.
    """

    family: Family = "primary"
    unit: str = ""
    direction: Direction = "lower"
    min_effect: float = 0.02
    floor: float = 0.0
    margin: float = 0.03
    share: bool = False


class Acknowledgement(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """A regression that was accepted: of `metric` in `workload` (`*` for all), up to `max_ratio`, until `expires`."""

    metric: str
    max_ratio: float
    reason: str
    expires: str
    workload: str = "*"
    reference: str = ""


def _rules() -> dict[str, Rule]:
    return {
        "step_time_median": Rule(unit="ns", floor=50e3),
        "step_time_p90": Rule(unit="ns", floor=50e3),
        "data_wait": Rule(unit="ns", min_effect=0.05, floor=50e3, margin=0.05),
        "first_step_time": Rule(unit="ns", min_effect=0.05, floor=50e6, margin=0.10),
        "peak_memory": Rule(unit="bytes", floor=2**20),
    }


# Metrics that no entry names are judged by their prefix; without a known prefix, as a primary one.
PREFIXES: dict[str, Rule] = {
    "op/": Rule(family="secondary", unit="ns", min_effect=0.05, share=True),
    "pipeline/": Rule(family="secondary", unit="ns", min_effect=0.05, floor=50e3),
    "phase/": Rule(family="secondary", unit="ns", min_effect=0.05, floor=50e3),
    "count/": Rule(family="deterministic", min_effect=0.0, margin=0.0),
    "bytes/": Rule(family="deterministic", unit="bytes", min_effect=0.0, margin=0.0),
    "benchmark/": Rule(unit="s"),
}


class Policy(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """The gate's settings; the defaults are those of docs/gate.md.

    `alpha` is the chance, over all primary metrics and looks of one comparison, of a false "regressed". `looks` are
    the repetitions per side after which `ab` judges; `budget_s` ends it earlier. `least_reps`: fewer per side are
    never judged. `detect`: the change that "repetitions needed" is computed for, found with `power`.
    """

    metrics: dict[str, Rule] = msgspec.field(default_factory=_rules)
    alpha: float = 0.008
    looks: tuple[int, ...] = (5, 8, 12, 16, 20)
    budget_s: float | None = None
    least_reps: int = 3
    detect: float = 0.05
    power: float = 0.9
    least_jobs: int = 8
    ignore_fingerprint: tuple[str, ...] = ()
    acknowledge: tuple[Acknowledgement, ...] = ()

    def rule(self, metric: str) -> Rule:
        """The rule of a metric: its entry, else that of its prefix, else the default one."""
        if metric in self.metrics:
            return self.metrics[metric]
        return next((rule for prefix, rule in PREFIXES.items() if metric.startswith(prefix)), Rule())


def read_policy(content: Mapping[str, Any], where: str) -> Policy:
    """A policy from a parsed table; metrics that it does not name keep their defaults, and `false` makes one secondary.

    Raises UsageError that names `where` and the key for unknown keys and wrong values.
    """
    try:
        given = dict(content)
        metrics = given.pop("metrics", {})
        if not isinstance(metrics, dict):
            raise UsageError(f"`metrics` in {where} is no table")
        rules = _rules()
        for name, entry in metrics.items():
            if entry is False:
                rules[name] = msgspec.structs.replace(Policy().rule(name), family="secondary")
                continue
            known = msgspec.to_builtins(rules.get(name, Policy().rule(name)))
            rules[name] = msgspec.convert(known | dict(entry), Rule, strict=True)
        found = msgspec.convert({**given, "metrics": {}}, Policy, strict=True)
        found = msgspec.structs.replace(found, metrics=rules)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UsageError(f"policy in {where}: {error}", "see docs/gate.md for the keys and their meaning") from error
    _check(found, where)
    return found


def _check(policy: Policy, where: str) -> None:
    primary = [name for name, rule in policy.metrics.items() if rule.family == "primary"]
    for wrong, text in (
        (len(primary) > MOST_PRIMARY, f"{len(primary)} primary metrics, at most {MOST_PRIMARY} can fail a comparison"),
        (not 0 < policy.alpha <= 0.2, f"alpha {policy.alpha}, expected more than 0 and at most 0.2"),
        (not 0.5 <= policy.power < 1, f"power {policy.power}, expected 0.5 to 1"),
        (not policy.looks or list(policy.looks) != sorted(set(policy.looks)), "looks must be growing numbers"),
        (bool(policy.looks) and policy.looks[0] < policy.least_reps, "the first look has fewer than least_reps"),
        (policy.least_reps < 2, "least_reps must be at least 2: one repetition has no spread"),
        (any(rule.min_effect < 0 or rule.floor < 0 or rule.margin < 0 for rule in policy.metrics.values()),
         "min_effect, floor and margin must not be negative"),
        (any(entry.max_ratio <= 1 for entry in policy.acknowledge), "max_ratio of an acknowledgement must be above 1"),
        (not all(re.fullmatch(DAY, entry.expires) for entry in policy.acknowledge),
         "expires of an acknowledgement must be a day, as 2026-12-31"),
    ):  # fmt: skip
        if wrong:
            raise UsageError(f"policy in {where}: {text}", "see docs/gate.md for the keys and their meaning")
