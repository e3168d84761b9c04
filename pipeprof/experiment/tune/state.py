"""A tuning on disk: every trial with what came of it, so that a kill costs at most the runs of one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pipeprof.collect.probe.redact import without_secrets
from pipeprof.errors import RunError
from pipeprof.experiment.journal import Journal, saved
from pipeprof.experiment.pairs import Side  # noqa: TC001 - msgspec reads it
from pipeprof.experiment.tune import RECORDED
from pipeprof.experiment.tune.rows import Batches, Epoch, acceptable
from pipeprof.record.document import FileName  # noqa: TC001 - msgspec reads it
from pipeprof.record.plain_file import read_file, remove
from pipeprof.record.settings_file import Settings
from pipeprof.verdict.tuning import Goal  # noqa: TC001 - msgspec reads it
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.experiment.tune.bench import Recording
    from pipeprof.experiment.tune.search import TuneWish

SCHEMA_VERSION = 1
PLAIN = 0.6  # of the time of a recording, whose tables are written and read: what a run without takes
MOST_SOURCE = 1 << 24  # bytes of a Python file
SOURCES = (".py", ".sh", ".yaml", ".yml", ".toml", ".ini", ".cfg")  # files that a command names and never writes
LAST = 12  # runs whose length says how long the next one takes
HINT = "begin anew in another folder with -o"

Word = Literal[
    "accepted", "slower", "no_gain", "hopeless", "undecided", "other_data", "unchecked", "failed", "unproven"
]
Ended = Literal["nothing_left", "trials", "loop_limits", "other_iterator", "unrecorded", "budget"]


class Trial(msgspec.Struct, kw_only=True):
    """One candidate on top of what was accepted before: rates in steps/s, pair by pair.

    `what`: its changes in facts, for reports. `predicted_wrong`: measured wholly outside the predicted interval.
    `unproven`: accepted on top of what an earlier call proved, and the whole set with it was not proven.
    `hopeless`: the pairs decide nothing, and the best of them, as often as pairs are left, would not have it accepted.
    `stopped`: why there were no more pairs; one that the budget stopped is made again when there is more time.
    `need_a`, `need_b`: what each run needed of what is to be saved: CPU s of a step, or bytes; `saved`: the median of
    a / b, with its interval, as `ratio` and `interval` are of the speeds. `permutes`: it, or what was accepted before,
    may hand out the rows in another order or with other random numbers, so whole epochs are compared.
    """

    key: str
    what: list[dict[str, Any]]
    prediction: dict[str, Any]
    settings: Settings
    permutes: bool = False
    a: list[float] = []
    b: list[float] = []
    need_a: list[float] = []
    need_b: list[float] = []
    saved: float | None = None
    saved_interval: tuple[float, float] | None = None
    interval: tuple[float, float] | None = None
    ratio: float | None = None
    batches: Batches = "not_seen"
    verdict: Word = "undecided"
    predicted_wrong: bool = False
    stopped: Literal["decided", "pairs", "budget"] | None = None
    error: str = ""
    seconds: float = 0.0


class Final(msgspec.Struct, kw_only=True):
    """The whole set against the original. `verdict` is the gate's word; None while it was not judged.

    `need_a`, `need_b` as in a trial; `need`: what the set needs over what the original does, and its interval.
    `rows_compared`: whole epochs were, not only the first batches; `why` they are not the same. `looks`: pairs after
    which it was judged, with the chance of a false alarm that each look had in `alphas`.
    """

    a: list[float] = []
    b: list[float] = []
    need_a: list[float] = []
    need_b: list[float] = []
    need: tuple[float | None, float | None, float | None] | None = None
    batches: Batches = "not_seen"
    rows_compared: bool = False
    why: str = ""
    verdict: str | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    alpha: float | None = None
    looks: list[int] = []
    alphas: list[float] = []
    error: str = ""


class FailedRun(msgspec.Struct, kw_only=True):
    """A run that failed, of settings that had run before: the `folder` of its comparison, and its side.

    `steps`: how many trials had been accepted then, for a proof is of all of them.
    """

    folder: FileName
    side: Side
    error: str
    steps: int = 0


class Proven(msgspec.Struct, kw_only=True):
    """What an earlier call proved: with its first so many trials."""

    final: Final
    trials: int


class TuneState(Journal, kw_only=True):
    """What `session.json` of a tuning holds. `tune` is the hash of the command and the folder it runs in.

    `seen`: facts of each recording, the first one first. `look_s`: of the longest recording; `run_seconds`: of every
    other run. `original`: epochs of an unchanged run, `reseeded`: of one with other random numbers. `reproducible`:
    what a second one handed out against it, where that was asked. `dropped`: trials that were to be made again.
    `sources`: what the files held that make the training, by their digests. `rows_s`: of the original's run in which
    all rows were fingerprinted. `failed_runs`: maybe by chance. `stop_after`: training steps after
    which each run ends.
    """

    schema_version: int = SCHEMA_VERSION
    tune: str
    state: Literal["open", "finished"] = "open"
    ended: Ended | None = None
    command: list[str]
    goal: Goal = "time"
    allow_order: bool = False
    allow_random: bool = False
    stop_after: int | None = None
    spent_s: float = 0.0
    look_s: float = 0.0
    run_seconds: list[float] = []
    original: list[Epoch] = []
    reseeded: list[Epoch] = []
    reproducible: Batches | None = None
    seen: list[dict[str, Any]] = []
    trials: list[Trial] = []
    dropped: int = 0
    final: Final | None = None
    proven: Proven | None = None
    sources: dict[str, str] = {}
    rows_s: float = 0.0
    failed_runs: list[FailedRun] = []
    fingerprint: dict[str, Any] = msgspec.field(default_factory=dict, name="machine")

    @property
    def settings(self) -> Settings:
        """What was accepted so far."""
        return next((one.settings for one in reversed(self.trials) if one.verdict == "accepted"), Settings())

    @property
    def steps(self) -> int:
        """How many trials were accepted so far."""
        return sum(one.verdict == "accepted" for one in self.trials)

    @property
    def run_s(self) -> float:
        """Seconds that a run takes at most, as far as is known: the longest of the last ones, else of a recording."""
        return max(self.run_seconds[-LAST:], default=PLAIN * (self.look_s - self._shorter_s))

    @property
    def _shorter_s(self) -> float:
        """Seconds of training that a run is shorter than a recording, where both are ended."""
        rate = self.seen[0]["rate"] if self.seen and self.stop_after else 0.0
        left_out = (RECORDED - 1) * (self.stop_after or 0) / rate if rate else 0.0
        return min(left_out, (1 - 1 / RECORDED) * self.look_s)

    @property
    def rows_run_s(self) -> float:
        """Expected seconds of a run that fingerprints all rows."""
        return max(self.run_s, self.rows_s)

    def may_take(
        self, batches: Batches, of: Settings | None = None, *, unchecked: bool = False, so_far: bool = False
    ) -> bool:
        """Whether settings that hand these out (None: those accepted) may be taken, with the leave that the user gave.

        `unchecked`: also where they cannot be compared. `so_far`: while nothing speaks against it. Settings that must
        hand out the very same rows have no leave, except for another order of those that are not kept.
        """
        changed = self.settings if of is None else of
        leave = not changed.must_be_same
        return acceptable(
            batches,
            order=self.allow_order and not changed.keeps_rows,
            unchecked=so_far or (unchecked and leave),
            draws=self.allow_random and leave,
        )

    def made_again(self, *, unchecked: bool) -> list[Trial]:
        """Trials that the budget stopped; and those that could not be compared, if `unchecked` ones may be taken."""
        return [
            one
            for one in self.trials
            if one.stopped == "budget"
            or (one.verdict == "unchecked" and self.may_take(one.batches, one.settings, unchecked=unchecked))
        ]


def new_state(wish: TuneWish) -> TuneState:
    """A tuning that is about to begin. What it is for makes it another one; the budget only says how far it goes."""
    asked = [wish.goal, wish.allow_order, wish.allow_random, wish.stop_after]
    text = msgspec.json.encode([list(wish.command), str(wish.workdir), __version__, *asked])
    return TuneState(
        tune=hashlib.sha256(text).hexdigest()[:12], command=without_secrets(wish.command),
        goal=wish.goal, allow_order=wish.allow_order, allow_random=wish.allow_random,
        stop_after=None if wish.stop_after == "all" else wish.stop_after,
    )  # fmt: skip


def open_state(folder: Path, new: TuneState, workdir: Path) -> TuneState:
    """The tuning in a folder, or the new one, also where nothing was tried before a source was changed.

    Raises RunError for that of another command, for a damaged one, and where trials were made with other sources.
    """
    earlier = saved(folder, TuneState, SCHEMA_VERSION, "tuning", HINT)
    if earlier is None:
        return new
    if earlier.tune != new.tune:
        raise RunError(f"`{folder}` holds the tuning of another command, folder, goal, option or version", HINT)
    if earlier.trials:
        refuse_changed(folder, earlier, workdir)
    elif _changed_source(earlier, workdir):
        remove(folder / "look-0")
        return new
    return earlier


def refuse_changed(folder: Path, state: TuneState, workdir: Path) -> None:
    """Raises RunError where a source is not what it was when the tuning began: runs of two programs say nothing."""
    changed = _changed_source(state, workdir)
    if changed:
        raise RunError(f"`{changed}` has changed since the tuning in `{folder}` began", f"undo that, or {HINT}")


def _changed_source(state: TuneState, workdir: Path) -> str | None:
    return next((name for name, digest in state.sources.items() if _digest(workdir / name) != digest), None)


def sources_of(workdir: Path, command: Sequence[str], seen: Recording) -> dict[str, str]:
    """Digests of the files that make the pipeline or lead there, hold its functions, or are named by the command."""
    made = [row.get(name) for row in seen.ops for name in ("site", "callers", "code")]
    places = "\n".join(place for place in (seen.site, *made) if place).splitlines()
    named = {word.rpartition("=")[2] for word in command}
    names = {place.rpartition(":")[0] for place in places} | {word for word in named if word.endswith(SOURCES)}
    return {name: _digest(workdir / name) for name in sorted(names)}


def _digest(path: Path) -> str:
    """SHA-256 of a file; "" where it cannot be read."""
    try:
        return hashlib.sha256(read_file(path, MOST_SOURCE)).hexdigest()
    except OSError:
        return ""
