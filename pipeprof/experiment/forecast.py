"""What a session of `pipeprof ab` will be able to find: from its first repetitions, or from `pipeprof qualify`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.collect.probe.redact import without_secrets
from pipeprof.errors import PipeprofError
from pipeprof.record.document import BAD_JSON
from pipeprof.record.plain_file import read_file
from pipeprof.record.text import printable_all
from pipeprof.units import format_ns
from pipeprof.verdict.gate.judge import family_size
from pipeprof.verdict.gate.planned import least_planned
from pipeprof.verdict.gate.policy import differences
from pipeprof.verdict.gate.power import MOST_PERCENT, least_found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeprof.verdict.gate.policy import Policy

    Facts = dict[str, Any]

STEP = "step_time_median"
FOLDERS, RESULT = "pipeprof-qualify-*", "qualify.json"
MOST_BYTES = 1 << 24


class _Pool(msgspec.Struct):
    seconds_per_repetition: float
    spread: dict[str, float]


class _Qualified(msgspec.Struct):
    command: list[str]
    pool: _Pool
    machine: dict[str, Any] = {}


def within_plan(spread: float, level: float | None, last: int, policy: Policy) -> Facts:
    """The least slow-down of the step time that a session with `last` repetitions per side finds.

    `spread`: standard deviation of the logarithm between repetitions; `level`: usual step time in ns, None where it is
    not known. `change` is None where not even 50 % is found.
    """
    rule = policy.rule(STEP)
    least = max(math.log1p(rule.min_effect), math.log1p(rule.floor / level) if level else 0.0)
    alpha = policy.alpha / family_size(policy, "primary", {})
    return {"repetitions": last, "change": least_found(spread, least, last, alpha, policy.power), "spread": spread}


def forecast_words(facts: Mapping[str, Any], budget_s: float | None) -> str:
    """`slow-downs of 6 % or more are found within 10 min (14 repetitions per side)`."""
    change, runs = facts["change"], f"{facts['repetitions']} repetitions per side"
    where = f"within {format_ns(budget_s * 1e9)} ({runs})" if budget_s is not None else f"with up to {runs}"
    if change is None:
        return f"even a slow-down of {MOST_PERCENT} % may well be missed {where}"
    return f"slow-downs of about {change * 100:.0f} % or more are found {where}"


def before(folder: Path, commands: Sequence[Sequence[str]], machine: Mapping[str, Any], policy: Policy) -> str | None:
    """What the newest qualification in `folder`, of one of the commands on this machine, says; None without one."""
    asked = [printable_all(without_secrets(command)) for command in commands]
    for path in sorted(folder.glob(f"{FOLDERS}/{RESULT}"), reverse=True):
        earlier = _read(path)
        if (
            earlier
            and earlier.command in asked
            and not any(one["hard"] for one in differences(earlier.machine, machine))
        ):
            return _said(earlier, path, policy)
    return None


def _said(earlier: _Qualified, path: Path, policy: Policy) -> str | None:
    spread, pace, last = earlier.pool.spread.get(STEP), earlier.pool.seconds_per_repetition, policy.looks[-1]
    if spread is None or pace <= 0:
        return None
    by = f"by the qualification in `{path.parent.name}`"
    if policy.budget_s is not None:
        last = min(last, int(policy.budget_s / (2 * pace)) - 1)  # one run of each side is not judged
    if last < least_planned(policy):
        needed = format_ns(2e9 * pace * (least_planned(policy) + 1))
        return f"{by}, the time limit is too short for a verdict: about {needed} are needed"
    return f"{by}, {forecast_words(within_plan(spread, None, last, policy), policy.budget_s)}"


def _read(path: Path) -> _Qualified | None:
    try:
        return msgspec.json.decode(read_file(path, MOST_BYTES), type=_Qualified)
    except (OSError, PipeprofError, *BAD_JSON):
        return None
