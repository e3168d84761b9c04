"""Metrics as shares: what all metrics of a prefix did in a repetition is taken out of each (common mode). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeprof.verdict.gate.statistics import LEAST_COMMON, common_mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.gate.policy import Policy
    from pipeprof.verdict.gate.samples import Samples
    from pipeprof.verdict.gate.statistics import Array


def prefix_of(metric: str) -> str:
    """`op/` of `op/matmul/median`; empty without a slash."""
    head, slash, _ = metric.partition("/")
    return head + slash if slash else ""


def shares(base: Mapping[str, Samples], new: Mapping[str, Samples], policy: Policy) -> dict[str, tuple[Array, Array]]:
    """Logs of base and new without the common mode, for metrics whose rule says `share`, in the order of their values.

    Left out, and so judged as they are: metrics with values that are not positive, and prefixes with fewer than three
    metrics on both sides, where the median would take a real change along.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(set(base) & set(new)):
        values = (*base[name].values, *new[name].values)
        if policy.rule(name).share and values and min(values) > 0:
            groups.setdefault(prefix_of(name), []).append(name)
    centred = {}
    for names in groups.values():
        if len(names) >= LEAST_COMMON:
            left, right = _centred(base, names), _centred(new, names)
            centred.update({name: (left[name], right[name]) for name in names})
    return centred


def _centred(side: Mapping[str, Samples], names: Sequence[str]) -> dict[str, Array]:
    places = {name: side[name].repetitions() for name in names}
    columns = {key: at for at, key in enumerate(sorted({key for keys in places.values() for key in keys}))}
    at = {name: np.array([columns[key] for key in keys], dtype=np.intp) for name, keys in places.items()}
    logs = {name: np.log(np.asarray(side[name].values, dtype=float)) for name in names}
    table = np.full((len(names), len(columns)), np.nan)
    for row, name in enumerate(names):
        table[row, at[name]] = logs[name]
    common = common_mode(table)
    return {name: logs[name] - common[at[name]] for name in names}
