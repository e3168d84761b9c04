"""What a change is predicted to bring, and what pairs of runs with and without it gave, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.answer.shape import expected
from pipeprof.units import format_bytes, format_count
from pipeprof.verdict.speedup import LEVEL, MOST_PAIRS, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def changes(what: Iterable[Mapping[str, Any]]) -> str:
    """All in one line: `MapOp 2 `rotate`: workers 1 -> 2; BatchOp 1: workers 1 -> 2`."""
    return "; ".join(map(change, what))


def change(item: Mapping[str, Any]) -> str:
    """Of one operator, or of what the command runs in."""
    text = values(item["change"])
    named = f" `{item['name']}`" if item["name"] else ""
    moved = item["change"].get("maps_after")
    if moved is not None:
        text = "in front of the map that feeds it" if moved[1] == 1 else f"in front of the {moved[1]} maps that feed it"
    if item["op"] == "environment":
        text = ", ".join(f"{name}={new}" for name, (_, new) in item["change"].items())
    if "cache" in item["change"]:
        text = f"rows kept in memory, at most {format_bytes(item['change']['cache'][1])}"
    return f"{item['op']}{named}: {text}"


def values(changed: Mapping[str, Sequence[Any]]) -> str:
    """`workers 1 -> 2, processes no`: what stays as it is, is one value."""
    return ", ".join(
        f"{name} {_value(new)}" if old == new else f"{name} {_value(old)} -> {_value(new)}"
        for name, (old, new) in changed.items()
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unset" if value is None else str(value)


SAYS_NOTHING = 100  # times the low end of an interval, as its high end
AGAIN = 2  # times as many pairs, where so many did not decide


def figure(measured: Mapping[str, Any], mark: str = "x") -> str:
    """`x1.60`, or `x1.80 or x3.10` where there are two speeds."""
    return " or ".join(f"{mark}{one['ratio']:.2f}" for one in measured["speeds"] or [measured])


def spread(measured: Mapping[str, Any]) -> str:
    """What the figure comes from: the interval and the single pairs, or the two speeds."""
    if measured["speeds"]:
        listed = [
            f"x{speed['ratio']:.2f} in {format_count(len(speed['pairs']), 'pair')}" for speed in measured["speeds"]
        ]
        return f"two speeds: {', '.join(listed)}"
    pairs = f"single pairs x{measured['low']:.2f} to x{measured['high']:.2f}"
    interval = measured["interval"]
    if interval is None or interval[1] > SAYS_NOTHING * interval[0]:
        return pairs
    return f"{100 * LEVEL:.0f} % interval x{interval[0]:.2f} to x{interval[1]:.2f}; {pairs}"


def undecided_lines(measured: Mapping[str, Any]) -> list[str]:
    """That there is no answer, why, and what may bring one."""
    if measured["decided"] == "two_speeds":
        return [
            f"undecided: {figure(measured)} ({spread(measured)})",
            "each run has one of the speeds; more pairs do not change that",
        ]
    more = f"--max-pairs {max(MOST_PAIRS, AGAIN * measured['pairs'])}"
    if measured["stopped"] == "budget":
        more = "a longer --budget"
    if measured["interval"] is None:
        return [f"undecided: a single pair says {figure(measured)}", f"measure more of them: {more}"]
    return [
        f"undecided: {format_count(measured['pairs'], 'pair')} do not agree ({spread(measured)})",
        f"measure more of them ({more}), on a quiet machine if you can",
    ]


def speed_lines(content: Mapping[str, Any]) -> list[str]:
    """Which runs have two speeds: those of a side, or single ones within themselves."""
    words = {"a": "unchanged", "b": "changed"}
    side = content["measured"]["speeds_of"]
    said = [f"it is the {words[side]} runs that have two speeds"] if side else []
    for run in content["runs"]:
        if run["speeds"]:
            listed = [f"{one['steps_per_second']:.1f} steps/s in {one['parts']}" for one in run["speeds"]]
            said.append(f"run {run['name']} changed its speed: {', '.join(listed)} of its {PARTS} parts")
    return said


def rates_line(content: Mapping[str, Any], before: str, after: str) -> str:
    """Steps/s of the runs of either side, each in the order of the pairs."""
    runs = sorted(content["runs"], key=lambda run: run["pair"])
    rates = {side: [run["steps_per_second"] for run in runs if run["side"] == side] for side in ("a", "b")}
    return f"steps/s {before} {_listed(rates['a'])}; {after} {_listed(rates['b'])}"


def _listed(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:.1f}" for rate in rates)


def prediction_lines(content: Mapping[str, Any]) -> list[str]:
    """What is changed and what that should bring."""
    op, predicted = content["op"], content["prediction"]
    change = values(content["change"])
    named = f" `{op['name']}`" if op["name"] else ""
    origin = f"measured before, by `{predicted['trial']}`" if predicted.get("trial") else "predicted"
    lines = [f"change: {op['op_type']} {op['op_id']}{named}: {change}", f"{origin}: {_gain(predicted)}"]
    lines += [] if predicted.get("trial") else [f"  {basis}" for basis in predicted["basis"]]
    if predicted["limited_by"] is not None:
        lines.append(f"  then {_limit(predicted['limited_by'], op['op_id'])}")
    return lines


def _limit(limit: int | str, changed: int) -> str:
    if limit == "consumer":
        return "the training itself is the bottleneck"
    return "this operator is still the bottleneck" if limit == changed else f"operator {limit} is the bottleneck"


def _gain(predicted: Mapping[str, Any]) -> str:
    ratio, low, high = (predicted[name] for name in ("ratio", "low", "high"))
    if ratio is None and low is None:
        return f"not possible: {predicted['reason']}"
    return expected(ratio, low, high) + ("" if ratio is not None else f": {predicted['reason']}")
