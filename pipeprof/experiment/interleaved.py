"""A session of `pipeprof ab` while it runs: adds repetitions until the gate has decided or the time is over."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import MeasureError, RunError, WorkloadError
from pipeprof.experiment.arms import NAMES, Arm, Name, Place, check_unchanged, variables
from pipeprof.experiment.repetition import refuse_orphans
from pipeprof.experiment.runs import write_json
from pipeprof.experiment.session import MOST_BYTES, RESULT, Session, planned, save_session, throw_away_incomplete
from pipeprof.record.bad_json import BAD_JSON
from pipeprof.record.measures import Measures, Repetition, merged
from pipeprof.record.plain_file import read_file
from pipeprof.report.words.experiments import noted, sentence
from pipeprof.units import format_ns
from pipeprof.verdict.gate.note import note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.experiment.repetition import Bench
    from pipeprof.verdict.gate.note import Note
    from pipeprof.verdict.gate.policy import Policy

# An arm's own choice, and so part of what is compared: told, not refused.
SOFTWARE = ("python", "mindspore", "numpy", "device", "mode", "ranks")
STEP = "step_time_median"


class Interleaved:
    """Both arms of one session, in turn. The session's file is up to date whenever something takes time."""

    def __init__(
        self,
        folder: Path,
        session: Session,
        arms: Sequence[Arm],
        place: Place,
        policy: Policy,
        bench: Bench,
        say: Callable[[str], None],
    ) -> None:
        self.folder, self.session, self.place, self.policy = folder, session, place, policy
        self.arms: dict[Name, Arm] = {arm.name: arm for arm in arms}
        self.bench, self.say = bench, say
        self.notes: list[Note] = []
        self.trust: Mapping[str, Any] | None = None
        self.budget_note: Note | None = None
        self.cold = [planned(session.first, position) for position in (0, 1)]
        self.folders: Mapping[Name, Path] = {}
        self.measured: dict[str, Measures] = {}
        self.judged: tuple[int, dict[str, Any]] | None = None

    def recover(self) -> None:
        """Throw away what a kill left incomplete. Raises UsageError while a process of it is still running."""
        running = [entry.name for entry in self.session.repetitions if entry.state == "running"]
        refuse_orphans(self.folder, running, self.bench.still_running)
        throw_away_incomplete(self.folder, self.session)

    def start(self, folders: Mapping[Name, Path]) -> None:
        """Repetitions follow, in these folders. After every start the first one of each arm is discarded."""
        self.folders = folders
        self.session.starts += 1
        save_session(self.folder, self.session)

    def to_the_end(self) -> dict[str, Any]:
        """Add repetitions until `stopped` says why not; returns the result."""
        while self.stopped() is None:
            cold = bool(self.cold)
            self._repeat(self.cold[0] if cold else self.session.next_arm(), discard=cold)
            self.cold = self.cold[1:]
        return self.conclude()

    def stopped(self) -> str | None:
        """Why no more repetitions are made: decided, looks (all were made), budget. None: the next one is due."""
        session, pairs, looks = self.session, self.session.pairs, self.policy.looks
        whole = sum(len(session.counted(arm)) for arm in NAMES) == 2 * pairs
        session.stopped = None
        if whole and (pairs in looks or pairs > looks[-1]) and not self.judge()["next_look"]:
            session.stopped = "looks" if self.judge()["verdict"] == "inconclusive" else "decided"
        elif self._too_long(at_look=whole and pairs in (0, *looks)):
            session.stopped = "budget"
        return session.stopped

    def judge(self) -> dict[str, Any]:
        """What the gate says about the repetitions that both arms have."""
        pairs = self.session.pairs
        if self.judged is None or self.judged[0] != pairs:
            own = [f"environment.{name}" for arm in self.arms.values() for name in arm.env]
            ignored = tuple(dict.fromkeys([*self.policy.ignore_fingerprint, *SOFTWARE, *own]))
            policy = msgspec.structs.replace(self.policy, ignore_fingerprint=ignored)
            content = self.bench.compare(self._side("base", pairs), self._side("new", pairs), policy)
            self.judged = (pairs, content)
            following = f"; next check after {content['next_look']}" if content["next_look"] else ""
            self.say(f"check after {pairs} runs per side: {content['headline']}{following}")
        return self.judged[1]

    def conclude(self) -> dict[str, Any]:
        """The result, written to `compare.json`. Raises MeasureError when there is nothing to judge."""
        session = self.session
        if session.pairs == 0:
            why = sentence(self.budget_note) if self.budget_note else "nothing was measured yet"
            raise MeasureError(why, "give more time with --budget")
        if session.stopped in ("decided", "looks"):
            session.state = "finished"
        content = self.judge()
        stopped = [self.budget_note] if self.budget_note and session.stopped == "budget" else []
        own = noted([*self.notes, *session_notes(session), *stopped])
        content = content | {
            "notes": list(dict.fromkeys([*content["notes"], *own["notes"]])),
            "note_facts": [*content["note_facts"], *own["note_facts"]],
            "session": about(session, self.folder),
        }
        content |= {"trust": dict(self.trust)} if self.trust is not None else {}
        write_json(self.folder / RESULT, content)
        save_session(self.folder, session)
        return content

    def result_again(self) -> dict[str, Any]:
        """The result of a finished session; nothing is run."""
        self.say("this session is finished: here is its result again, nothing was run (--new-session starts over)")
        path = self.folder / RESULT
        if not path.is_file():
            self.stopped()
            return self.conclude()
        try:
            content: dict[str, Any] = msgspec.json.decode(read_file(path, MOST_BYTES))
        except (OSError, *BAD_JSON) as error:
            raise RunError(f"damaged result `{path}`: {error}", "remove it: it is made again") from error
        return content

    def _too_long(self, *, at_look: bool) -> bool:
        """Whether the budget ends before the next look (asked at a look), or before the next repetition."""
        session, budget_s = self.session, self.policy.budget_s
        look = self._next_look()
        needed = session.seconds_to(look) if at_look else session.pace(session.next_arm())
        if budget_s is None or needed is None:
            return False
        needed += sum(session.pace(arm) or 0.0 for arm in self.cold)
        if session.spent + needed <= budget_s:
            return False
        self.budget_note = note(
            "session_budget", budget_s=budget_s, used_s=round(session.spent, 1), look=look,
            needed_s=round(session.seconds_to(look) or 0, 1),
        )  # fmt: skip
        return True

    def _next_look(self) -> int:
        return next((look for look in self.policy.looks if look > self.session.pairs), self.policy.looks[-1])

    def _repeat(self, arm: Name, *, discard: bool) -> None:
        """One repetition of an arm, confirmed in the session. Raises WorkloadError that says which arm failed."""
        check_unchanged(self.place, self.arms[arm])
        entry = self.session.enter(arm)
        save_session(self.folder, self.session)
        path = self.folder / entry.name
        shutil.rmtree(path, ignore_errors=True)
        began = self.bench.now()
        chosen, workdir = self.arms[arm], self.folders[arm]
        try:
            self.bench.run(chosen.command, variables(self.place, chosen, workdir), workdir, path)
        except WorkloadError as error:
            entry.state, entry.seconds = "failed", self.bench.now() - began
            self.session.failures.append(f"{entry.name}: {error.message}")
            save_session(self.folder, self.session)
            raise WorkloadError(
                f"the command of `{arm}` failed in `{entry.name}` with {error.message}{self._other_works(arm)}",
                error.hint,
            ) from error
        seconds = self.bench.now() - began
        self.measured[entry.name] = self.bench.measure(path)
        entry.state, entry.seconds = "discarded" if discard else "counted", seconds
        save_session(self.folder, self.session)
        self._tell(entry.name, seconds, discard=discard)

    def _other_works(self, arm: Name) -> str:
        """Whether only the new arm fails; the base arm is tried once if it never ran."""
        if arm == "base":
            return ""
        if not any(entry.arm == "base" and entry.state != "failed" for entry in self.session.repetitions):
            self.say("the command of `new` failed: trying that of `base`")
            try:
                self._repeat("base", discard=True)
            except WorkloadError as error:
                return f"; so does that of `base`: {error.message}"
        return "; that of `base` works"

    def _tell(self, name: str, seconds: float, *, discard: bool) -> None:
        """A line per repetition: how long it took, and when it is judged."""
        step = self.measured[name].values.get(STEP, {})
        pace = f", step {format_ns(next(iter(step.values())))}" if step else ""
        look, left = self._next_look(), self.session.seconds_to(self._next_look())
        done = sum(min(look, len(self.session.counted(arm))) for arm in NAMES)
        text = f"{name}: {seconds:.1f} s{pace}" + (", discarded (warm-up)" if discard else "")
        if left:
            which = "first" if look == self.policy.looks[0] else "next"
            text += f"; {done}/{2 * look} runs, {which} check after {look} per side, at about {self.bench.clock(left)}"
        self.say(text)

    def _side(self, arm: Name, pairs: int) -> Measures:
        """The first `pairs` counted repetitions of an arm, ordered over both. Raises MeasureError when they differ."""
        parts = []
        for entry in self.session.counted(arm)[:pairs]:
            if entry.name not in self.measured:
                self.measured[entry.name] = self.bench.measure(self.folder / entry.name)
            part = self.measured[entry.name]
            job = self.session.job or self.session.session_id  # both sides in one, or the session was refused
            reps = {number: Repetition(order=entry.order, job=job) for number in part.reps}
            parts.append(msgspec.structs.replace(part, reps=reps, kind="session", interleaved=True))
        try:
            return merged(parts, self.arms[arm].label)
        except ValueError as error:
            raise MeasureError(f"the runs of `{arm}` cannot be put together: {error}") from error


def session_notes(session: Session) -> list[Note]:
    """What a reader of the result should know about how it came about, as codes."""
    notes = []
    if session.history:
        earlier = [{"verdict": old["verdict"], "repetitions": old["repetitions"]} for old in session.history]
        notes.append(note("earlier_sessions", earlier=earlier))
    if session.failures:
        notes.append(note("repeated", failures=list(session.failures)))
    if session.starts > 1:
        notes.append(note("session_continued", times=session.starts - 1))
    return notes


def about(session: Session, folder: Path) -> dict[str, Any]:
    """The member `session` of the result."""
    names = {arm: [entry.name for entry in session.counted(arm)] for arm in NAMES}
    return {
        "session_id": session.session_id,
        "folder": str(folder),
        "state": session.state,
        "stopped": session.stopped,
        "arms": session.arms,
        "runs": names,
        "discarded": [entry.name for entry in session.repetitions if entry.state == "discarded"],
        "order": [entry.name for entry in session.repetitions],
        "first": session.first,
        "seed": session.seed,
        "seconds": session.spent,
        "starts": session.starts,
        "earlier": session.history,
    }
