"""A tuning's changes as facts for its state and its report, and in the short words of its progress. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pipeprof.experiment.tune.bench import environment
from pipeprof.units import NS_PER_S, format_bytes, format_count, format_ns
from pipeprof.verdict.tuning import WORTH, candidates, kept_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.experiment.tune.bench import Seen
    from pipeprof.experiment.tune.state import Trial
    from pipeprof.verdict.tuning import Candidate, Goal


def words_of(what: Sequence[Mapping[str, Any]]) -> str:
    """Changes in one line: `map 2 rotate: workers 1 -> 2`."""
    return "; ".join(_one(item) for item in what)


def _one(item: Mapping[str, Any]) -> str:
    changes = ", ".join(f"{name} {_shown(old)} -> {_shown(new)}" for name, (old, new) in item["change"].items())
    if "cache" in item["change"]:
        changes = f"rows kept in memory, at most {format_bytes(item['change']['cache'][1])}"
    named = f" `{item['name']}`" if item.get("name") else ""
    return f"{item['op']}{named}: {changes}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unset" if value is None else str(value)


def what_of(found: Candidate, ops: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The changes of a candidate: each operator, what it is, and its settings before and after."""
    items: list[dict[str, Any]] = []
    for change in found.changes:
        row = ops.get(change.op_id, {})
        old = {
            "workers": row.get("workers"),
            "prefetch": row.get("capacity"),
            "processes": bool(row.get("uses_processes")),
            "maps_after": 0,
            "cache": None,
        }
        new = {name: getattr(change, name) for name in old}
        changed = {name: [old[name], value] for name, value in new.items() if value is not None}
        op = f"{row.get('op_type') or 'operator'} {change.op_id}"
        items.append(
            {"op": op, "op_id": change.op_id, "name": row.get("name"), "place": row.get("site"), "change": changed}
        )
    if found.environment:
        changed = {name: [None, value] for name, value in found.environment.items()}
        items.append({"op": "environment", "op_id": None, "name": None, "place": None, "change": changed})
    return items


def tried_caches(seen: Seen) -> Sequence[Mapping[str, Any]]:
    """Caches that a trial can show: what fills in one epoch helps from the second on."""
    return seen.caches if seen.epochs > 1 else ()


def seen_facts(seen: Seen, goal: Goal) -> dict[str, Any]:
    """What a report says of a recording."""
    loop = seen.loop
    return {
        "rate": loop.rate,
        "consumer": loop.consumer,
        "site": seen.site,
        "other_sites": sorted(seen.others),
        "operators": [
            {name: row.get(name) for name in ("op_id", "op_type", "name", "node", "site", "workers", "uses_processes")}
            for row in seen.ops
        ],
        "not_worth": [
            {"what": what_of(one, {row["op_id"]: row for row in seen.ops}), "ratio": one.prediction.ratio}
            for one in candidates(loop, environment(), goal, tried_caches(seen))
            if not one.may_pay
        ],
        "epochs": seen.epochs,
        "caches": [
            dict(one) | {"tried": one in kept_rows(tried_caches(seen))} for one in seen.caches if one["ratio"] >= WORTH
        ],
        "outside": [dict(one) for one in seen.outside],
    }


def told_prediction(found: Candidate) -> dict[str, Any]:
    """A prediction as the state keeps it; `learned`: it was corrected by what an earlier trial showed."""
    facts = asdict(found.prediction)
    basis = facts.pop("basis")
    return facts | {"learned": any(one["code"] == "learned" for one in basis)}


def promised(prediction: Mapping[str, Any]) -> str:
    """What a candidate should bring, behind its words."""
    if prediction["low"] is None or prediction["high"] is None:
        return " (no prediction)"
    return f" (predicted x{prediction['low']:.2f} to x{prediction['high']:.2f})"


def outcome(trial: Trial) -> str:
    """What came of a trial, in one line."""
    if trial.ratio is None:
        return f"{trial.verdict}: {trial.error}" if trial.error else trial.verdict
    took = format_ns(trial.seconds * NS_PER_S)
    needs = "" if trial.saved is None else f", needs x{1 / trial.saved:.2f}"
    pairs = format_count(len(trial.a), "pair")
    return f"x{trial.ratio:.2f}{needs} in {pairs}, {took}: {trial.verdict.replace('_', ' ')}"
