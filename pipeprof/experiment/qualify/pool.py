"""The repetitions that `pipeprof qualify` draws its sessions from: rounds of one command, as it is and slowed down.

What is measured so far is on disk: `pool.json` is whole at every moment, so it can go on.
"""

from __future__ import annotations

import math
import random
import secrets
from dataclasses import dataclass, field
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from pipeprof.collect import fingerprint
from pipeprof.collect.probe.redact import without_secrets
from pipeprof.errors import MeasureError, UsageError, WorkloadError
from pipeprof.experiment.arms import Workspace, tree_state
from pipeprof.experiment.journal import Journal, refuse_links, refuse_orphans, saved
from pipeprof.experiment.runs import make_folder
from pipeprof.record.document import FileName  # noqa: TC001 - msgspec reads it
from pipeprof.record.git import git_or_none
from pipeprof.record.plain_file import remove
from pipeprof.record.text import printable, printable_all
from pipeprof.units import format_count
from pipeprof.verdict.gate.policy import differences
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.gate.statistics import Change, moments
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.experiment.repetition import Bench
    from pipeprof.verdict.gate.result import Note

SCHEMA_VERSION = 1
STEP = "step_time_median"
WARM_UP = "warm-up"
SAME = ("same-a", "same-b")
HALF = 0.5  # of the injected slow-down must be seen, or it was hidden by something

Values = dict[str, float]  # metric -> value of one repetition


class Measured(msgspec.Struct, kw_only=True):
    """One repetition: how long it took, from start to exit (seconds), and its metrics."""

    seconds: float
    values: dict[str, float]


class PoolState(Journal, kw_only=True):
    """What was ordered, and the complete repetitions by the names of their folders.

    `code`: what is measured; None in a state of an older pipeprof.
    """

    FILE: ClassVar[str] = "pool.json"

    schema_version: int = SCHEMA_VERSION
    command: list[str]
    slow_downs: list[float]
    seed: int
    fingerprint: dict[str, Any] = msgspec.field(default_factory=dict, name="machine")
    code: list[str | None] | None = None
    repetitions: dict[FileName, Measured] = msgspec.field(default_factory=dict)


@dataclass(frozen=True)
class Order:
    """What is collected: the command, its working directory, the slow-downs (0.05 is 5 %), how many rounds."""

    command: tuple[str, ...]
    workdir: Path
    slow_downs: tuple[float, ...]
    rounds: int
    least_rounds: int
    budget_s: float | None
    seed: int | None  # None: a new one, or that of the folder

    @property
    def conditions(self) -> dict[str, float | None]:
        """Name of each repetition of a round -> its slow-down; the command as it is comes twice."""
        return dict.fromkeys(SAME) | {f"slow-{share:g}": share for share in self.slow_downs}


@dataclass
class Pool:
    """Whole rounds: condition -> metric -> value. `seconds` of every repetition, discarded and partial ones too."""

    rounds: list[dict[str, Values]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    discarded: int = 0
    notes: list[Note] = field(default_factory=list)

    def metrics(self, wanted: Sequence[str]) -> list[str]:
        """Of the wanted metrics, those that every repetition has."""
        return [name for name in wanted if all(name in values for one in self.rounds for values in one.values())]

    def spread(self, metric: str) -> float:
        """Standard deviation of the logarithm between repetitions of the command as it is (0.02 is about 2 %)."""
        values = [math.log(one[name][metric]) for one in self.rounds for name in SAME if one[name][metric] > 0]
        return stdev(values) if len(values) > 1 else 0.0

    @property
    def pace(self) -> float:
        """Usual seconds of a repetition."""
        return median(self.seconds)

    def effect(self, condition: str) -> tuple[float, float, float]:
        """Measured change of the step time by a slow-down: (change, low, high), with its 95 % interval."""
        logs = [
            math.log(one[condition][STEP]) - mean(math.log(one[name][STEP]) for name in SAME) for one in self.rounds
        ]
        middle, variance = moments(logs)  # type: ignore[arg-type]
        change = Change(middle, (variance / len(logs)) ** 0.5, middle * 0 + len(logs) - 1)
        low, high = change.interval()
        return math.expm1(float(middle)), math.expm1(float(low)), math.expm1(float(high))


def new_state(order: Order) -> PoolState:
    """Nothing is measured yet. `code`: folder, revision and content of its repository, the version of pipeprof."""
    here = Workspace.here()
    head = git_or_none(here.root, "rev-parse", "HEAD") if here.root else None
    tree = tree_state(here.root)[1] if here.root and head else None
    return PoolState(
        command=printable_all(without_secrets(order.command)), slow_downs=list(order.slow_downs),
        seed=secrets.randbits(32) if order.seed is None else order.seed,
        code=[printable(str(here.cwd)), head, tree, __version__],
    )  # fmt: skip


def open_state(order: Order, folder: Path) -> PoolState:
    """The state in `folder`, with the seed that it began with, or a new one; the folder is made.

    Raises UsageError for a folder that holds something else or another order, RunError for a damaged file, MeasureError
    for one of another machine or job.
    """
    fresh = new_state(order)
    refuse_links(folder)
    hint = "start over in another folder with -o"
    earlier = saved(folder, PoolState, SCHEMA_VERSION, "qualification", hint)
    if earlier is None:
        make_folder(folder)
        fresh.begin(folder)
        return fresh
    if (earlier.command, earlier.slow_downs) != (fresh.command, fresh.slow_downs):
        raise UsageError(f"`{folder}` holds the runs of another order", "give another folder with -o")
    if order.seed not in (None, earlier.seed):
        wrong = f"`{folder}` was begun with --seed {earlier.seed}, not {order.seed}"
        raise UsageError(wrong, "leave --seed out, or -o")
    differing = differences(earlier.fingerprint, fingerprint.machine())
    if earlier.job != fingerprint.job() or any(one["hard"] for one in differing):
        raise MeasureError(
            f"the runs in `{folder}` were made on another machine, in another job, or before its last start",
            "such times cannot be put together: start over in another folder with -o",
        )
    if earlier.code not in (None, fresh.code):
        raise MeasureError(f"the runs in `{folder}` are of other code, another folder or another pipeprof", hint)
    return earlier


def collect_pool(
    order: Order, folder: Path, bench: Bench, say: Callable[[str], None], state: PoolState | None = None
) -> Pool:
    """Run the rounds, each in the reverse order of the one before, until there are enough or the budget is used.

    Repetitions that `state` has are not run again; every start begins with one that is discarded. Raises WorkloadError
    when the command fails, MeasureError when the budget ends too early.
    """
    state = state or new_state(order)
    pool = Pool(seconds=[one.seconds for name, one in state.repetitions.items() if name.startswith(WARM_UP)])
    pool.discarded = len(pool.seconds)
    names = list(order.conditions)
    random.Random(state.seed).shuffle(names)  # noqa: S311 - no secret
    done = len(state.repetitions)
    if done:
        say(f"{done} runs are there already and are not made again")
    cold = True
    for number in range(order.rounds):
        missing = sum(f"{name}-{number:03d}" not in state.repetitions for name in names)
        if missing and cold and _fits(order, pool, 1 + missing):
            cold = False
            warm = WARM_UP + (f"-{pool.discarded}" if pool.discarded else "")
            _repeat(order, pool, folder / warm, None, bench, state)
            pool.discarded += 1
            say(f"{warm}: {pool.seconds[-1]:.1f} s, discarded")
        if missing and (cold or not _fits(order, pool, missing)):
            pool.notes.append(note("pool_budget", rounds=number, planned=order.rounds, budget_s=order.budget_s))
            break
        began = sum(pool.seconds)
        round_values = {
            name: _repeat(order, pool, folder / f"{name}-{number:03d}", order.conditions[name], bench, state)
            for name in names
        }
        pool.rounds.append(round_values)
        names.reverse()
        end = bench.clock((order.rounds - number - 1) * len(names) * pool.pace)
        say(f"round {number + 1} of {order.rounds}: {sum(pool.seconds) - began:.1f} s; the last one ends about {end}")
    if len(pool.rounds) < order.least_rounds:
        raise MeasureError(
            f"only {format_count(len(pool.rounds), 'round')} fitted into the time limit, at least {order.least_rounds} "
            "are needed",
            f"a round takes about {len(names) * pool.pace:.0f} s: go on with a longer --budget and -o {folder}",
        )
    return pool


def _fits(order: Order, pool: Pool, runs: int) -> bool:
    """Whether so many more runs fit into the budget; the first one always does."""
    return order.budget_s is None or not pool.seconds or sum(pool.seconds) + runs * pool.pace <= order.budget_s


def _repeat(
    order: Order, pool: Pool, path: Path, slow_down: float | None, bench: Bench, state: PoolState
) -> Values:  # fmt: skip
    """The values of one repetition, which is run unless the state has it."""
    earlier = state.repetitions.get(path.name)
    if earlier is not None:
        pool.seconds.append(earlier.seconds)
        return earlier.values
    if path.exists():  # a kill left it
        refuse_orphans(path.parent, [path.name], bench.still_running)
        remove(path)
        remove(path.with_name(f"{path.name}.log"))
    began = bench.now()
    try:
        bench.run(order.command, {"PYTHONHASHSEED": "0"}, order.workdir, path, slow_down)
    except WorkloadError as error:
        raise WorkloadError(f"the command failed in `{path.name}` with {error.message}", error.hint) from error
    pool.seconds.append(bench.now() - began)
    measured = bench.measure(path).values
    values = {name: next(iter(by_rep.values())) for name, by_rep in measured.items() if by_rep}
    state.repetitions[path.name] = Measured(seconds=pool.seconds[-1], values=values)
    state.save(path.parent)
    return values
