"""A session of `pipeprof ab` while it runs: adds repetitions until the gate has decided or the time is over."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from math import fsum
from statistics import mean, variance
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import MeasureError, RunError, WorkloadError
from pipeprof.experiment.arms import NAMES, Arm, Name, Workspace, arm_notes, check_unchanged, variables
from pipeprof.experiment.confirmation import First, with_confirmation
from pipeprof.experiment.forecast import forecast_words, within_plan
from pipeprof.experiment.repetition import as_side
from pipeprof.experiment.runs import write_json
from pipeprof.experiment.session import RESULT, Session, planned
from pipeprof.record.document import BAD_JSON, MOST_BYTES
from pipeprof.record.plain_file import read_file, remove
from pipeprof.report.words.experiments import noted, sentence
from pipeprof.units import format_ns
from pipeprof.verdict.gate.planned import least_planned, planned_looks
from pipeprof.verdict.gate.result import note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeprof.experiment.ab import AbWish
    from pipeprof.experiment.forecast import Facts
    from pipeprof.experiment.repetition import Bench
    from pipeprof.experiment.session import Entry, Stopped
    from pipeprof.record.measures import Measures
    from pipeprof.verdict.gate.planned import Look
    from pipeprof.verdict.gate.policy import Policy
    from pipeprof.verdict.gate.result import Note

# An arm's own choice, and so part of what is compared: told, not refused.
SOFTWARE = ("python", "mindspore", "numpy", "device", "mode", "ranks")
STEP = "step_time_median"


@dataclass
class Interleaved:
    """Both arms of one session, in turn. The session's file is up to date whenever something takes time.

    `trust`: what it is judged by. `first`: the result of another runner, which this one confirms or not.
    """

    folder: Path
    session: Session
    arms: Mapping[Name, Arm]
    workspace: Workspace
    wish: AbWish
    policy: Policy
    bench: Bench
    say: Callable[[str], None]
    trust: Mapping[str, Any] | None = None
    first: First | None = None
    folders: Mapping[Name, Path] = field(default_factory=dict)
    cold: list[Name] = field(init=False)
    measured: dict[str, Measures] = field(default_factory=dict)
    plan: tuple[Look, ...] = ()
    judged: tuple[tuple[int, tuple[Look, ...]], dict[str, Any]] | None = None
    budget_note: Note | None = None

    def __post_init__(self) -> None:
        self.cold = [planned(self.session.first, position) for position in (0, 1)]

    def recover(self) -> None:
        """Throw away what a kill left incomplete. Raises UsageError while a process of it is still running."""
        for entry in self.session.throw_away(self.folder, self.bench.still_running):
            self.session.repetitions.remove(entry)

    def start(self, folders: Mapping[Name, Path]) -> None:
        """Repetitions follow, in these folders. After every start the first one of each arm is discarded."""
        self.folders = folders
        self.session.starts += 1
        self.session.save(self.folder)

    def to_the_end(self) -> dict[str, Any]:
        """Add repetitions until `stopped` says why not; returns the result."""
        while self.stopped() is None:
            cold = bool(self.cold)
            self._repeat(self.cold[0] if cold else self.session.next_arm(), discard=cold)
            self.cold = self.cold[1:]
        return self.conclude()

    def stopped(self) -> Stopped | None:
        """Why no more repetitions are made; None: the next one is due. It is judged here when a check is due."""
        session, pairs = self.session, self.session.pairs
        session.stopped = None
        most, is_complete = self._affordable(), all(len(session.counted(arm)) == pairs for arm in NAMES)
        least = least_planned(self.policy)
        if most is not None and most < least and not session.looks:
            session.stopped, self.budget_note = "budget", self._no_check(least)
        elif (is_complete or (most is not None and most <= pairs)) and pairs:
            self.plan = planned_looks(self.policy, session.looks, most)
            if any(look.reps == pairs for look in self.plan):
                session.stopped = self._after_check()
            elif is_complete and pairs == self.policy.least_reps:
                self._tell_forecast(self.plan[-1].reps)
        return session.stopped

    def _after_check(self) -> Stopped | None:
        """What the check that is due leaves to be done."""
        session, pairs, last = self.session, self.session.pairs, self.plan[-1].reps
        content = self.judge()
        session.looks = [look for look in self.plan if look.reps <= pairs]
        if content["next_look"]:
            given_up = content.get("hopeless") and not self.wish.to_the_end
            return "hopeless" if given_up else None
        if content["verdict"] != "inconclusive":
            return "decided"
        return "budget" if last < self.policy.looks[-1] else "looks"

    def _affordable(self) -> int | None:
        """Repetitions per side that the budget allows, those of now included; None without a limit that is known."""
        session, budget_s = self.session, self.policy.budget_s
        if budget_s is None:
            return None
        return session.affordable(budget_s - session.spent - sum(session.pace(arm) or 0.0 for arm in self.cold))

    def _no_check(self, least: int) -> Note:
        session = self.session
        return note(
            "session_budget", budget_s=self.policy.budget_s, used_s=round(session.spent, 1), look=least,
            needed_s=round(session.seconds_to(least) or 0, 1),
        )  # fmt: skip

    def _tell_forecast(self, last: int) -> None:
        """Say what the checks up to the `last` one can find at the noise that was seen so far."""
        forecast = self.forecast(last)
        if forecast is not None:
            self.say(f"at the noise so far, {forecast_words(forecast, self.policy.budget_s)}")

    def forecast(self, last: int) -> Facts | None:
        """The least slow-down that `last` repetitions per side find by the spread so far; None while it has none."""
        sides = [self._steps(arm) for arm in NAMES]
        if min(map(len, sides)) < 2 or min(map(min, sides)) <= 0:
            return None
        spread = math.sqrt(mean(variance(map(math.log, side)) for side in sides))
        level = min(fsum(side) / len(side) for side in sides)
        return within_plan(spread, level, last, self.policy)

    def _steps(self, arm: Name) -> list[float]:
        entries = self.session.counted(arm)[: self.session.pairs]
        return [value for entry in entries for value in self._measured(entry.name).values.get(STEP, {}).values()]

    def _measured(self, name: str) -> Measures:
        if name not in self.measured:
            self.measured[name] = self.bench.measure(self.folder / name)
        return self.measured[name]

    def judge(self) -> dict[str, Any]:
        """What the gate says about the repetitions that both arms have."""
        pairs = self.session.pairs
        plan = self.plan or planned_looks(self.policy, self.session.looks, None)
        if self.judged is None or self.judged[0] != (pairs, plan):
            own = [f"environment.{name}" for arm in self.arms.values() for name in arm.env]
            ignored = tuple(dict.fromkeys([*self.policy.ignore_fingerprint, *SOFTWARE, *own]))
            called = self.wish.workload
            accepted = tuple(  # the sides only know the name of the script
                msgspec.structs.replace(one, workload="*") if called and one.workload == called else one
                for one in self.policy.acknowledge
            )
            policy = msgspec.structs.replace(self.policy, ignore_fingerprint=ignored, acknowledge=accepted)
            content = self.bench.compare(self._side("base", pairs), self._side("new", pairs), policy, plan)
            self.judged = ((pairs, plan), content)
            following = f"; next check after {content['next_look']}" if content["next_look"] else ""
            self.say(f"check after {pairs} repetitions per side: {content['headline']}{following}")
        return self.judged[1]

    def conclude(self) -> dict[str, Any]:
        """The result, written to `compare.json`. Raises MeasureError when nothing was measured or no check was made."""
        session = self.session
        unchecked = session.stopped == "budget" and not session.looks
        if session.pairs == 0 or unchecked:  # a check that nobody planned would be one more chance of a false alarm
            why = sentence(self.budget_note) if self.budget_note else "nothing was measured yet"
            raise MeasureError(why, "give more time with --budget")
        if session.stopped in ("decided", "looks", "budget"):
            session.state = "finished"  # all alpha is used, or all is said
        content = self.judge()
        of_arms = arm_notes(self.workspace, list(self.arms.values()))
        own = noted([*of_arms, *session_notes(session), *self._why_stopped()])
        plan = self.plan or planned_looks(self.policy, session.looks, None)
        planned = {"looks": [list(look) for look in plan], "finds": self.forecast(plan[-1].reps)}
        content = content | {
            "notes": list(dict.fromkeys([*content["notes"], *own["notes"]])),
            "note_facts": [*content["note_facts"], *own["note_facts"]],
            "workload": self.wish.workload or content.get("workload", ""),
            "session": about(session, self.folder) | {"plan": planned},
        }
        content |= {"trust": dict(self.trust)} if self.trust is not None else {}
        if self.policy.confirm:
            content = with_confirmation(content, self.policy, self.first)
        write_json(self.folder / RESULT, content)
        session.save(self.folder)
        return content

    def result_again(self) -> dict[str, Any]:
        """The result of a finished session; nothing is run."""
        self.say("this session is finished: here is its result again, nothing was run (--new-session starts over)")
        path = self.folder / RESULT
        if not path.is_file():
            self.stopped()
            return self.conclude()
        try:
            content = msgspec.json.decode(read_file(path, MOST_BYTES), type=dict[str, Any])
        except (OSError, *BAD_JSON) as error:
            raise RunError(f"damaged result `{path}`: {error}", "remove it: it is made again") from error
        return content

    def _why_stopped(self) -> list[Note]:
        """Why there are no more repetitions, where nothing is decided."""
        session, last = self.session, self.policy.looks[-1]
        if session.stopped == "budget":
            used = {"budget_s": self.policy.budget_s, "used_s": round(session.spent, 1)}
            return [note("session_planned", runs=session.pairs, last=last, **used)]
        if session.stopped == "hopeless":
            return [note("session_hopeless", runs=session.pairs, last=self.plan[-1].reps)]
        return []

    def _next_look(self) -> int:
        most = self._affordable()
        most = None if most is None else max(most, least_planned(self.policy))
        plan = self.plan or planned_looks(self.policy, self.session.looks, most)
        return next((look.reps for look in plan if look.reps > self.session.pairs), plan[-1].reps)

    def _repeat(self, arm: Name, *, discard: bool) -> None:
        """One repetition of an arm, confirmed in the session. Raises WorkloadError that says which arm failed."""
        check_unchanged(self.workspace, self.arms[arm])
        entry = self.session.enter(arm)
        self.session.save(self.folder)
        path = self.folder / entry.name
        remove(path)
        began, cpu = self.bench.now(), self.bench.cpu()
        chosen, workdir = self.arms[arm], self.folders[arm]
        try:
            slower = self.wish.planted if arm == "new" else None
            self.bench.run(chosen.command, variables(self.workspace, chosen, workdir), workdir, path, slower)
        except WorkloadError as error:
            entry.state, entry.seconds = "failed", self.bench.now() - began
            self.session.failures.append(f"{entry.name}: {error.message}")
            self.session.save(self.folder)
            raise WorkloadError(
                f"the command of `{arm}` failed in `{entry.name}` with {error.message}{self._other_works(arm)}",
                error.hint,
            ) from error
        seconds, entry.stolen = self.bench.now() - began, stolen_share(cpu, self.bench.cpu())
        self.measured[entry.name] = self.bench.measure(path)
        disturbed = not discard and self.session.is_disturbed(entry.stolen)
        entry.state, entry.seconds = "discarded" if discard else "disturbed" if disturbed else "counted", seconds
        self.session.save(self.folder)
        self._tell(entry, seconds)

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
            except MeasureError as error:
                return f"; that of `base` works, but {error.message}"
        return "; that of `base` works"

    def _tell(self, entry: Entry, seconds: float) -> None:
        """A line per repetition: how long it took, whether it counts, and when it is judged."""
        step = self.measured[entry.name].values.get(STEP, {})
        pace = f", step {format_ns(next(iter(step.values())))}" if step else ""
        look, left = self._next_look(), self.session.seconds_to(self._next_look())
        done = sum(min(look, len(self.session.counted(arm))) for arm in NAMES)
        taken = f", set aside: {100 * (entry.stolen or 0.0):.1f} % of its CPU time was taken by other virtual machines"
        why = {"discarded": ", discarded (warm-up)", "disturbed": taken}.get(entry.state, "")
        text = f"{entry.name}: {seconds:.1f} s{pace}{why}"
        if left:
            which = "next" if self.session.looks else "first"
            text += f"; {done}/{2 * look} runs, {which} check after {look} per side, at about {self.bench.clock(left)}"
        self.say(text)

    def _side(self, arm: Name, pairs: int) -> Measures:
        """The first `pairs` counted repetitions of an arm, ordered over both. Raises MeasureError when they differ."""
        parts = [(entry.order, self._measured(entry.name)) for entry in self.session.counted(arm)[:pairs]]
        job = self.session.job or self.session.session_id  # both sides in one, or the session was refused
        return as_side(parts, job, self.arms[arm].label, f"the runs of `{arm}`")


def stolen_share(before: tuple[float, float], after: tuple[float, float]) -> float | None:
    """Share (0..1) of the CPU time wanted between two readings of `Bench.cpu` that was taken away; None for none."""
    used, stolen = (end - start for start, end in zip(before, after, strict=True))
    return stolen / (used + stolen) if used + stolen > 0 else None


def session_notes(session: Session) -> list[Note]:
    """What a reader of the result should know about how it came about, as codes."""
    notes = []
    if session.history:
        earlier = [{"verdict": old["verdict"], "repetitions": old["repetitions"]} for old in session.history]
        notes.append(note("earlier_sessions", earlier=earlier))
    if session.failures:
        notes.append(note("repeated", failures=list(session.failures)))
    aside = [entry.stolen or 0.0 for entry in session.repetitions if entry.state == "disturbed"]
    if aside:
        notes.append(note("set_aside", runs=len(aside), most=max(aside)))
    if session.starts > 1:
        notes.append(note("session_continued", times=session.starts - 1))
    return notes


def about(session: Session, folder: Path) -> dict[str, Any]:
    """The member `session` of the result."""
    names = {arm: [entry.name for entry in session.counted(arm)] for arm in NAMES}
    return {
        "session_id": session.session_id,
        "job": session.job,
        "folder": str(folder),
        "state": session.state,
        "stopped": session.stopped,
        "arms": session.arms,
        "runs": names,
        "discarded": [entry.name for entry in session.repetitions if entry.state == "discarded"],
        "disturbed": [entry.name for entry in session.repetitions if entry.state == "disturbed"],
        "order": [entry.name for entry in session.repetitions],
        "first": session.first,
        "seed": session.seed,
        "seconds": session.spent,
        "starts": session.starts,
        "earlier": session.history,
    }
