"""A whole import: the files of all ranks, one after the other, into a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.ascend.captures import CLUSTER, by_rank
from pipeprof.read.ascend.first import first_times
from pipeprof.read.ascend.identify import identify
from pipeprof.read.ascend.out import Out
from pipeprof.read.ascend.rank import RankFiles
from pipeprof.read.ascend.statistics import read_cluster_split
from pipeprof.record.run import NotMeasured, Rank, Rep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.read.ascend.identify import Found
    from pipeprof.record.run import Manifest, Run

    Splits = dict[int, list[dict[str, Any]]]

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


def recognise(path: Path) -> bool:
    """Whether a file is one of these, by its content. Raises SourceError when it cannot be read."""
    return identify(path) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """Read the files into repetition 0 of a run and fill in its manifest, which is not saved.

    Raises SourceError when two captures are of one rank, or when nothing usable is in any file.
    """
    manifest = run.manifest
    found = [item for path in paths if (item := identify(path)) is not None]
    ranks = by_rank(found, manifest)
    damage: list[tuple[int | None, SourceError]] = []
    splits = _cluster(found, damage)
    firsts = {rank: first_times(files) for rank, files in ranks.items()}
    common = {
        clock: min((first[clock] for first in firsts.values() if clock in first), default=0)
        for clock in ("epoch", "raw")
    }
    rep = Rep(rep=0, zero_realtime_ns=common["epoch"], zero_monotonic_ns=0)
    ends = []
    for rank in sorted(ranks.keys() | splits.keys()):
        zeros = {"counter": firsts.get(rank, {}).get("counter", 0), **common}
        out = Out(run, rank, zeros, progress)
        read = _read_rank(out, ranks.get(rank, {}), splits.get(rank, []))
        damage += [(rank, error) for error in read.damage]
        for table, count in out.counts.items():
            manifest.tables[table] = manifest.tables.get(table, 0) + count
        if any(out.counts.get(table) for table in MEASURED):
            rep.ranks.append(_entry(rank, out, common["epoch"]))
            ends += list(out.last.values())
        _say(manifest, rank, read)
    if not any(manifest.tables.get(table) for table in MEASURED):
        raise (
            damage[0][1]
            if damage
            else SourceError(
                f"nothing to import in `{paths[0]}`: {len(paths)} file(s) without a row of use",
                "import the whole folder that the profiler wrote",
            )
        )
    rep.dur_ns = max((*ends, 0))
    manifest.reps = [rep]
    _decide(manifest, damage)


def _cluster(found: Sequence[Found], damage: list[tuple[int | None, SourceError]]) -> Splits:
    """Rows of the first cluster file by rank; what others there are is a copy for comparison."""
    for item in found:
        if item.kind == CLUSTER:
            try:
                return read_cluster_split(item.path)
            except SourceError as error:
                damage.append((None, error))
    return {}


def _read_rank(out: Out, files: dict[str, list[Path]], splits: list[dict[str, Any]]) -> RankFiles:
    read = RankFiles(files, out)
    try:
        read.read()
        own = out.has("step_split")
        for row in splits:
            if not own or "stage_index" in row:
                out.add("step_split", step=out.steps.position(row["source_step"]), **row)
        out.close()
    except BaseException:
        out.abort()
        raise
    return read


def _entry(rank: int, out: Out, epoch: int) -> Rank:
    timed = "epoch" in out.first
    return Rank(
        rank=rank, pid=0, host="", zero_realtime_ns=epoch if timed else 0, zero_monotonic_ns=0,
        step_evidence=_EVIDENCE.get(out.steps.source or ""),
    )  # fmt: skip


def _say(manifest: Manifest, rank: int, read: RankFiles) -> None:
    """What was odd, and what the profiler said of itself."""
    for code, message in read.out.notes.all():
        manifest.warn(code, message, rep=0, rank=rank)
    clocks = sorted(read.out.first)
    if len(clocks) > 1:
        names = {"counter": "the device's counter", "epoch": "the wall clock", "raw": "the machine's raw clock"}
        shown = ", ".join(names[clock] for clock in clocks)
        manifest.warn("clocks", f"times are on {shown}; each begins at 0, nothing relates them", rep=0, rank=rank)
    if read.points is not None:
        manifest.options.setdefault("points", {})[f"rank {rank}"] = _points(read.points)
    if read.config:
        manifest.options.setdefault("profiler", {})[str(rank)] = read.config


def _decide(manifest: Manifest, damage: Sequence[tuple[int | None, SourceError]]) -> None:
    for rank, error in damage:
        manifest.warn("damaged_file", f"what was in front of the damage is used: {error.message}", rep=0, rank=rank)
    manifest.state, manifest.reason = "complete", None
    if damage:
        more = f" (and {len(damage) - 1} more)" if len(damage) > 1 else ""
        manifest.state, manifest.reason = "partial", f"a file could not be read: {damage[0][1].message}{more}"
    why = {
        "step": "no file says where steps begin and end",
        "op": "no file with executions of operators",
        "collective": "no file with communication events",
        "queue": "no queue samples",
        "fetch": "no file with batches",
        "memory": "no file with memory",
        "cpu": "no CPU samples",
    }
    manifest.not_measured = [
        NotMeasured(what=table, why=text) for table, text in why.items() if not manifest.tables.get(table)
    ]


def _points(found: Mapping[str, str | None]) -> dict[str, str | None]:
    """The forward start and backward end that the profiler used, in the manifest's form."""
    how = "of the profiler"
    return {"fp": found.get("fp_start"), "fp_choice": how, "bp": found.get("bp_end"), "bp_choice": how}
