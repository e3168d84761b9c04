"""Whether two sides were measured under the same conditions. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeprof.verdict.gate.note import note
from pipeprof.verdict.gate.result import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

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
