"""A whole import: the files of all ranks, one after the other, into a run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.ascend import rank as one_rank
from pipeprof.read.ascend.captures import by_rank, first_times
from pipeprof.read.ascend.communication import read_cluster
from pipeprof.read.ascend.identify import identify
from pipeprof.read.source.content import one_line
from pipeprof.read.tables.outcome import Damage, count_ranks, decide, of_ranks
from pipeprof.read.tables.share import Share
from pipeprof.read.tables.workers import read_shares
from pipeprof.record.run import Rank, Rep
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.read.ascend.captures import Files
    from pipeprof.read.tables.share import Outcome
    from pipeprof.record.run import Manifest, Run


KIND = "ascend"
WHAT = (
    "profiles of Ascend jobs or of MindSpore's profiler (step_trace_raw_*, ASCEND_PROFILER_OUTPUT, PROF_*, FRAMEWORK)"
)
MEASURED = ("step", "op", "collective", "step_split", "op_total", "rank_link", "collective_cost", "memory", "span",
            "allocation", "fetch")  # fmt: skip
_EVIDENCE = {
    "step_trace": "step trace of the device", "msprof": "step trace of msprof",
    "trace_view": "ProfilerStep of the profiler", "cpu_exec": "executions of the operators",
}  # fmt: skip

_MISSING = {
    "step": "no file says where steps begin and end",
    "op": "no file with executions of operators",
    "collective": "no file with communication events",
    "queue": "no queue samples",
    "fetch": "no file with batches",
    "memory": "no file with memory",
    "cpu": "no CPU samples",
}


def recognise(path: Path) -> bool:
    """Whether a file is one of these, by its content. Raises SourceError when it cannot be read."""
    return identify(path) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """Read the files into repetition 0 of a run and fill in its manifest, which is not saved.

    Raises SourceError when two captures are of one rank, or when nothing usable is in any file.
    """
    manifest = run.manifest
    recognised = [item for path in paths if (item := identify(path)) is not None]
    ranks = by_rank(recognised, manifest)
    cluster = read_cluster(recognised, _owners(ranks), manifest)
    firsts = {rank: _first_of(captures) for rank, captures in ranks.items()}
    common = {
        clock: min((first[clock] for first in firsts.values() if clock in first), default=0)
        for clock in ("epoch", "raw")
    }
    shares = []
    for rank in sorted(ranks.keys() | cluster.ranks()):
        captures = [
            {kind: [str(path.resolve()) for path in paths] for kind, paths in files.items()}
            for files in ranks.get(rank, ())
        ]
        zeros = {"counter": firsts.get(rank, {}).get("counter", 0), **common}
        shares.append(Share(one_rank.__name__, rank, captures, zeros, cluster.of(rank)))
    outcomes = read_shares(shares, run, progress)
    damage = [Damage(one_line(error.message), error.hint) for error in cluster.damage] + of_ranks(outcomes)
    _fill_in(manifest, outcomes, common["epoch"])
    if not any(manifest.tables.get(table) for table in MEASURED):
        raise _nothing(paths, damage)
    decide(manifest, damage, _MISSING, "what comes before the damage is used: ")


def _first_of(captures: Sequence[Files]) -> dict[str, int]:
    """First time (ns) by clock over a rank's captures."""
    firsts: dict[str, int] = {}
    for files in captures:
        for clock, time in first_times(files).items():
            firsts[clock] = min(firsts.get(clock, time), time)
    return firsts


def _owners(ranks: Mapping[int, Sequence[Files]]) -> dict[str, set[int]]:
    """Kind of file -> the ranks that have one."""
    owners: dict[str, set[int]] = defaultdict(set)
    for rank, captures in ranks.items():
        for kind in (kind for files in captures for kind in files):
            owners[kind].add(rank)
    return owners


def _fill_in(manifest: Manifest, outcomes: Sequence[Outcome], epoch: int) -> None:
    rep = Rep(rep=0, zero_realtime_ns=epoch, zero_monotonic_ns=0)
    ends = []
    count_ranks(manifest, outcomes)
    for outcome in outcomes:
        if any(outcome.counts.get(table) for table in MEASURED):
            rep.ranks.append(_entry(outcome, epoch))
            ends += list(outcome.last.values())
        _say(manifest, outcome)
    rep.dur_ns = max((*ends, 0))
    manifest.reps = [rep]


def _nothing(paths: Sequence[Path], damage: Sequence[Damage]) -> SourceError:
    if damage:
        return damage[0].error()
    return SourceError(
        f"nothing to import in `{paths[0]}`: {format_count(len(paths), 'file')} without a row that can be used",
        "import the whole folder that the profiler wrote",
    )


def _entry(outcome: Outcome, epoch: int) -> Rank:
    return Rank(
        rank=outcome.rank, pid=0, host="", zero_realtime_ns=epoch if "epoch" in outcome.first else 0,
        zero_monotonic_ns=0, step_evidence=_EVIDENCE.get(outcome.steps or ""),
    )  # fmt: skip


def _say(manifest: Manifest, outcome: Outcome) -> None:
    """Clocks that nothing relates, and what the profiler said of itself."""
    rank = outcome.rank
    clocks = sorted(outcome.first)
    if len(clocks) > 1:
        names = {"counter": "the device's counter", "epoch": "the wall clock", "raw": "the machine's raw clock"}
        shown = ", ".join(names[clock] for clock in clocks)
        manifest.warn(
            "clocks", f"times are on {shown}; each begins at 0, how they relate is not known", rep=0, rank=rank
        )
    if points := outcome.facts.get("points"):
        how = "of the profiler"
        manifest.options.setdefault("points", {})[f"rank {rank}"] = {
            "fp": points.get("fp_start"), "fp_choice": how, "bp": points.get("bp_end"), "bp_choice": how
        }  # fmt: skip
    if config := outcome.facts.get("config"):
        manifest.options.setdefault("profiler", {})[str(rank)] = config
