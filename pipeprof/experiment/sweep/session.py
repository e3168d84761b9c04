"""A sweep on disk: every repetition with what was measured of it, so that a kill costs at most the one that ran."""

from __future__ import annotations

import hashlib
import secrets
from statistics import median
from typing import TYPE_CHECKING, Literal

import msgspec

from pipeprof.errors import UsageError
from pipeprof.experiment.journal import Repeated, Repetition, saved
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.experiment.sweep.spec import Spec

SCHEMA_VERSION = 1
RESULT = "sweep.json"
HINT = "begin anew in another folder with -o"

State = Literal["running", "discarded", "counted", "failed"]


class Entry(Repetition, kw_only=True):
    """One repetition of one variant in one phase. `values`: stage -> value, in the stage's unit.

    `prepare_s`: of its seconds, those that its preparing commands took.
    """

    phase: int
    round: int
    variant: str
    state: State = "running"
    values: dict[str, float] = {}
    prepare_s: float = 0.0
    error: str = ""


class SweepSession(Repeated[Entry], kw_only=True):
    """What `session.json` of a sweep holds. `sweep` is the hash of the file, the command and the folder it runs in.

    `stopped`: decided (nothing is left to measure) | budget; None while it goes on. `prepared`: variant -> seconds that
    its preparing commands took.
    """

    schema_version: int = SCHEMA_VERSION
    sweep: str
    state: Literal["open", "finished"] = "open"
    stopped: Literal["decided", "budget"] | None = None
    seed: int
    prepared: dict[str, float] = {}

    def counted(self, phase: int, variant: str) -> dict[int, Entry]:
        """Round -> the repetition of a variant that is judged."""
        return {e.round: e for e in self.repetitions if self._is(e, phase, variant) and e.state == "counted"}

    def series(self, phase: int, variant: str, stage: str) -> dict[int, float]:
        """Round -> value of one stage of a variant."""
        counted = self.counted(phase, variant)
        return {at: entry.values[stage] for at, entry in sorted(counted.items()) if stage in entry.values}

    def failed(self, phase: int, variant: str) -> list[str]:
        """What its failed repetitions said; one of a reference that was made again since counts no more."""
        mine = [e for e in self.repetitions if self._is(e, phase, variant)]
        begin = max((at for at, e in enumerate(mine, 1) if e.state == "counted"), default=0)
        return [f"{e.name}: {e.error}" for e in mine[begin:] if e.state == "failed"]

    def pace(self, variant: str) -> float | None:
        """Usual seconds of a repetition of a prepared variant, in whatever phase; None while none came to its end."""
        counted = [e for e in self.repetitions if e.variant == variant and e.state == "counted"]
        seconds = [e.seconds - e.prepare_s for e in counted if e.seconds]
        return median(seconds) if seconds else None

    def enter(self, phase: int, number: int, variant: str) -> Entry:
        """A new repetition, about to start. Names go on for ever: no folder is used twice."""
        name = f"run-{len(self.repetitions):04d}"
        return self.entered(Entry(name=name, phase=phase, round=number, variant=variant))

    @staticmethod
    def _is(entry: Entry, phase: int, variant: str) -> bool:
        return entry.phase == phase and entry.variant == variant


def sweep_hash(spec: Spec, command: Sequence[str], cwd: Path) -> str:
    """What makes two calls the same sweep; budget, time limit and title only say how far it goes."""
    same = msgspec.structs.replace(spec, budget=None, timeout=None, title="")
    text = msgspec.json.encode([same, list(command), str(cwd), __version__], order="sorted")
    return hashlib.sha256(text).hexdigest()[:12]


def open_sweep(folder: Path, key: str, seed: int | None) -> SweepSession:
    """The session in `folder`, or a new one.

    Raises UsageError for a folder that holds another sweep, RunError for a damaged or newer file, MeasureError for a
    sweep that another machine or job began.
    """
    session = saved(folder, SweepSession, SCHEMA_VERSION, "session, or none of a sweep,", HINT)
    if session is None:
        session = SweepSession(sweep=key, seed=secrets.randbits(32) if seed is None else seed)
        session.begin(folder)
        return session
    if session.sweep != key:
        raise UsageError(f"`{folder}` holds another sweep: the file, the command or the folder differs", HINT)
    in_a_job = session.state == "open" and bool(session.repetitions)
    session.refuse_elsewhere(f"the sweep in `{folder}`", HINT, in_a_job=in_a_job)
    return session
