"""`pipeprof sweep`: option sets in turn, round by round, until each is decided against the base or the time is over."""

from __future__ import annotations

import hashlib
import os
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment.journal import session_folder
from pipeprof.experiment.runs import write_json
from pipeprof.experiment.sweep.bench import PREPARING, Order, SweepBench
from pipeprof.experiment.sweep.plan import PhaseResult, next_phase
from pipeprof.experiment.sweep.result import content_of, phase_words
from pipeprof.experiment.sweep.session import RESULT, open_sweep, sweep_hash
from pipeprof.experiment.sweep.spec import BASE, seconds_of
from pipeprof.record.plain_file import remove
from pipeprof.report.words.experiments import sentence
from pipeprof.units import format_count
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.sweep import DECIDED
from pipeprof.verdict.sweep_choice import chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.experiment.sweep.plan import Phase, Variant
    from pipeprof.experiment.sweep.session import SweepSession
    from pipeprof.experiment.sweep.spec import Spec
    from pipeprof.verdict.gate.result import Note

ARTEFACTS = "{artefacts}"  # stands for the variant's folder in its words and variables


@dataclass(frozen=True)
class SweepWish:
    """What the user asks for. `budget_s` goes before the file's; `steps`: choose for that many steady steps."""

    spec: Spec
    workdir: Path
    command: tuple[str, ...] = ()
    folder: Path | None = None
    budget_s: float | None = None
    steps: int | None = None


def run_sweep(wish: SweepWish, say: Callable[[str], None], bench: SweepBench | None = None) -> dict[str, Any]:
    """Measure and judge; writes `sweep.json` and returns its content, see docs/sweep.md.

    Raises UsageError for a sweep that cannot be, MeasureError for one of another machine or job, WorkloadError when
    the base row fails, KeyboardInterrupt when it was interrupted: the same call goes on then.
    """
    command = wish.command or wish.spec.command
    if not command:
        raise UsageError("no command to run", "pipeprof sweep sweep.toml -- python train.py")
    next_phase(wish.spec, ())  # what does not go together is said before anything is written
    key = sweep_hash(wish.spec, command, wish.workdir)
    folder = wish.workdir / (wish.folder or f"pipeprof-sweep-{key}")
    with session_folder(folder, say):
        session = open_sweep(folder, key, wish.spec.seed)
        say(f"sweep {session.session_id} in `{folder}`")
        running = Running(wish, command, folder, session, bench or SweepBench(), say)
        running.recover()
        return running.to_the_end()


class Running:
    """A sweep while it runs. The session's file is up to date whenever something takes time."""

    def __init__(
        self,
        wish: SweepWish,
        command: Sequence[str],
        folder: Path,
        session: SweepSession,
        bench: SweepBench,
        say: Callable[[str], None],
    ) -> None:
        self.wish, self.spec, self.folder, self.session = wish, wish.spec, folder, session
        self.command, self.bench, self.say = list(command), bench, say
        self.budget_s = wish.budget_s or seconds_of(self.spec.budget, "`budget`")
        self.timeout_s = seconds_of(self.spec.timeout, "`timeout`")
        self.phases: list[Phase] = []
        self.started = False
        self.notes: list[Note] = []

    def recover(self) -> None:
        """Throw away what a kill left incomplete; its number is not used again. Raises as `throw_away`."""
        for entry in self.session.throw_away(self.folder, self.bench.still_running):
            entry.state, entry.error = "discarded", "interrupted"

    def to_the_end(self) -> dict[str, Any]:
        """All phases; returns the result."""
        outcomes: list[PhaseResult] = []
        self.session.stopped = None
        while (phase := next_phase(self.spec, outcomes)) is not None:
            self.phases.append(phase)
            outcomes.append(self._phase(phase))
        over = all(outcome.is_complete for outcome in outcomes)
        self.session.stopped, self.session.state = ("decided", "finished") if over else ("budget", "open")
        content = content_of(self.spec, self.phases, self.session, self.command, self.wish.steps, self.notes)
        best = content["recommendation"]
        if best is not None:
            prepared = ARTEFACTS in str(best["options"])
            best["artefacts"] = str(_folder_of(self.folder, best["name"])) if prepared else None
        write_json(self.folder / RESULT, content)
        self.session.save(self.folder)
        return content

    def _phase(self, phase: Phase) -> PhaseResult:
        """Rounds of one phase until nothing is left to decide, or the budget is used."""
        if phase.name:
            self.say(f"{phase.name}: {', '.join(arm.name for arm in phase.arms)}")
        number, last = 0, self.spec.looks[-1]
        while number < last and (arms := self._open(phase, number)):
            missing = [arm for arm in arms if number not in self.session.counted(phase.number, arm.name)]
            if missing and self._too_long(missing):
                return PhaseResult(None, is_complete=False)
            self._round(phase, number, missing)
            number += 1
            if number in self.spec.looks:
                self._tell_look(phase, number)
        return PhaseResult(self._best(phase))

    def _open(self, phase: Phase, rounds: int) -> list[Variant]:
        """The arms of the next round: the reference, and those that are neither decided nor failed; none: it is over.

        Worked out from the rounds so far alone, so that a sweep that was interrupted goes on in the same way.
        """
        words = phase_words(self.spec, phase, self.session, rounds)
        left = [arm for arm in phase.arms[1:] if words[arm.name] not in DECIDED and not self._is_out(phase, arm)]
        return [phase.reference, *left] if left else []

    def _is_out(self, phase: Phase, arm: Variant) -> bool:
        return any(self.session.failed(number, arm.name) for number in range(phase.number + 1))

    def _round(self, phase: Phase, number: int, arms: Sequence[Variant]) -> None:
        """Each arm once, in an order drawn for this round: drift of the machine hits all alike."""
        ordered = sorted(phase.arms, key=lambda arm: arm.name)
        random.Random(f"{self.session.seed}/{phase.number}/{number}").shuffle(ordered)  # noqa: S311 - no secret
        if arms and not self.started:
            self._start(phase, arms)
        names = {arm.name for arm in arms}
        for arm in ordered:
            if arm.name in names and (arm is phase.reference or not self._is_out(phase, arm)):
                self._repeat(phase, number, arm)

    def _start(self, phase: Phase, arms: Sequence[Variant]) -> None:
        """After every start some repetitions are discarded: files are not in memory yet, nothing is compiled."""
        self.started = True
        self.session.starts += 1
        cold = {"none": [], "base": [phase.reference], "all": list(arms)}[self.spec.discard]
        for arm in cold:
            self._repeat(phase, -1, arm)

    def _repeat(self, phase: Phase, number: int, arm: Variant) -> None:
        """One repetition. A failure is recorded; that of a reference ends the sweep with its error."""
        entry = self.session.enter(phase.number, number, arm.name)
        self.session.save(self.folder)
        began = self.bench.now()
        try:
            order = self._order(arm, entry.name)
            if arm.options.prepare and arm.name not in self.session.prepared:
                _prepare(arm, order, _folder_of(self.folder, arm.name), self.session, self.bench)
                entry.prepare_s = entry.seconds = self.bench.now() - began
                self.session.save(self.folder)  # what follows may be interrupted
            entry.values = self.bench.run(order, self.spec)
        except (WorkloadError, UsageError, MeasureError, RunError) as error:
            entry.state, entry.error, entry.seconds = "failed", error.message, self.bench.now() - began
            self.session.save(self.folder)
            if arm is phase.reference:
                raise type(error)(f"`{arm.name}` failed in `{entry.name}`: {error.message}", error.hint) from error
            self.say(f"{arm.name}: failed: {error.message}")
            return
        entry.state, entry.seconds = "counted" if number >= 0 else "discarded", self.bench.now() - began
        self.session.save(self.folder)
        label = "discarded (warm-up)" if number < 0 else f"round {number + 1}"
        self.say(f"{arm.name}: {label}, {entry.seconds:.1f} s")

    def _order(self, arm: Variant, name: str) -> Order:
        options = arm.options
        hashes = os.environ.get("PYTHONHASHSEED", "random")
        env = {"PYTHONHASHSEED": "0" if hashes == "random" else hashes}
        there = _folder_of(self.folder, arm.name)
        env |= {key: _placed([str(value)], there)[0] for key, value in options.env.items()}
        command = _placed([*(options.command or self.command), *options.args], there)
        return Order(
            self.folder / name, command, workdir=self.wish.workdir, env=env, longest_s=self.timeout_s,
            dataset=options.dataset, context=options.context,
        )  # fmt: skip

    def _too_long(self, arms: Sequence[Variant]) -> bool:
        """Whether the next round does not fit into the budget. Arms never run are taken to be as fast as the base."""
        if self.budget_s is None:
            return False
        usual = self.session.pace(BASE) or 0.0
        needed = sum(self.session.pace(arm.name) or usual for arm in arms)
        if self.session.spent + needed <= self.budget_s:
            return False
        used_s, needed_s = round(self.session.spent, 1), round(needed, 1)
        self.notes = [note("sweep_budget", budget_s=self.budget_s, used_s=used_s, needed_s=needed_s)]
        self.say(sentence(self.notes[0]))
        return True

    def _best(self, phase: Phase) -> str | None:
        """The best arm that is better than the reference in the stage that is judged."""
        words = phase_words(self.spec, phase, self.session)
        higher = self.spec.rule(self.spec.judge).direction == "higher"
        values = {}
        for arm in phase.arms[1:]:
            series = self.session.series(phase.number, arm.name, self.spec.judge)
            if series and not self._is_out(phase, arm):
                mean = sum(series.values()) / len(series)
                values[arm.name] = -mean if higher else mean
        best = chosen(values, words, "")
        return best or None

    def _tell_look(self, phase: Phase, rounds: int) -> None:
        words = phase_words(self.spec, phase, self.session, rounds)
        words |= {arm.name: "failed" for arm in phase.arms[1:] if self._is_out(phase, arm)}
        decided = [f"{arm.name} {words[arm.name]}" for arm in phase.arms[1:] if words[arm.name] != "inconclusive"]
        self.say(f"check after {format_count(rounds, 'round')}: {', '.join(decided) or 'nothing decided yet'}")


def _folder_of(sweep: Path, variant: str) -> Path:
    """Where a variant's artefacts lie; names of variants may hold anything, so it is named by their hash."""
    return sweep / "artefacts" / hashlib.sha256(variant.encode()).hexdigest()[:12]


def _placed(words: Sequence[str], folder: Path) -> list[str]:
    """Words with the folder in place of `{artefacts}`."""
    return [word.replace(ARTEFACTS, str(folder)) for word in words]


def _prepare(arm: Variant, order: Order, folder: Path, session: SweepSession, bench: SweepBench) -> None:
    """Run a variant's preparing commands; the session then knows how many seconds they took.

    `order` is the repetition that waits for them. Raises WorkloadError when one fails: nothing is noted then, and the
    next call begins anew, in an empty folder.
    """
    remove(folder)
    folder.mkdir(parents=True, exist_ok=True)
    began = bench.now()
    for number, command in enumerate(arm.options.prepare):
        path = order.path.with_name(f"{order.path.name}{PREPARING}{number}")
        bench.prepare(replace(order, command=_placed(command, folder), path=path, dataset=None, context=None))
    session.prepared[arm.name] = bench.now() - began
