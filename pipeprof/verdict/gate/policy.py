"""What the gate fails on and how sure it has to be: `[tool.pipeprof.gate]` of pyproject.toml or pipeprof.toml. Pure.

Whether two sides were measured under the same conditions. Pure.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from pipeprof.errors import UsageError, did_you_mean
from pipeprof.verdict.gate import MOST_ROUNDS
from pipeprof.verdict.gate.result import Verdict, note

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


Family = Literal["primary", "informing", "secondary", "deterministic"]
Direction = Literal["lower", "higher"]
MOST_PRIMARY = 5
SWITCHES: dict[object, Family] = {"decides": "primary", "informs": "informing", False: "secondary"}
HINT = "see docs/policy.md for the keys and their meaning"
_Kind = TypeVar("_Kind", bound=msgspec.Struct)


class Rule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """How one metric is judged.

    A change counts from `min_effect` (relative) and `floor` (absolute, in `unit`) on; `margin` is the relative change
    inside which "unchanged" is said. `direction`: lower or higher is better. With `share`, the median over all metrics
    of the same prefix is taken out of each repetition first (common mode), so that a metric stands for its share.
    An `exact` one is the same in every repetition: a difference counts from one repetition on, of any size unless
    `min_effect` or `floor` say more.
    """

    family: Family = "primary"
    unit: str = ""
    direction: Direction = "lower"
    min_effect: float = 0.02
    floor: float = 0.0
    margin: float = 0.03
    share: bool = False
    exact: bool = False


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
        "step_time_p90": Rule(family="informing", unit="ns", floor=50e3),
        "data_wait": Rule(unit="ns", min_effect=0.05, floor=50e3, margin=0.05),
        "first_step_time": Rule(family="informing", unit="ns", min_effect=0.05, floor=50e6, margin=0.10),
        "peak_memory": Rule(unit="bytes", floor=2**20),
        "instructions": Rule(family="informing", exact=True, min_effect=0.005, floor=20),
    }


# Metrics that no entry names are judged by their prefix; without a known prefix, as a primary one.
PREFIXES: dict[str, Rule] = {
    "op/": Rule(family="secondary", unit="ns", min_effect=0.05, share=True),
    "pipeline/": Rule(family="secondary", unit="ns", min_effect=0.05, floor=50e3),
    "phase/": Rule(family="secondary", unit="ns", min_effect=0.05, floor=50e3),
    # Only jobs of several ranks have it: it decides there, and costs the comparisons of others no alpha.
    "communication/tail": Rule(unit="ns", min_effect=0.10, floor=50e3, margin=0.10),
    "communication/": Rule(family="secondary", unit="ns", min_effect=0.05, floor=50e3),
    "count/": Rule(family="deterministic", exact=True, min_effect=0.0, margin=0.0),
    "instructions/": Rule(family="deterministic", exact=True, min_effect=0.0, margin=0.0),
    "bytes/": Rule(family="deterministic", exact=True, unit="bytes", min_effect=0.0, margin=0.0),
    "benchmark/": Rule(unit="s"),
}


class Policy(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """The gate's settings; the defaults are those of docs/policy.md.

    `alpha` is the chance, over all primary metrics and looks of one comparison, of a false "regressed". `looks` are
    the repetitions per side after which `ab` judges; `budget_s` ends it earlier. `least_reps`: fewer per side are
    never judged. `detect`: the change that "repetitions needed" is computed for, found with `power`. `commands`: the
    only ones that may be measured against a base revision; any when empty. `confirm`: what a "regressed" by time alone
    needs beside one session.
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
    commands: tuple[str, ...] = ()
    confirm: Literal["", "other-runner"] = ""
    acknowledge: tuple[Acknowledgement, ...] = ()

    def rule(self, metric: str) -> Rule:
        """The rule of a metric: its entry, else that of its prefix, else the default one."""
        if metric in self.metrics:
            return self.metrics[metric]
        return next((rule for prefix, rule in PREFIXES.items() if metric.startswith(prefix)), Rule())


def read_policy(content: Mapping[str, Any], where: str) -> Policy:
    """A policy from a parsed table; metrics that it does not name keep their defaults.

    In place of a table a metric may have "decides", "informs", or `false` (secondary).

    Raises UsageError that names `where` and the key for unknown keys and wrong values.
    """
    given = dict(content)
    metrics = given.pop("metrics", {})
    if not isinstance(metrics, dict):
        raise UsageError(f"`metrics` in {where} is not a table", HINT)
    rules = _rules() | {name: _rule(name, entry, where) for name, entry in metrics.items()}
    if isinstance(given.get("acknowledge"), list):
        given["acknowledge"] = [_with_day(entry) for entry in given["acknowledge"]]
    policy = _converted({**given, "metrics": {}}, Policy, where)
    return checked(msgspec.structs.replace(policy, metrics=rules), where)


def usable(policy: Policy | Mapping[str, Any] | None) -> Policy:
    """The policy that was given, or as a table, or the default one. Raises UsageError as `read_policy`."""
    if policy is None:
        return Policy()
    if isinstance(policy, Policy):
        return checked(policy, "the policy")
    return read_policy(policy, "the policy")


def _rule(name: str, entry: object, where: str) -> Rule:
    default = Policy().rule(name)
    if entry is False or isinstance(entry, str):
        if entry not in SWITCHES:
            said = f'policy in {where}: `metrics.{name}` is {entry!r}, expected "decides", "informs", false or a table'
            raise UsageError(said, HINT)
        return msgspec.structs.replace(default, family=SWITCHES[entry])
    if not isinstance(entry, dict):
        said = f'policy in {where}: `metrics.{name}` is {entry!r}, expected a table, "decides", "informs" or false'
        raise UsageError(said, HINT)
    return _converted(msgspec.to_builtins(default) | entry, Rule, f"{where}, `metrics.{name}`")


def _with_day(entry: object) -> object:
    """An acknowledgement whose day may be a date of TOML's own."""
    if isinstance(entry, dict) and isinstance(entry.get("expires"), dt.date):
        return {**entry, "expires": entry["expires"].isoformat()}
    return entry


def _converted(content: Mapping[str, Any], kind: type[_Kind], where: str) -> _Kind:
    try:
        return msgspec.convert(content, kind, strict=True)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        said = str(error).replace("Object contains unknown field", "there is no key")
        unknown = re.fullmatch(r"there is no key `(.*?)`( - at `\$\.acknowledge\[.*)?", said)
        within = Acknowledgement if unknown and unknown[2] else kind
        names = [field.name for field in msgspec.structs.fields(within)]
        hint = did_you_mean(unknown[1], names, HINT) if unknown else HINT
        raise UsageError(f"policy in {where}: {said}", hint) from error


def checked(policy: Policy, where: str) -> Policy:
    """The same policy. Raises UsageError that names `where` and the key for a value that makes no sense."""
    for wrong, text in (*_wrong_numbers(policy), *_wrong_rules(policy), *_wrong_entries(policy)):
        if wrong:
            raise UsageError(f"policy in {where}: {text}", HINT)
    return policy


def _wrong_numbers(policy: Policy) -> list[tuple[bool, str]]:
    looks, budget_s = list(policy.looks), policy.budget_s
    return [
        (not 0 < policy.alpha <= 0.2, f"alpha {policy.alpha}, expected more than 0 and at most 0.2"),
        (not 0.5 <= policy.power < 1, f"power {policy.power}, expected 0.5 to 1"),
        (not 0 < policy.detect < math.inf, f"detect {policy.detect}, expected more than 0"),
        (budget_s is not None and not 0 < budget_s < math.inf, f"budget_s {budget_s}, expected more than 0"),
        (not looks or looks != sorted(set(looks)), "looks must be strictly increasing"),
        (max(looks, default=0) > MOST_ROUNDS, f"looks has {max(looks, default=0)}, expected at most {MOST_ROUNDS}"),
        (bool(looks) and looks[0] < policy.least_reps, "the first look has fewer than least_reps"),
        (policy.least_reps < 2, "least_reps must be at least 2: one repetition has no spread"),
        (
            not all(_is_command(text) for text in policy.commands),
            "commands must be lines as a shell takes them",
        ),
        (policy.least_jobs < 2, "least_jobs must be at least 2: one job has no spread"),
    ]


def _wrong_rules(policy: Policy) -> list[tuple[bool, str]]:
    checks = []
    for name, rule in policy.metrics.items():
        for key in ("min_effect", "floor", "margin"):
            value = getattr(rule, key)
            checks.append((not 0 <= value < math.inf, f"{key} of `{name}` is {value}, expected 0 or more"))
        varies = rule.family == "deterministic" and not rule.exact
        checks.append((varies, f"family of `{name}` is deterministic and exact is false, expected exact = true"))
    primary = sum(rule.family == "primary" and not rule.exact for rule in policy.metrics.values())
    text = f"{primary} primary metrics; at most {MOST_PRIMARY} may decide a comparison"
    return [*checks, (primary > MOST_PRIMARY, text)]


def _wrong_entries(policy: Policy) -> list[tuple[bool, str]]:
    checks = []
    for entry in policy.acknowledge:
        what = f"of the acknowledgement of `{entry.metric}`"
        checks += [
            (not 1 < entry.max_ratio < math.inf, f"max_ratio {what} is {entry.max_ratio}, expected more than 1"),
            (not entry.reason.strip(), f"reason {what} is empty"),
            (not _is_day(entry.expires), f"expires {what} is `{entry.expires}`, expected a day, as 2026-12-31"),
        ]
    return checks


def _is_command(text: str) -> bool:
    try:
        return bool(shlex.split(text))
    except ValueError:
        return False


def _is_day(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


SOFT = frozenset(["host", "kernel"])  # another machine of the same class, or an update: the job says the rest
GIB = 2**30


def differences(base: Mapping[str, Any], new: Mapping[str, Any], ignored: Collection[str] = ()) -> list[dict[str, Any]]:
    """Fields in which two fingerprints differ: [{name, base, new, hard}], hard ones first.

    Memory counts in whole GiB, environment variables one by one (`environment.OMP_NUM_THREADS`). A field that one side
    does not know differs. A hard difference means that the times cannot be compared; `ignored` fields are soft.
    """
    one, other = dict(_flat(base)), dict(_flat(new))
    fields = [
        {
            "name": name,
            "base": one.get(name),
            "new": other.get(name),
            "hard": name not in SOFT and name not in ignored and name.partition(".")[0] not in ignored,
        }
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]
    return sorted(fields, key=lambda entry: (not entry["hard"], entry["name"]))


def incomparable(verdict: Verdict, differing: Sequence[Mapping[str, Any]]) -> Verdict:
    """`verdict` without a judgement on any metric: none is judged across machines or versions."""
    conditions = note("conditions", names=[entry["name"] for entry in differing if entry["hard"]])
    metrics = tuple(
        replace(one, verdict="incomparable", reasons=(conditions,), p_value=None, alpha=None, reps_needed=None)
        for one in verdict.metrics
    )
    return Verdict("incomparable", metrics, (), verdict.looks, None)


def _flat(fingerprint: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in fingerprint.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        elif name.endswith("memory_bytes") and isinstance(value, (int, float)):
            yield "memory_gib", round(value / GIB)
        elif value is not None:
            yield name, value
