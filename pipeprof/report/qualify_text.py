"""The result of `pipeprof qualify` for people."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from pipeprof.report.document import Document
from pipeprof.report.sections import Block, Section
from pipeprof.report.words.comparison import metric_name


def document(content: Mapping[str, Any]) -> Document:
    """False alarms, what was found, what can be found here and what it costs."""
    block = Block(
        ("change", "repetitions per side", "minutes"), [_sees(row) for row in content["sees"]], frozenset(range(3))
    )
    within = [_within(content["within"])] if content.get("within") else []
    false = content["false_alarms"]
    rate = f"{_rate(false)} of {false['sessions']} simulated comparisons of identical code were called regressed"
    slow_downs = [line for one in content["slow_downs"] for line in _slow_down(one)]
    return Document(f"False alarms: {rate} (allowed: {content['alpha'] * 100:g} %)", [
        Section("", notes=[f"  {_details(false)}", *slow_downs]),
        Section("Measured", notes=_measured(content["pool"])),
        Section("What can be found on this machine", notes=within + content["notes"], blocks=[block]),
    ])  # fmt: skip


def _measured(pool: Mapping[str, Any]) -> list[str]:
    spread = ", ".join(f"{metric_name(name)} {value * 100:.1f} %" for name, value in pool["spread"].items())
    each = f"{pool['repetitions']} repetitions in {pool['rounds']} rounds, {pool['seconds'] / 60:.1f} minutes"
    return [
        f"{each} ({pool['seconds_per_repetition']:.1f} s each)",
        f"noise: {spread} between repetitions (standard deviation)",
    ]


def _slow_down(slow: Mapping[str, Any]) -> list[str]:
    measured, low, high = (slow[name] * 100 for name in ("measured", "measured_low", "measured_high"))
    power = f"found in {_rate(slow)} of {slow['sessions']} simulated comparisons"
    lines = [
        f"Slow-down of {slow['injected'] * 100:g} %: {power}",
        f"  measured {measured:+.1f} % [{low:.1f}, {high:.1f}]; {_details(slow)}",
    ]
    if slow["how"] == "arithmetic":
        lines.append(
            "  most of the added time was hidden, since the training waits for something else: times were made longer "
            "by calculation instead"
        )
    return lines


def _sees(row: Mapping[str, Any]) -> list[str]:
    reps = "more than 200" if row["repetitions"] is None else str(row["repetitions"])
    reps = reps if row["counts"] else "too small to count"
    minutes = "-" if row["minutes"] is None else f"{row['minutes']:.1f}"
    return [f"{row['change'] * 100:.0f} %", reps, minutes]


def _within(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the gate finds in so many minutes, in one sentence."""
    phrases = [
        f"in {' or '.join(format(row['minutes'], 'g') for row in same)} minutes {what}"
        for what, same in itertools.groupby(rows, key=_least)
    ]
    return f"Here `pipeprof ab` is estimated to find {', '.join(phrases)}."


def _least(row: Mapping[str, Any]) -> str:
    return (
        "not even a slow-down of 50 %"
        if row["change"] is None
        else f"slow-downs of {row['change'] * 100:.0f} % or more"
    )


def _details(facts: Mapping[str, Any]) -> str:
    words = ", ".join(f"{word} {count}" for word, count in facts["verdicts"].items())
    return f"{words}; {facts['mean_repetitions']:.1f} repetitions per side on average"


def _rate(facts: Mapping[str, Any]) -> str:
    return f"{facts['rate'] * 100:.1f} % [{facts['low'] * 100:.1f}, {facts['high'] * 100:.1f}]"
