"""The history of a baseline: one line of JSON per write, for change points and slow drift. Never a gate by itself."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import RunError
from pipeprof.record.baseline_summary import is_primary
from pipeprof.record.document import BAD_JSON
from pipeprof.record.machine import fingerprint_hash, hard_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.record.measures import Measures

HISTORY_VERSION = 1
MOST_OPS = 20
_EXPLAIN = ("phase/", "pipeline/", "communication/", "instructions/")


class Entry(msgspec.Struct, kw_only=True):
    """One write. `medians`: of each primary metric over its repetitions, in the metric's own unit.

    `ratios`: those medians over the ones of `anchor`, the base arm measured in turn with them; empty without one.
    `fingerprint_hash`: points of different ones are never compared; `conditions` are its hard facts.

    `parts` and `facts` say why a level changed: medians of phases, pipeline stages and of the `MOST_OPS` operators with
    the most time, and the settings of the stages; `places` are file:line of these. Lines of before these were kept have
    none.
    """

    schema_version: int = HISTORY_VERSION
    created_at: str | None
    workload: str
    machine: str
    fingerprint_hash: str
    revision: str | None
    dirty: bool | None
    tag: str | None
    label: str
    reps: int
    medians: dict[str, float]
    anchor: str | None = None
    ratios: dict[str, float] = {}
    conditions: dict[str, Any] = {}
    parts: dict[str, float] = {}
    facts: dict[str, str] = {}
    places: dict[str, str] = {}


class Mark(msgspec.Struct, kw_only=True):
    """One value of a series: the median of a metric, or its ratio to the anchor, and where it comes from."""

    value: float
    group: str
    created_at: str | None
    revision: str | None
    tag: str | None


def entry_of(measures: Measures, machine: str, tag: str | None, anchor: Measures | None) -> Entry:
    """The line that measures leave in the history.

    Raises RunError when the anchor was measured on another machine or environment.
    """
    git: Mapping[str, Any] = measures.git or {}
    key = fingerprint_hash(measures.fingerprint)
    if anchor is not None and fingerprint_hash(anchor.fingerprint) != key:
        raise RunError(f"the anchor `{anchor.label}` and `{measures.label}` come from different machines or versions")
    medians, base = _medians(measures), _medians(anchor) if anchor is not None else {}
    return Entry(
        created_at=measures.created_at, workload=measures.workload, machine=machine, fingerprint_hash=key,
        revision=git.get("revision"), dirty=git.get("dirty"), tag=tag, label=measures.label, reps=len(measures.reps),
        medians=medians, anchor=_anchor_name(anchor),
        ratios={name: value / base[name] for name, value in medians.items() if base.get(name)},
        conditions=hard_fields(measures.fingerprint), parts=_parts(measures),
        facts={name: text for name, text in measures.facts.items() if name.startswith("stage ")},
        places={name: place for name, place in measures.places.items() if name.startswith("stage ")},
    )  # fmt: skip


def line_of(entry: Entry) -> bytes:
    """One line of JSON, with its line end."""
    return msgspec.json.encode(entry) + b"\n"


def entries(lines: Iterable[tuple[str, bytes]]) -> list[Entry]:
    """The entries of (where, line), by time of measurement; a run that is there twice counts once, with its tag.

    Raises RunError that names a line which cannot be read or which a newer pipeprof wrote.
    """
    by_run: dict[bytes, Entry] = {}
    for where, line in lines:
        try:
            version = msgspec.json.decode(line)["schema_version"]
            if isinstance(version, int) and version > HISTORY_VERSION:
                raise RunError(
                    f"history entry `{where}` was written by a newer pipeprof: schema_version {version}, this one "
                    f"reads up to {HISTORY_VERSION}",
                    "upgrade pipeprof",
                )
            entry = msgspec.json.decode(line, type=Entry)
        except (*BAD_JSON, KeyError, TypeError) as error:
            raise RunError(
                f"history entry `{where}` is damaged: {error}", "restore the file from git, or remove that line"
            ) from error
        earlier = by_run.get(_run(entry))
        by_run[_run(entry)] = (
            msgspec.structs.replace(entry, tag=earlier.tag) if earlier and entry.tag is None else entry
        )
    return sorted(by_run.values(), key=lambda entry: entry.created_at or "")


def holds(history: Iterable[Entry], entry: Entry) -> bool:
    """Whether the run of an entry is among those known, with its tag if it has one."""
    return any(_run(one) == _run(entry) and entry.tag in (None, one.tag) for one in history)


def metrics(history: Sequence[Entry]) -> list[str]:
    """Names of all metrics of the entries, sorted."""
    return sorted({metric for entry in history for metric in entry.medians})


def series(history: Sequence[Entry], metric: str) -> list[Mark]:
    """One metric over time; entries without it, or without a positive value, are left out.

    `group` is the fingerprint's hash; entries with a ratio to an anchor make a group of their own for each anchor,
    with the ratio as value.
    """
    marks = []
    for entry in history:
        anchored = entry.anchor is not None and metric in entry.ratios
        value = entry.ratios[metric] if anchored else entry.medians.get(metric)
        if value is None or value <= 0:
            continue
        group = entry.fingerprint_hash + (f" / {entry.anchor}" if anchored else "")
        marks.append(
            Mark(value=value, group=group, created_at=entry.created_at, revision=entry.revision, tag=entry.tag)
        )
    return marks


def _run(entry: Entry) -> bytes:
    """What tells runs apart: when, where and of what they were measured; not where the run lies now."""
    return msgspec.json.encode(
        msgspec.structs.replace(entry, label="", tag=None, conditions={}, parts={}, facts={}, places={}), order="sorted"
    )


def _medians(measures: Measures) -> dict[str, float]:
    return {
        name: float(median(by_rep.values())) for name, by_rep in sorted(measures.values.items()) if is_primary(name)
    }


def _parts(measures: Measures) -> dict[str, float]:
    middle = {name: float(median(by_rep.values())) for name, by_rep in sorted(measures.values.items())}
    ops = sorted((name for name in middle if name.startswith("op/")), key=lambda name: -middle[name])[:MOST_OPS]
    return {name: value for name, value in middle.items() if name.startswith(_EXPLAIN) or name in ops}


def _anchor_name(anchor: Measures | None) -> str | None:
    return None if anchor is None else str((anchor.git or {}).get("revision") or anchor.label)
