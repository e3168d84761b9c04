"""A session of `pipeprof ab` on disk: which repetitions there are, which comes next, and whether it may go on."""

from __future__ import annotations

import json
import random
import secrets
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pipeprof.errors import MeasureError, RunError, UsageError
from pipeprof.experiment.arms import NAMES, Name
from pipeprof.experiment.journal import HISTORY, SESSION, Repeated, Repetition, saved
from pipeprof.record.document import BAD_JSON, MOST_BYTES, FileName
from pipeprof.record.plain_file import read_file
from pipeprof.units import utc_now
from pipeprof.verdict.gate.planned import Look  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA_VERSION = 1
RESULT, EARLIER = "compare.json", "earlier-"

State = Literal["running", "discarded", "disturbed", "counted", "failed"]
STOLEN = 0.02  # of the CPU time that was wanted: what a hypervisor may take before a repetition is made again
TWICE = 2.0  # times what it usually takes here
FREE, PART = 2, 3  # so many repetitions may be made again, and one for each of so many that count
Stopped = Literal["decided", "looks", "budget", "hopeless"]


class Entry(Repetition, kw_only=True):
    """One repetition, with its arm and its place in time.

    `stolen`: share (0..1) of the CPU time wanted meanwhile that the hypervisor gave to other machines; None: not known.
    """

    arm: Name
    order: int
    state: State = "running"
    stolen: float | None = None


class Replaced(msgspec.Struct, kw_only=True):
    """A line of the history: a session that `--new-session` replaced, and what it had found."""

    session_id: str
    started_at: str
    replaced_at: str
    state: str
    verdict: str | None
    repetitions: int
    moved_to: FileName


class Session(Repeated[Entry], kw_only=True):
    """What `session.json` holds. `pair` is the hash of what is compared, `history` the sessions of it before this one.

    `stopped`: decided | looks | budget | hopeless, and why in `notes`; None while it goes on. `looks`: those that were
    made, as (repetitions per side, alpha that it had).
    """

    schema_version: int = SCHEMA_VERSION
    pair: str
    state: Literal["open", "finished"] = "open"
    stopped: Stopped | None = None
    seed: int
    first: Name
    arms: dict[str, dict[str, Any]]
    policy: str
    looks: list[Look] = []
    failures: list[str] = []
    notes: list[str] = []
    history: list[dict[str, Any]] = []

    def counted(self, arm: Name) -> list[Entry]:
        """The repetitions of an arm that are judged, in order."""
        return [entry for entry in self.repetitions if entry.arm == arm and entry.state == "counted"]

    @property
    def pairs(self) -> int:
        """Repetitions that both arms have."""
        return min(len(self.counted(arm)) for arm in NAMES)

    def next_arm(self) -> Name:
        """Next arm in ABBA order, so that drift hits both alike."""
        return planned(self.first, sum(entry.state == "counted" for entry in self.repetitions))

    def is_disturbed(self, stolen: float | None) -> bool:
        """Whether a repetition is to be made again: its CPU was taken away, by more than is usual on this machine.

        What was measured plays no role, and the share is of what was wanted: neither arm is favoured.
        """
        states = [entry.state for entry in self.repetitions]
        if stolen is None or states.count("disturbed") >= FREE + states.count("counted") // PART:
            return False
        usual = median([entry.stolen for entry in self.repetitions if entry.stolen is not None] or [0.0])
        return stolen > max(STOLEN, TWICE * usual)

    def pace(self, arm: Name) -> float | None:
        """Usual seconds of a repetition of an arm; of the discarded ones while there are no others."""
        for states in (("counted",), ("discarded",)):
            seconds = [
                e.seconds for e in self.repetitions if e.arm == arm and e.state in states and e.seconds is not None
            ]
            if seconds:
                return median(seconds)
        return None

    def seconds_to(self, look: int) -> float | None:
        """Expected seconds until both arms have `look` counted repetitions; None while an arm's pace is not known."""
        paces = {arm: self.pace(arm) for arm in NAMES}
        total = 0.0
        for arm in NAMES:
            pace, missing = paces[arm], look - len(self.counted(arm))
            if pace is None:
                return None
            total += max(0, missing) * pace
        return total

    def affordable(self, seconds: float) -> int | None:
        """Repetitions per side that there will be after so many seconds more; None while an arm's pace is not known."""
        counts = {arm: len(self.counted(arm)) for arm in NAMES}
        most = max(counts.values())
        ahead, pair = self.seconds_to(most), self.seconds_to(most + 1)
        if ahead is None or pair is None:
            return None
        return self.pairs if ahead > seconds else most + int((seconds - ahead) / max(pair - ahead, 1e-9))

    def enter(self, arm: Name) -> Entry:
        """A new repetition, about to start. Its name is `base-000`, `base-001`, ..."""
        number = sum(entry.arm == arm for entry in self.repetitions)
        order = max((entry.order for entry in self.repetitions), default=-1) + 1
        return self.entered(Entry(name=f"{arm}-{number:03d}", arm=arm, order=order))


def planned(first: Name, position: int) -> Name:
    """The arm of the repetition at a position, from 0: A B, B A, A B, ... where A is `first`."""
    second: Name = "new" if first == "base" else "base"
    pair, half = divmod(position, 2)
    return first if pair % 2 == half else second


def new_session(pair: str, arms: Mapping[str, dict[str, Any]], policy: str, seed: int | None = None) -> Session:
    """A session without repetitions; which arm goes first is drawn with `seed`, which is drawn itself when None."""
    seed = secrets.randbits(32) if seed is None else seed
    return Session(
        pair=pair, arms=dict(arms), policy=policy, seed=seed,
        first=random.Random(seed).choice(NAMES),  # noqa: S311 - no secret
    )  # fmt: skip


def open_session(folder: Path, fresh: Session, *, replace: bool = False) -> Session:
    """The session in `folder`, or `fresh` when there is none yet, or when `replace` moves an earlier one away.

    Raises UsageError for a folder that holds another comparison, RunError for a damaged or newer file (session or
    history), MeasureError for a session that another machine or job began, or that cannot be moved away.
    """
    earlier = load_session(folder)
    if earlier is not None and earlier.pair != fresh.pair:
        raise UsageError(
            f"`{folder}` holds the session of another comparison: {_difference(earlier, fresh)}",
            "give another folder with -o",
        )
    if earlier is not None and not replace:
        hint = "times of two machines or jobs cannot be compared; start over with --new-session"
        in_a_job = earlier.state == "open" and bool(earlier.repetitions)
        earlier.refuse_elsewhere(f"the session in `{folder}`", hint, in_a_job=in_a_job)
        return earlier
    if earlier is not None:
        try:
            _archive(folder, earlier)
        except OSError as error:
            raise MeasureError(f"cannot move the session in `{folder}`: {error.strerror}", "free some space") from error
    fresh.history = _replaced(folder)
    fresh.begin(folder)
    return fresh


def load_session(folder: Path) -> Session | None:
    """The session of a folder; None when it has none. Raises RunError for one that cannot be read."""
    return saved(folder, Session, SCHEMA_VERSION, "session", "start over in another folder with -o")


def _difference(earlier: Session, fresh: Session) -> str:
    if earlier.policy != fresh.policy:
        return "the policy has changed"
    for arm in NAMES:
        for name, value in fresh.arms.get(arm, {}).items():
            if (earlier.arms.get(arm) or {}).get(name) != value:
                return f"the {name} of {arm} has changed"
    return "a masked value, the working directory or the version of pipeprof has changed"


def _archive(folder: Path, session: Session) -> None:
    """Tell in the history that a session was replaced, and move it into a folder of its own; `session.json` goes last.

    What was cut off is done to its end by the next call.
    """
    archive = folder / f"{EARLIER}{len(session.history) + 1:03d}"
    if session.session_id not in [old["session_id"] for old in _replaced(folder)]:
        line = {
            "session_id": session.session_id,
            "started_at": session.started_at,
            "replaced_at": utc_now(),
            "state": session.state,
            "verdict": _verdict(folder),
            "repetitions": session.pairs,
            "moved_to": archive.name,
        }
        with (folder / HISTORY).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    archive.mkdir(exist_ok=True)
    moved = [folder / RESULT, *sorted(folder.glob("base-*")), *sorted(folder.glob("new-*"))]
    for path in [*(path for path in moved if path.exists()), folder / SESSION]:
        path.replace(archive / path.name)


def _replaced(folder: Path) -> list[dict[str, Any]]:
    """What the history tells of each session that was replaced, oldest first. Raises RunError when it is damaged."""
    path = folder / HISTORY
    try:
        lines = read_file(path, MOST_BYTES).splitlines() if path.exists() else []
        return [msgspec.to_builtins(msgspec.json.decode(line, type=Replaced)) for line in lines]
    except (OSError, *BAD_JSON) as error:
        raise RunError(f"damaged history `{path}`: {error}", "start over in another folder with -o") from error


def _verdict(folder: Path) -> str | None:
    try:
        verdict: str = json.loads(read_file(folder / RESULT, MOST_BYTES))["verdict"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return verdict
