"""`pipeprof tune`: find settings of the data pipeline that make a training faster, or cheaper, and prove it.

A recording says what limits; of the candidates the one that should bring most is tried, in turn with what was accepted
so far, until the pairs of runs decide. What is faster and hands out the same batches is accepted, the training is
recorded again, and so on. At the end the whole set is held against the original, judged as the gate judges. Every run
is kept on disk: the same call goes on where an interrupted one was.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace as replace_fields

from pipeprof.errors import MeasureError, UsageError, WorkloadError
from pipeprof.experiment import repetition
from pipeprof.experiment.journal import refuse_orphans, session_folder
from pipeprof.experiment.pairs import Plan, Side, ratio_of, sides
from pipeprof.experiment.tune import RECORDED
from pipeprof.experiment.tune.bench import GRACE_S, SLOWER, environment
from pipeprof.experiment.tune.goal import (
    ENOUGH,
    LOOKS,
    decided_word,
    has_looks,
    is_decided,
    is_hopeless,
    lacks_time,
    policy_of,
    proof_plan,
    seconds_for,
    sides_of,
    take_verdict,
)
from pipeprof.experiment.tune.rows import UNKNOWN, Handed, worse
from pipeprof.experiment.tune.state import (
    HINT,
    FailedRun,
    Final,
    Proven,
    Trial,
    new_state,
    open_state,
    refuse_changed,
    sources_of,
)
from pipeprof.experiment.tune.trial import (
    ChangedSideError,
    is_proven,
    new_trial,
    outcome,
    promised,
    rates_of_sides,
    recorded_of,
    seen_facts,
    whole_epochs,
)
from pipeprof.record.plain_file import remove
from pipeprof.record.run import SPOOL
from pipeprof.record.settings_file import Settings
from pipeprof.report.words import speedup
from pipeprof.verdict.candidate import key_of
from pipeprof.verdict.gate.sequential_test import judge_looks
from pipeprof.verdict.options import learned
from pipeprof.verdict.tuning import candidates, failed, limits_itself, worth_trying

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.experiment.tune.bench import Recording, RunResult, TuneBench
    from pipeprof.experiment.tune.rows import Batches
    from pipeprof.experiment.tune.state import Ended, TuneState, Word
    from pipeprof.verdict.candidate import Candidate
    from pipeprof.verdict.gate.planned import Look
    from pipeprof.verdict.tuning import Goal

TRIAL = Plan(2, 6)
BUDGET_S = 600.0
MOST_TRIALS = 24
OVERTAKEN = ("slower", "no_gain", "hopeless", "undecided")  # what an accepted step may turn into a gain
RUNS = ("look-*", "*/[ab]*", "*/rows/[ab]*")  # folders of runs


@dataclass(frozen=True)
class TuneWish:
    """What the user asks for. `allow_unchecked`: also take changes whose batches could not be compared.

    `allow_order`: also try changes that hand out the same rows in another order. `allow_random`: also take those under
    which random operations draw other numbers.
    `goal`: a faster training, or one as fast that needs less memory or CPU time. `stop_after`: training steps after
    which each run ends; None: as the first recording suggests.
    """

    command: Sequence[str]
    workdir: Path
    folder: Path | None = None
    budget_s: float = BUDGET_S
    allow_unchecked: bool = False
    goal: Goal = "time"
    allow_order: bool = False
    allow_random: bool = False
    stop_after: int | Literal["all"] | None = None


def run_tune(wish: TuneWish, bench: TuneBench, say: Callable[[str], None]) -> tuple[TuneState, Path]:
    """Tune, or go on with a tuning that was interrupted; returns what was found and its folder.

    Raises UsageError without a command, and while a run of a killed call goes on; WorkloadError when the unchanged
    command fails, MeasureError when its steps cannot be timed, or the tuning was begun on another machine.
    """
    if not wish.command:
        raise UsageError("no command to run", "pipeprof tune -- python train.py")
    new = new_state(wish)
    folder = wish.workdir / (wish.folder or f"pipeprof-tune-{new.tune}")
    with session_folder(folder, say):
        state = open_state(folder, new, wish.workdir)
        state.save(folder)
        say(f"tuning {new.tune} in `{folder.name}`")
        Tuning(wish, bench, folder, state, say).to_the_end()
    return state, folder


@dataclass
class Tuning:
    """A tuning that goes on. `began`: when this call did, on the bench's clock, less what earlier calls took.

    `looked`: the recordings that this call has read, by the number of accepted steps.
    """

    wish: TuneWish
    bench: TuneBench
    folder: Path
    state: TuneState
    say: Callable[[str], None]
    began: float = field(init=False)
    looked: dict[int, Recording] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.began = self.bench.now() - self.state.spent_s
        self.bench.stop_after = self.state.stop_after

    def to_the_end(self) -> None:
        """Try candidates as long as one may pay and there is time, then prove the whole set."""
        if self.state.state == "finished" and not self._reopened():
            self.say("this tuning is finished; nothing is run again")
            return
        if self.state.seen and self.state.fingerprint:
            hint = f"times of two machines cannot be compared; {HINT}"
            self.state.refuse_elsewhere(f"the tuning in `{self.folder}`", hint, in_a_job=False)
        self.state.starts += 1
        self.state.begin(self.folder)
        spools = [path.relative_to(self.folder) for run in RUNS for path in self.folder.glob(f"{run}/{SPOOL}")]
        refuse_orphans(self.folder, [str(path.parent) for path in spools], repetition.Bench().still_running)
        while self.state.ended is None:
            self._next()
        while not self.state.settings.is_empty:
            self._prove()
            self._fall_back()
            if not self._undo_last():
                break
        self.state.state = "finished"
        self._save()

    def _reopened(self) -> bool:
        """Whether a tuning goes on that ended for want of time or of leave: only with a budget that it has not used up.

        Trials that the budget stopped, and those whose batches could not be compared once that is allowed, are made
        again; so is a proof in which a run failed.
        """
        again = self.state.made_again(unchecked=self.wish.allow_unchecked)
        lacking = lacks_time(self.state)
        if self.left_s < seconds_for(self.state, ENOUGH) or not (again or lacking):
            return False
        self.state.state = "open"
        if again or self.state.ended == "budget":
            self.state.ended = None
            self.state.trials = [one for one in self.state.trials if one not in again]
            self.state.dropped += len(again)
        return True

    def _fall_back(self) -> None:
        """What an earlier call proved stands where what came on top of it was not proven."""
        proven, final = self.state.proven, self.state.final
        if proven is None or final is None or is_proven(self.state, allow_unchecked=self.wish.allow_unchecked):
            return
        for trial in self.state.trials[proven.trials :]:
            if trial.verdict == "accepted":
                trial.verdict = "unproven"
                if has_looks(self.state, final):  # there was no time: it is made again when there is
                    trial.stopped, self.state.ended = "budget", "budget"
        self.state.final = proven.final
        self._forget_looks()

    def _undo_last(self) -> bool:
        """Whether the last of several accepted steps was taken back, since the whole set hands out other rows."""
        final = self.state.final
        if final is None or final.error or self.state.steps < 2 or self.state.may_take(final.batches, so_far=True):
            return False
        last = next(one for one in reversed(self.state.trials) if one.verdict == "accepted")
        last.verdict, last.batches = "unchecked" if final.batches in UNKNOWN else "other_data", final.batches
        last.error = final.why
        self.say(f"without {speedup.changes(last.what)}: with it the whole set hands out other rows")
        self.state.final = None
        self._forget_looks()
        self._save()
        return True

    def _forget_looks(self) -> None:
        """Remove the recordings of what is no longer accepted."""
        for number in range(self.state.steps + 1, len(self.state.seen)):
            remove(self.folder / f"look-{number}")
        del self.state.seen[self.state.steps + 1 :]

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left."""
        return self.wish.budget_s - (self.bench.now() - self.began)

    def _save(self) -> None:
        self.state.spent_s = self.bench.now() - self.began
        self.state.save(self.folder)

    def _next(self) -> None:
        try:
            seen = self._look()
        except (WorkloadError, MeasureError) as error:
            if not self.state.steps:
                raise
            self.say(f"the training cannot be recorded with what was accepted: {error.message}")
            self._end("unrecorded")
            return
        candidate = self._following(seen)
        if candidate is None or len(self.state.trials) >= MOST_TRIALS:
            limits = self.wish.goal == "time" and limits_itself(seen.loop, seen.recorded.readers)
            cut_short = any(one.stopped == "budget" for one in self.state.trials)  # nothing is known of that one
            ended: Ended = "nothing_left" if candidate is None else "trials"
            if limits:
                ended = "other_iterator" if seen.waits_elsewhere else "loop_limits"
            self._end("budget" if cut_short else ended)
        elif self.left_s < seconds_for(self.state, ENOUGH):
            self._end("budget")
        else:
            self._try(candidate, seen)

    def _following(self, seen: Recording) -> Candidate | None:
        """The candidate to try now.

        What was no gain before the last accepted step, when something else limited, may be one: it is tried again where
        a gain is predicted anew.
        """
        trials, possible = self.state.trials, self._candidates(seen)
        last = max((number for number, one in enumerate(trials) if one.verdict == "accepted"), default=-1)
        overtaken = {one.key for one in trials[: last + 1] if one.verdict in OVERTAKEN and self.wish.goal == "time"}
        again = {one.key for one in possible if one.key in overtaken and not one.is_unknown}
        tried = {one.key for one in trials if one.key not in again} | {one.key for one in trials[last + 1 :]}
        return next(worth_trying(possible, tried), None)

    def _candidates(self, seen: Recording) -> list[Candidate]:
        """What could be tried on what was recorded last, with what the trials since then taught.

        Their keys have the operators' places in the user's graph: op_ids are others once a batch was moved.
        """
        nodes = {row["op_id"]: row["node"] for row in seen.ops}
        cached_at = min((one.node for one in self.state.settings.operators if one.cache), default=None)
        gone = {row["op_id"] for row in seen.ops if cached_at is not None and row["node"] >= cached_at}
        possible = [
            replace(one, key="+".join(key_of(change, nodes.get(change.op_id)) for change in one.changes) or one.key)
            for one in candidates(seen.loop, environment(), self.wish.goal, recorded_of(seen))
            if not any(change.op_id in gone for change in one.changes) and (self.wish.allow_order or not one.permutes)
        ]
        if self.wish.goal != "time":
            return possible
        by_key = {one.key: one for one in possible}
        since = itertools.takewhile(lambda one: one.verdict != "accepted", reversed(self.state.trials))
        wrong = [one for one in since if one.predicted_wrong and one.key in by_key]
        return learned(possible, [(by_key[one.key], one.ratio) for one in reversed(wrong) if one.ratio])

    def _end(self, why: Ended) -> None:
        self.state.ended = why
        self._save()

    def _look(self) -> Recording:
        """The recording of what was accepted so far. Raises MeasureError where no pipeline feeds the training."""
        number = self.state.steps
        if number in self.looked:
            return self.looked[number]
        if len(self.state.seen) <= number:
            self.say("recording the training" + (" with what was accepted" if number else ""))
        path = self.folder / f"look-{number}"
        longest = SLOWER * self.state.look_s + GRACE_S if self.state.seen else self.left_s
        seen = self.bench.look(self.state.settings, path, longest)
        if seen is None:
            remove(path)  # it is made again when the script was changed, as the hint says
            raise MeasureError(
                "no dataset pipeline fed the training, so there is nothing to tune",
                "in sink mode the batches go to the device directly: train with dataset_sink_mode=False",
            )
        if self.state.settings.keeps_rows:
            seen = replace(seen, recorded=replace(seen.recorded, caches=()))
        if len(self.state.seen) <= number:
            self.state.sources = self.state.sources or sources_of(self.wish.workdir, self.wish.command, seen)
            self.state.look_s = max(self.state.look_s, seen.seconds)
            if seen.ended_after and not self.state.stop_after:
                self.state.stop_after = self.bench.stop_after = seen.ended_after // RECORDED
                self.say(f"a long training: each run ends after {self.state.stop_after:,} steps")
            self.state.seen.append(seen_facts(seen, self.wish.goal))
            self._save()
        self.looked[number] = seen
        return seen

    def _try(self, candidate: Candidate, seen: Recording) -> None:
        """Hold the candidate against what was accepted so far; what came of it goes into the state."""
        trial = new_trial(candidate, seen, self.state)
        folder = self.folder / f"trial-{self.state.dropped + len(self.state.trials)}"
        self.say(f"trying {speedup.changes(trial.what)}{promised(trial.prediction)}")
        began = self.bench.now()
        try:
            self._pairs(trial, folder)
        except ChangedSideError as error:
            trial.verdict, trial.error = "failed", error.message
        if trial.interval is not None:
            trial.predicted_wrong = failed(candidate.prediction, *trial.interval)
        trial.seconds = self.bench.now() - began
        self.state.trials.append(trial)
        if trial.verdict == "accepted":
            final = self.state.final
            if final is not None and is_proven(self.state, allow_unchecked=self.wish.allow_unchecked):
                self.state.proven = Proven(final=final, trials=len(self.state.trials) - 1)  # by an earlier call
            self.state.final = None
        self.say(f"  {outcome(trial)}")
        self._save()

    def _pairs(self, trial: Trial, folder: Path) -> None:
        """Pairs of runs without and with the candidate, until they decide or the time is over."""
        remove(folder)
        before, handed, stopped = self.state.settings, Handed(), None
        if trial.permutes and not self._may_permute(trial, folder):
            trial.stopped = "decided"
            return
        while stopped is None:
            batches = handed.add(*self._pair(before, trial, folder))
            self._save()  # the time that it took: the trial itself is made again after a kill
            trial.batches = trial.batches if trial.permutes else batches
            word = self._decided(trial)
            is_other = trial.batches == "other" and not self.wish.allow_random
            stopped = TRIAL.stop(len(trial.a), 0.0, decided=word is not None or is_other)
            if self.left_s < seconds_for(self.state, 1) and len(trial.a) >= ENOUGH:
                stopped = stopped or "budget"
        if word == "accepted" and self._whole_epochs_may_tell(trial):
            trial.permutes = True
            self._compare_whole(trial, folder)
        trial.ratio, trial.stopped = ratio_of(trial.a, trial.b).ratio, stopped
        trial.saved = ratio_of(trial.need_b, trial.need_a).ratio if trial.need_a else None
        trial.verdict = self._verdict(trial, word)

    def _whole_epochs_may_tell(self, trial: Trial) -> bool:
        """Whether other batches may be so by their order alone, or by random numbers, and that is allowed."""
        by_itself = trial.batches == "not_reproducible" and (self.wish.allow_order or self.wish.allow_random)
        return not trial.permutes and (by_itself or (trial.batches == "other" and self.wish.allow_random))

    def _decided(self, trial: Trial) -> Word | None:
        """What the pairs so far decide. What nothing was predicted of gets all of them only while they may help."""
        goal, pairs = self.wish.goal, len(trial.a)
        word = decided_word(trial, goal)
        may_end = trial.prediction["high"] is None and ENOUGH <= pairs < TRIAL.most
        return "hopeless" if word is None and may_end and is_hopeless(trial, goal, TRIAL.most) else word

    def _may_permute(self, trial: Trial, folder: Path) -> bool:
        """Whether what a candidate hands out are the rows of the original, in whole epochs; before it is timed."""
        self._compare_whole(trial, folder)
        trial.verdict = "unchecked" if trial.batches in UNKNOWN else "other_data"
        return self._may_take(trial)

    def _may_take(self, trial: Trial) -> bool:
        return self.state.may_take(trial.batches, trial.settings, unchecked=self.wish.allow_unchecked)

    def _compare_whole(self, trial: Trial, folder: Path) -> None:
        trial.batches, why = self._whole_epochs(trial.settings, folder)
        trial.error = "" if trial.batches == "random" else why  # the proof tells what is drawn

    def _whole_epochs(self, settings: Settings, folder: Path) -> tuple[Batches, str]:
        """What whole epochs with the settings hand out, against the original's; why, where that is something else."""
        found = whole_epochs(self.bench, self.state, settings, (self.folder / "original", folder / "rows"))
        refuse_changed(self.folder, self.state, self.wish.workdir)
        self._save()
        return found

    def _pair(self, before: Settings, of: Trial | Final, folder: Path) -> tuple[RunResult, RunResult]:
        """Both sides once, in turn; what they needed goes into the trial or the final."""
        number = len(of.a)
        after = of.settings if isinstance(of, Trial) else self.state.settings
        before = replace_fields(before, site=after.site)  # both sides' batches are those of the training's iterator
        ran: dict[str, RunResult] = {}
        for side in sides(number):
            has_run = side == "a" or number > 0 or isinstance(of, Final)
            try:
                ran[side] = self._run(before if side == "a" else after, folder, (side, number), has_run=has_run)
            except (WorkloadError, MeasureError) as error:
                refuse_changed(self.folder, self.state, self.wish.workdir)
                if side == "b":
                    raise ChangedSideError(error.message) from error
                raise
            self.state.run_seconds.append(ran[side].seconds)
        refuse_changed(self.folder, self.state, self.wish.workdir)
        plain, changed = ran["a"], ran["b"]
        rates = rates_of_sides(plain, changed, after)
        of.a.append(rates[0])
        of.b.append(rates[1])
        if plain.need is not None and changed.need is not None:
            of.need_a.append(plain.need)
            of.need_b.append(changed.need)
        return plain, changed

    def _run(self, settings: Settings, folder: Path, name: tuple[Side, int], *, has_run: bool) -> RunResult:
        """A run; one that fails is made once more where those settings have run before, which may be chance.

        But not where the changed side fails more often than the other one. The state tells of those that failed.
        """
        of, is_second = (folder.name, self.state.steps), False
        while True:
            try:
                return self.bench.run(settings, folder, name, SLOWER * self.state.run_s + GRACE_S)
            except (WorkloadError, MeasureError) as error:
                if not has_run:
                    raise
                told = FailedRun(folder=folder.name, side=name[0], error=error.message, steps=self.state.steps)
                self.state.failed_runs.append(told)
                failed = [one.side for one in self.state.failed_runs if (one.folder, one.steps) == of]
                if is_second or (name[0] == "b" and failed.count("b") > failed.count("a") + 1):
                    raise
                self.say(f"  a run failed, and is made again: {error.message}")
                is_second = True

    def _verdict(self, trial: Trial, word: Word | None) -> Word:
        if trial.batches == "other" and (word == "accepted" or not self.wish.allow_random):
            return "other_data"  # where other random numbers are allowed, only those of a gain are told from other rows
        if word == "accepted" and not self._may_take(trial):
            return "unchecked" if trial.batches in UNKNOWN else "other_data"
        return word or "undecided"

    def _prove(self) -> None:
        """The whole set against the original, until the gate's statistics decide or the budget ends."""
        final = self.state.final = self.state.final or Final()
        self.say("proving the whole set against the original")
        handed, permutes = Handed(), any(one.permutes and one.verdict == "accepted" for one in self.state.trials)
        if not self._compare_rows(final):
            return
        final.error = ""  # of an earlier call
        while self.state.may_take(final.batches, so_far=True) and not self._is_over(final):
            try:
                pair = self._pair(Settings(), final, self.folder / "final")
            except ChangedSideError as error:
                final.error = error.message
                break
            batches = worse(final.batches, handed.add(*pair))
            if not permutes and batches != final.batches:
                final.batches, final.why = batches, ""
            self._save()
            self.say(f"  pair {len(final.a)}: x{final.b[-1] / final.a[-1]:.2f}")
        if final.a and len(final.a) not in final.looks:
            self._judge(final, proof_plan(final, self.wish.goal, LOOKS[-1]))

    def _is_over(self, final: Final) -> bool:
        """Whether the proof ends here; judges it where a look is due. By the time alone, not by what was measured."""
        pairs = len(final.a)
        most = min(pairs + int(max(self.left_s, 0) // (2 * self.state.run_s)), LOOKS[-1])
        if is_decided(final) or most < LOOKS[0]:
            return True
        if pairs not in final.looks:
            plan = proof_plan(final, self.wish.goal, most)
            if pairs in {look.reps for look in plan}:
                return self._judge(final, plan) or pairs == plan[-1].reps
        return most <= pairs

    def _compare_rows(self, final: Final) -> bool:
        """Every row of the whole set against the original's, once; whether it can go on to be timed."""
        if not final.rows_compared:
            if 2 * self.state.rows_run_s > self.left_s:
                return False
            try:
                final.batches, final.why = self._whole_epochs(self.state.settings, self.folder / "final")
            except ChangedSideError as error:
                final.error = error.message
                return False
            final.rows_compared = True
            self._save()
        return self.state.may_take(final.batches, so_far=True)

    def _judge(self, final: Final, plan: Sequence[Look]) -> bool:
        """Put the gate's verdict into the final; True when it is decided."""
        goal = self.wish.goal
        return take_verdict(final, judge_looks(*sides_of(final, goal), policy_of(goal), plan), plan, goal)
