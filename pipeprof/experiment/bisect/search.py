"""`pipeprof bisect`: measure commits where it tells most, until one is the first slow one, or the budget is spent.

What a bisection found, as the documented JSON: the commit, or a range; how sure; because of what.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.collect.probe.redact import without_secrets
from pipeprof.errors import MeasureError, PipeprofError, UsageError, WorkloadError
from pipeprof.experiment.arms import Arm, Workspace, checked_out, revision_of, variables
from pipeprof.experiment.bisect.state import Bisection, Commit, open_bisection
from pipeprof.experiment.compare import compare_sides
from pipeprof.experiment.journal import session_folder
from pipeprof.experiment.repetition import Bench, as_side
from pipeprof.experiment.runs import write_json
from pipeprof.record.baseline_summary import format_value
from pipeprof.record.git import git_or_none, git_text
from pipeprof.record.plain_file import remove
from pipeprof.report.words.comparison import because
from pipeprof.units import percent
from pipeprof.verdict.gate.bisection import (
    BESIDE,
    LEAST_AT_ENDS,
    SURE_OF_NONE,
    next_commit,
    opposite,
    posterior,
    settled,
)
from pipeprof.verdict.gate.causes import OF_STEPS, cause
from pipeprof.verdict.gate.policy import Policy
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.record.measures import Measures
    from pipeprof.verdict.gate.bisection import Posterior


RESULT = "bisect.json"
MOST_RUNS = 150
MOST_COMMITS = 10_000


@dataclass(frozen=True)
class BisectWish:
    """What the user asks for. `budget_s`: seconds that all repetitions may take together; `most_runs`: how many."""

    good: str
    bad: str
    command: tuple[str, ...]
    metric: str = "step_time_median"
    budget_s: float | None = None
    most_runs: int = MOST_RUNS
    folder: Path | None = None


def run_bisect(wish: BisectWish, say: Callable[[str], None], bench: Bench | None = None) -> dict[str, Any]:
    """Measure and judge; writes `bisect.json` and returns its content.

    Raises UsageError for revisions that cannot be, MeasureError for a bisection of another machine or job and for a
    metric that was not measured, WorkloadError when the command fails at the good or the bad end, KeyboardInterrupt
    when it was interrupted: the same call goes on from there.
    """
    if not wish.command:
        raise UsageError("no command to run", "pipeprof bisect GOOD BAD -- python train.py")
    workspace = Workspace.here()
    commits = commits_between(workspace, wish.good, wish.bad)
    asked = [[one.revision for one in commits], list(wish.command), wish.metric, str(workspace.cwd), __version__]
    key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:12]
    folder = workspace.cwd / (wish.folder or f"pipeprof-bisect-{key}")
    with session_folder(folder, say):
        fresh = Bisection(key=key, metric=wish.metric, command=without_secrets(wish.command), commits=commits)
        state = open_bisection(folder, fresh)
        ends = [f"{one.revision[:10]} (`{name}`)" for one, name in ((commits[0], wish.good), (commits[-1], wish.bad))]
        say(f"{len(commits) - 1} commits after the good one, {ends[0]}, up to {ends[1]}, in `{folder}`")
        running = _Running(folder, state, workspace, wish, bench or Bench(), say)
        content = result(state, running.to_the_end(), running.measured)
        content["session"]["folder"] = str(folder)
        write_json(folder / RESULT, content)
        return content


def commits_between(workspace: Workspace, good: str, bad: str) -> list[Commit]:
    """The good commit and those after it up to the bad one, along first parents, oldest first.

    Raises UsageError when one is not known, or the good one is no ancestor of the bad one by first parents.
    """
    first, last = revision_of(workspace, good), revision_of(workspace, bad)
    if workspace.root is None or first == last:
        raise UsageError(f"`{good}` and `{bad}` are the same commit", "give an older commit as GOOD")
    words = ("log", "--first-parent", "--format=%H%x09%P%x09%s", f"--max-count={MOST_COMMITS + 1}")
    lines = git_text(workspace.root, *words, "--end-of-options", f"{first}..{last}").split("\n")
    parts = [[*line.split("\t", 2), ""] for line in reversed(lines) if line]  # the tab of an empty last subject is gone
    if not parts or parts[0][1].partition(" ")[0] != first:
        raise _not_before(workspace.root, (good, first), (bad, last))
    subject = git_text(workspace.root, "log", "-1", "--format=%s", first)
    return [Commit(revision=first, subject=subject), *(Commit(revision=one[0], subject=one[2]) for one in parts)]


def _not_before(root: Path, good: tuple[str, str], bad: tuple[str, str]) -> UsageError:
    """Why the good commit does not lie before the bad one; of each its name and its full hash."""
    if git_or_none(root, "merge-base", "--is-ancestor", bad[1], good[1]) is not None:
        return UsageError(
            f"`{good[0]}` is newer than `{bad[0]}`",
            f"the older commit goes first: pipeprof bisect {bad[0]} {good[0]} -- COMMAND",
        )
    shallow = git_or_none(root, "rev-parse", "--is-shallow-repository")
    return UsageError(
        f"`{good[0]}` is not among the first parents of `{bad[0]}`, or more than {MOST_COMMITS:,} commits lie between",
        "this clone has not the whole history: git fetch --unshallow" if (shallow or "").strip() == "true"
        else "give a commit of the same branch as GOOD",
    )  # fmt: skip


class _Running:
    """A bisection while it runs. Its file is up to date whenever something takes time."""

    def __init__(
        self, folder: Path, state: Bisection, workspace: Workspace, wish: BisectWish, bench: Bench,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.folder, self.state, self.workspace, self.wish = folder, state, workspace, wish
        self.bench, self.say = bench, say
        self.measured: dict[int, list[Measures]] = {}

    def now(self) -> Posterior:
        """The probabilities after the repetitions so far."""
        return posterior(self.state.counted(), len(self.state.commits) - 1)

    def to_the_end(self) -> str:
        """Add repetitions; why there are no more: found | no_change | budget."""
        for run in self.state.throw_away(self.folder, self.bench.still_running):
            self.state.repetitions.remove(run)
        for run in self.state.repetitions:
            if run.state == "counted":
                self._remember(run.commit, self.folder / run.name)
        cold = True
        while True:
            stopped = self._stopped()
            if stopped is not None:
                return stopped
            if cold:
                self.state.starts += 1
                self._repeat(0, discard=True)
                cold = False
                continue
            counts = self.state.counts()
            ends = (0, len(counts) - 1)
            at = min(ends, key=counts.__getitem__) if min(counts[end] for end in ends) == 0 else self._next(counts)
            self._repeat(at, discard=False)

    def _next(self, counts: list[int]) -> int:
        counted = self.state.counted()
        previous = counted[-1][0] if counted else None
        return next_commit(self.now(), counts, self.state.measurable(), previous, self.state.usual_seconds())

    def _stopped(self) -> str | None:
        counts, spent = self.state.counts(), self.state.spent
        if min(counts[0], counts[-1]) >= LEAST_AT_ENDS:
            self._refuse_opposite()
            now = self.now()
            if now.none >= SURE_OF_NONE:
                return "no_change"
            if settled(now, counts, self.state.measurable()):
                return "found"
        runs = [run.seconds for run in self.state.repetitions if run.seconds is not None]
        late = self.wish.budget_s is not None and runs and spent + max(runs[-3:]) > self.wish.budget_s
        return "budget" if late or sum(counts) >= self.wish.most_runs else None

    def _refuse_opposite(self) -> None:
        """Raises MeasureError when the bad end is surely better than the good one: then no commit made it worse."""
        counted, last = self.state.counted(), len(self.state.commits) - 1
        if not opposite(counted, last):
            return
        (good, before), (bad, after) = (
            (
                self.state.commits[end].revision[:10],
                format_value(self.wish.metric, median(value for at, value in counted if at == end)),
            )
            for end in (0, last)
        )
        raise MeasureError(
            f"`{self.wish.metric}` fell: {before} at the good commit `{good}`, {after} at the bad one `{bad}`",
            "bisect finds what made it larger: give a range in which it grew (`pipeprof history` knows where)",
        )

    def _repeat(self, at: int, *, discard: bool) -> None:
        """One repetition of a commit, confirmed in the state.

        A commit that fails before it has a value, or twice, is broken; not the ends.
        """
        state, commit = self.state, self.state.commits[at]
        run = state.enter(at)
        state.save(self.folder)
        path, began = self.folder / run.name, self.bench.now()
        remove(path)
        arm = Arm("new", self.wish.command, {}, ref=commit.revision, revision=commit.revision)
        try:
            with checked_out(self.workspace, [arm], self.folder) as folders:
                workdir = folders["new"]
                self.bench.run(self.wish.command, variables(self.workspace, arm, workdir), workdir, path)
            run.seconds = self.bench.now() - began
            run.value = self._remember(None if discard else at, path)
        except (WorkloadError, MeasureError) as error:
            run.state, run.seconds = "failed", run.seconds or self.bench.now() - began
            is_end = at in (0, len(state.commits) - 1)
            failed = sum(one.commit == at and one.state == "failed" for one in state.repetitions)
            commit.broken = not is_end and (not state.counts()[at] or failed > 1)  # one that has run may fail by chance
            state.save(self.folder)
            if is_end:
                raise self._of_end(at, error) from error
            self.say(f"{commit.revision[:10]} {'cannot be measured' if commit.broken else 'failed'}: {error.message}")
            return
        run.state = "discarded" if discard else "counted"
        state.save(self.folder)
        self._tell(at, run.value, discard=discard)

    def _of_end(self, at: int, error: WorkloadError | MeasureError) -> PipeprofError:
        """The error of a repetition at the good or the bad commit, which it names."""
        if isinstance(error, MeasureError):
            return MeasureError(error.message, error.hint)
        where = f"{'good' if at == 0 else 'bad'} commit `{self.state.commits[at].revision[:10]}`"
        return WorkloadError(f"the command failed at the {where}: {error.message}", error.hint)

    def _remember(self, at: int | None, path: Path) -> float:
        """The metric of a repetition; the rest is kept for the cause. Raises MeasureError without the metric."""
        measures = self.bench.measure(path)
        values = measures.values.get(self.wish.metric, {})
        value = next(iter(values.values()), None)
        if value is None or value <= 0:
            names = ", ".join(name for name in measures.values if "/" not in name)
            raise MeasureError(f"`{self.wish.metric}` was not measured in `{path}`", f"give --metric one of {names}")
        if at is not None:
            self.measured.setdefault(at, []).append(measures)
        return value

    def _tell(self, at: int, value: float, *, discard: bool) -> None:
        commit, counted = self.state.commits[at], self.state.counted()
        text = f"run {len(self.state.repetitions)}: {commit.revision[:10]} {format_value(self.wish.metric, value)}"
        counts = self.state.counts()
        if discard:
            text += ", discarded (warm-up)"
        elif min(counts[0], counts[-1]):
            now = self.now()
            cell, chance = now.likeliest(self.state.measurable())
            likeliest = self.state.commits[cell[-1]].revision[:10]
            text += f"; likeliest {likeliest} ({percent(chance)}), no change {percent(now.none)}, {len(counted)} runs"
        self.say(text)


SCHEMA_VERSION = 1
RANGE = 0.95  # of the probability lies in the range that is named
MOST_CANDIDATES = 10
EXIT = {"found": 0, "range": 4, "no_change": 3}
_TOGETHER = "bisect"  # stands for the job of all repetitions: a bisection is not continued in another one


def result(state: Bisection, stopped: str, measured: Mapping[int, Sequence[Measures]]) -> dict[str, Any]:
    """`verdict`: found (one commit), range, or no_change; `measured`: what was measured of each commit.

    Raises MeasureError when one of the ends was not measured.
    """
    counts = state.counts()
    if not min(counts[0], counts[-1]):
        raise MeasureError("the budget ended before both ends were measured", "give more time with --budget")
    now = posterior(state.counted(), len(counts) - 1)
    cell, chance = now.likeliest(state.measurable())
    one = stopped == "found" and len(cell) == 1
    verdict = "no_change" if stopped == "no_change" else "found" if one else "range"
    around = cell if stopped == "found" else now.interval(RANGE)
    return {
        "schema_version": SCHEMA_VERSION, "verdict": verdict, "exit_code": EXIT[verdict], "stopped": stopped,
        "metric": state.metric, "probability": chance if stopped == "found" else None,
        "commit": _commit(state, now, cell[-1]) if verdict == "found" else None,
        "range": [] if verdict == "no_change" else [_commit(state, now, at) for at in around],
        "no_change_probability": now.none, "ratio": None if verdict == "no_change" else now.ratio,
        "candidates": _candidates(state, now), **_why(state, now, around, verdict, measured),
        "good": _commit(state, now, 0), "bad": _commit(state, now, len(state.commits) - 1),
        "commits": len(state.commits) - 1, "runs": sum(counts),
        "cannot_be_measured": [_commit(state, now, at) for at, one in enumerate(state.commits) if one.broken],
        "session": {
            "session_id": state.session_id, "folder": "", "seconds": state.spent, "starts": state.starts,
            "repetitions": [msgspec.to_builtins(run) for run in state.repetitions],
        },
    }  # fmt: skip


def _commit(state: Bisection, now: Posterior, at: int) -> dict[str, Any]:
    one = state.commits[at]
    return {
        "revision": one.revision, "subject": one.subject, "probability": float(now.first[at]),
        "runs": state.counts()[at],
    }  # fmt: skip


def _candidates(state: Bisection, now: Posterior) -> list[dict[str, Any]]:
    """The most probable commits, the likeliest first."""
    order = sorted(range(1, len(state.commits)), key=lambda at: (-now.first[at], at))
    return [_commit(state, now, at) for at in order[:MOST_CANDIDATES]]


def _why(
    state: Bisection, now: Posterior, around: range, verdict: str, measured: Mapping[int, Sequence[Measures]]
) -> dict[str, Any]:
    """What `pipeprof compare` says about the repetitions before the change and those behind it; None for no change."""
    before = [at for at in sorted(measured, reverse=True) if at < around[0]]
    after = [at for at in sorted(measured) if at >= around[-1]]
    if verdict == "no_change" or not (before and after):
        return {"headline": None, "cause": None, "because": "", "compared": None}
    compared: dict[str, Any] = {}
    for least in (BESIDE, None):
        nearest = [_nearest(measured, order, least) for order in (before, after)]
        compared = _compared(state, nearest, now.ratio)
        if compared["cause"]:
            break
    return compared


def _nearest(measured: Mapping[int, Sequence[Measures]], order: Sequence[int], least: int | None) -> list[Measures]:
    """Repetitions of the nearest commits, `least` or more where there are as many; all of them for None.

    Those beside the change were measured in turn: what the machine did meanwhile is the same for both.
    """
    nearest: list[Measures] = []
    for at in order:
        if least is not None and len(nearest) >= least:
            break
        nearest += measured[at]
    return nearest


def _compared(state: Bisection, nearest: Sequence[Sequence[Measures]], ratio: float) -> dict[str, Any]:
    before, after = nearest
    names = {name for part in (*before, *after) for name in part.values}
    content = compare_sides(_side(before, "before"), _side(after, "after"), _policy(names, ratio))
    entry = cause(content["explanation"], grew=True) if state.metric in OF_STEPS else None
    return {
        "headline": content["headline"], "cause": entry, "because": because(entry).removeprefix(", "),
        "compared": {"before": len(before), "after": len(after)},
    }  # fmt: skip


def _policy(names: Iterable[str], ratio: float) -> Policy:
    """The default policy, in which a part of a step counts when it changed by half of what the step did.

    Else no part of a step that grew by 5 % would count: 5 % is where they begin to.
    """
    policy, most = Policy(), (ratio - 1) / 2
    parts = {name: policy.rule(name) for name in names}
    smaller = {
        name: msgspec.structs.replace(rule, min_effect=min(rule.min_effect, most))
        for name, rule in parts.items() if rule.family == "secondary"
    }  # fmt: skip
    return msgspec.structs.replace(policy, metrics=policy.metrics | smaller)


def _side(parts: Sequence[Measures], label: str) -> Measures:
    """Repetitions of several commits as one side; facts of the one nearest to the change come first."""
    return as_side(enumerate(parts), _TOGETHER, label, f"the runs {label} the change")
