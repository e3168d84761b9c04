"""The result of `pipeprof qualify` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def text(content: Mapping[str, Any]) -> str:
    """False alarms, what was found, what can be found here and what it costs."""
    pool, false = content["pool"], content["false_alarms"]
    spread = ", ".join(f"{name} {value * 100:.1f} %" for name, value in pool["spread"].items())
    each = f"{pool['repetitions']} runs in {pool['rounds']} rounds, {pool['seconds'] / 60:.1f} minutes"
    rate = f"{_rate(false)} of {false['sessions']} simulated comparisons of identical code were called regressed"
    lines = [f"measured      {each} ({pool['seconds_per_repetition']:.1f} s each)"]
    lines += [f"noise         {spread} between runs", ""]
    lines += [f"false alarms  {rate} (allowed: {content['alpha'] * 100:g} %)", f"  {_details(false)}"]
    for slow in content["slow_downs"]:
        lines += _slow_down(slow)
    lines += ["", "what can be found on this machine", f"  {'change':>8}  {'runs per side':>18}  {'minutes':>8}"]
    lines += [_sees(row) for row in content["sees"]]
    lines += [f"note: {note}" for note in content["notes"]]
    return "\n".join(lines) + "\n"


def _slow_down(slow: Mapping[str, Any]) -> list[str]:
    measured, low, high = (slow[name] * 100 for name in ("measured", "measured_low", "measured_high"))
    found = f"found in {_rate(slow)} of {slow['sessions']} simulated comparisons"
    lines = [
        f"slow-down     {slow['injected'] * 100:g} %: {found}",
        f"  measured {measured:+.1f} % [{low:.1f}, {high:.1f}]; {_details(slow)}",
    ]
    if slow["how"] == "arithmetic":
        lines.append(
            "  most of the added time was hidden, since the training waits for something else: times were made longer "
            "by calculation instead"
        )
    return lines


def _sees(row: Mapping[str, Any]) -> str:
    reps = "more than 200" if row["repetitions"] is None else str(row["repetitions"])
    reps = reps if row["counts"] else "too small to count"
    minutes = "-" if row["minutes"] is None else f"{row['minutes']:.1f}"
    return f"  {row['change'] * 100:>6.0f} %  {reps:>18}  {minutes:>8}"


def _details(facts: Mapping[str, Any]) -> str:
    words = ", ".join(f"{word} {count}" for word, count in facts["verdicts"].items())
    return f"{words}; {facts['mean_repetitions']:.1f} runs per side on average"


def _rate(facts: Mapping[str, Any]) -> str:
    return f"{facts['rate'] * 100:.1f} % [{facts['low'] * 100:.1f}, {facts['high'] * 100:.1f}]"
