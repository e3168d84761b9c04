"""What is compared of a run: a few numbers per repetition, facts that never vary, and where they are valid.

A baseline is this, saved. Metric names and units: docs/gate.md.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec

from pipeprof.record.note import Note, unique

Kind = Literal["run", "baseline", "benchmark", "session"]


class Repetition(msgspec.Struct, kw_only=True):
    """Where and when one repetition was measured.

    `order`: position in time, over both sides when they were interleaved. `job`: one host between two boots, or one CI
    job; None when not known. `calibration_ns`: CPU time of a fixed loop on that machine; None when not known.
    """

    order: int
    job: str | None = None
    calibration_ns: int | None = None


class Measures(msgspec.Struct, kw_only=True):
    """One side of a comparison.

    `values`: metric -> repetition -> value. `facts`: what must be the same in every repetition, as text: type and
    shapes of each operator (`op NAME`), the tree of each dataset pipeline (`pipeline KEY`). `interleaved`: the
    repetitions were taken in turn with those of the other side.

    What tells one measurement from another: `command`, `run_ids` of the runs, and `digests`, one of each repetition's
    values as they were measured; empty where that is not known. `places`: file:line of the code behind a fact
    (`stage NAME`), where it is known; `curves`: by repetition the lengths of its training steps in ns, thinned, of
    a run alone (a baseline does not keep them); `steps`: how many these were; `stages`: those of its data pipelines,
    likewise of a run alone; `seconds`: what the repetitions took together.
    """

    label: str
    kind: Kind = "run"
    workload: str = ""
    reps: dict[int, Repetition] = {}
    values: dict[str, dict[int, float]] = {}
    facts: dict[str, str] = {}
    fingerprint: dict[str, Any] = {}
    git: dict[str, Any] | None = None
    created_at: str | None = None
    interleaved: bool = False
    notes: list[Note] = []
    command: list[str] = []
    run_ids: list[str] = []
    digests: list[str] = []
    places: dict[str, str] = {}
    curves: dict[int, list[float]] = {}
    steps: dict[int, int] = {}
    stages: list[dict[str, Any]] = []
    seconds: float | None = None

    @property
    def jobs(self) -> set[str]:
        """The jobs it was measured in, as far as they are known."""
        return {rep.job for rep in self.reps.values() if rep.job is not None}


def digests_of(measures: Measures) -> list[str]:
    """One for each repetition, from its values alone: a copy has the same, whatever it calls itself."""
    digests = []
    for rep in sorted(measures.reps):
        values = sorted((metric, values[rep]) for metric, values in measures.values.items() if rep in values)
        digests.append(hashlib.sha256(msgspec.json.encode(values)).hexdigest()[:32])
    return digests


def merged(parts: list[Measures], label: str) -> Measures:
    """The repetitions of several, numbered anew in their order; facts and fingerprint of the first.

    Raises ValueError for no parts, and for parts whose fingerprints differ, naming the first difference.
    """
    if not parts:
        raise ValueError("nothing to merge")
    first = parts[0]
    joined = Measures(
        label=label, kind=first.kind, workload=first.workload, facts=dict(first.facts), git=first.git,
        fingerprint=dict(first.fingerprint), created_at=first.created_at, interleaved=first.interleaved,
        notes=unique(one for part in parts for one in part.notes), command=first.command,
        run_ids=list(dict.fromkeys(name for part in parts for name in part.run_ids)),
        digests=list(dict.fromkeys(one for part in parts for one in part.digests)), places=dict(parts[-1].places),
        stages=parts[-1].stages,
    )  # fmt: skip
    number = 0
    for part in parts:
        for name in sorted({*first.fingerprint, *part.fingerprint}):
            if first.fingerprint.get(name) != part.fingerprint.get(name):
                raise ValueError(f"`{name}` differs between `{first.label}` and `{part.label}`")
        for rep in sorted(part.reps, key=lambda at: (part.reps[at].order, at)):
            joined.reps[number] = part.reps[rep]
            for metric, values in part.values.items():
                if rep in values:
                    joined.values.setdefault(metric, {})[number] = values[rep]
            if rep in part.curves:
                joined.curves[number] = part.curves[rep]
            if rep in part.steps:
                joined.steps[number] = part.steps[rep]
            number += 1
    return joined
