"""A whole import: the files of all ranks, one after the other, into a run.

Which files belong to which rank, by their names, neighbours and folders; and the zero of a rank's clocks.

The zero is the first time that is in any of its files, so that rows can be written at once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.ascend import rank as one_rank
from pipeprof.read.ascend.communication import read_cluster, stated_rank
from pipeprof.read.ascend.graph_ops import aicpu_records
from pipeprof.read.ascend.identify import ABOUT_ALL, MANY, NUMBERED, OUTPUT, SourceFile, folder_rank, identify, root_of
from pipeprof.read.ascend.msprof import clock_in, first_times_in, read_clock
from pipeprof.read.ascend.out import ticks
from pipeprof.read.ascend.raw_trace import forward_times
from pipeprof.read.ascend.step_trace import clock_of
from pipeprof.read.source.content import BROKEN, one_line
from pipeprof.read.source.numbers import integer, ns
from pipeprof.read.source.sheet import Sheet
from pipeprof.read.tables.ranks import read_shares
from pipeprof.read.tables.share import Damage, Outcome, Share, decide, take_in
from pipeprof.record.plain_file import open_file
from pipeprof.record.run import Manifest, Rank, Rep, Run
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    Files = dict[str, list[Path]]

_CYCLE = re.compile(r"(?P<process>.+_[0-9]+)_(?P<time>[0-9]{14,20})_ascend_(?:pt|ms)")


def by_rank(recognised: Sequence[SourceFile], manifest: Manifest) -> dict[int, list[Files]]:
    """Files of every rank by kind, in order of rank. Kinds in `MANY` may have several.

    A rank has one capture, or those of one process in order of time: the cycles of a profiler's schedule. What lies
    beside them goes with the first. Raises SourceError when two captures of a rank are of two processes: an import is
    one training.
    """
    ranks: dict[int, list[SourceFile]] = defaultdict(list)
    mine = [item for item in recognised if item.kind not in ABOUT_ALL]
    roots = _ranks_of_roots(mine, manifest)
    for item in mine:
        stated = roots[item.root]  # where it is, device numbers in names do not count
        own = item.kind in NUMBERED or stated is None or item.rank == stated
        rank = item.rank if item.rank is not None and own else stated
        if rank is None:
            manifest.warn("left_out", f"`{item.path}` was left out: its folder has several ranks")
        else:
            ranks[rank].append(item)
    return {rank: _captures(rank, ranks[rank], manifest) for rank in sorted(ranks)}


def _captures(rank: int, recognised: Sequence[SourceFile], manifest: Manifest) -> list[Files]:
    """The rank's files, capture by capture."""
    cycles = _cycles({item.root for item in recognised})
    files: list[Files] = [{} for _ in cycles or (None,)]
    for item in recognised:
        _assign(files[cycles.index(item.root) if item.root in cycles else 0], rank, item, manifest)
    if len(cycles) > 1:
        manifest.warn("cycles", f"{len(cycles)} captures of one process were put one after the other", rank=rank)
    return files


def _cycles(roots: Iterable[Path]) -> list[Path]:
    """The folders that a profiler wrote for one process, `HOST_PID_TIME_ascend_pt` or `_ms`, by time; none: no such."""
    named = {root: match for root in roots if (match := _CYCLE.fullmatch(root.name))}
    if len({(root.parent, match["process"]) for root, match in named.items()}) != 1:
        return []
    return sorted(named, key=lambda root: (named[root]["time"].ljust(20, "0"), root.name))


def _assign(mine: Files, rank: int, item: SourceFile, manifest: Manifest) -> None:
    others = mine.setdefault(item.kind, [])
    if not others or item.kind in MANY:
        others.append(item.path)
        if item.kind in ("kernel_details", "memory_record"):  # of CANN's own files, the output is made of
            output = [path for path in others if OUTPUT in path.parts or path.name.startswith("kernel_details")]
            mine[item.kind] = output or others
        return
    if root_of(others[0]) == item.root:
        chosen, other = sorted((others[0], item.path), key=_preference)
        others[0] = chosen
        manifest.warn("left_out", f"`{other}` was left out: `{chosen}` of the same capture is of the same kind")
        return
    raise SourceError(
        f"two files of the same kind for rank {rank}: `{others[0]}` and `{item.path}`, expected those of one training",
        "import one of their folders",
    )


def _preference(path: Path) -> tuple[bool, int, str]:
    """Order of files of one kind in one capture: the output for people, then what that was made of."""
    return OUTPUT not in path.parts, len(path.parts), path.as_posix()


def _ranks_of_roots(recognised: Sequence[SourceFile], manifest: Manifest) -> dict[Path, int | None]:
    """Rank of every capture's folder; None for one that has files of several ranks."""
    roots: dict[Path, list[SourceFile]] = defaultdict(list)
    for item in recognised:
        roots[item.root].append(item)
    rank_of: dict[Path, int | None] = {}
    for root, items in roots.items():
        rank_of[root] = _stated(items, manifest)
    used = {rank for rank in rank_of.values() if rank is not None}
    unknown = []
    for root, items in roots.items():
        if rank_of[root] is not None:
            continue
        numbers = {item.rank for item in items if item.rank is not None}
        named = any(item.kind in NUMBERED for item in items if item.rank is not None)
        of_folder = None if named or len(numbers) > 1 else folder_rank(root)  # more than the number of a device
        rank = next(iter(numbers)) if len(numbers) == 1 and of_folder is None else of_folder
        if rank is None and not numbers:
            unknown.append(root)
        rank_of[root] = rank
        used |= numbers if rank is None else {rank}
    free = (number for number in count() if number not in used)
    of_process: dict[tuple[Path, str], int] = {}
    for root in sorted(unknown):
        match = _CYCLE.fullmatch(root.name)
        process = (root.parent, match["process"] if match else root.name)
        rank = of_process[process] if process in of_process else next(free)
        rank_of[root] = of_process[process] = rank
        used.add(rank)
        if len(roots) > 1:
            manifest.warn("rank", f"the files in `{root}` do not say their rank: taken for rank {rank}")
    return rank_of


def _stated(items: Sequence[SourceFile], manifest: Manifest) -> int | None:
    """Rank that a profiler_info file states, inside or in its name."""
    for item in items:
        if item.kind == "profiler_info":
            try:
                inside = stated_rank(item.path)
            except SourceError as error:
                manifest.warn("damaged_file", f"left out: {error.message}")
                inside = None
            if inside is not None and inside >= 0:
                return inside
            if item.rank is not None:
                return item.rank
    return None


_HEAD_BYTES = 1 << 16
_ROWS = 50
_CPU_TIME = re.compile(rb"[; ]([0-9]{16,19}),")
_COLUMNS = {
    "timeline": ("counter", "start_time(ms)"), "aicpu": ("counter", "run_start"),
    "kernel_details": ("epoch", "Start Time(us)"), "memory_record": ("epoch", "Timestamp(us)"),
    "operator_memory": ("epoch", "Allocation Time(us)"), "cpu_memory": ("epoch", "Timestamp(ns)"),
}  # fmt: skip
_EVENTS = ("step_events", "hccl_events", "task_events", "merged_events")


def first_times(captures: Sequence[Files]) -> dict[str, int]:
    """First time (ns) by clock in one rank's captures. What cannot be read is passed over: reading it will say so."""
    by_clock: dict[str, list[int]] = {"counter": [], "epoch": [], "raw": []}
    every = [(files, kind, path) for files in captures for kind, paths in files.items() for path in paths]
    for files, kind, path in every:
        with suppress(SourceError, *BROKEN):
            _look(kind, path, files, by_clock)
    return {clock: min(times) for clock, times in by_clock.items() if times}


def _look(kind: str, path: Path, files: dict[str, list[Path]], by_clock: dict[str, list[int]]) -> None:
    if kind in ("step_trace", "gpu_steps"):
        for time in _gpu_times(path) if kind == "gpu_steps" else _column(path, "start_point"):
            by_clock[clock_of(time)].append(time)
    elif kind in _COLUMNS:
        clock_name, column = _COLUMNS[kind]
        by_clock[clock_name] += _column(path, column)
    elif kind in ("training_trace", "ts_track"):
        by_clock["counter"] += forward_times(path, kind)
    elif kind == "aicpu_log":
        by_clock["counter"] += [start for _, start, *_ in aicpu_records(path) if start]
    elif kind == "trace_view":
        by_clock["epoch"] += first_times_in(path)
    elif kind in ("cpu_exec", "gpu_exec"):
        by_clock["epoch"] += first_times_in(path, _CPU_TIME, "ns")
    elif kind in _EVENTS:
        clock = clock_in(path, read_clock(next(iter(files.get("start_info", [])), None)))
        by_clock[clock.name] += [time + clock.offset_ns for time in first_times_in(path)]


def _column(path: Path, name: str) -> list[int]:
    sheet = Sheet(path)
    index = sheet.index(name, f"Task {name}")
    values = []
    if index is not None:
        unit = "ms" if "(ms)" in name else "ns" if "(ns)" in name else "us"
        for number, (_, row) in enumerate(sheet.rows()):
            if number >= _ROWS:
                break
            if name == "start_point" and not integer(row[sheet.need("step_num")]):  # the average row
                continue
            value = ticks(row[index]) if name == "start_point" else ns(row[index], unit)
            value = None if "e" in row[index].lower() else value  # rounded, by hours
            if value is not None and value > 0:
                values.append(value)
    sheet.close()
    return values


def _gpu_times(path: Path) -> list[int]:
    with open_file(path) as file:
        first = file.read(_HEAD_BYTES).partition(b"\n")[0].decode("utf-8", "replace").split()
    if first and "," in first[0]:
        return [time for item in first[:4] if (time := integer(item.rpartition(",")[2]))]
    return [time for item in first[1:2] if (time := ticks(item.partition(",")[0]))]


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
    of_all, unread = read_cluster(recognised, _owners(ranks), manifest)
    firsts = {rank: first_times(captures) for rank, captures in ranks.items()}
    common = {
        clock: min((first[clock] for first in firsts.values() if clock in first), default=0)
        for clock in ("epoch", "raw")
    }
    shares = []
    for rank in sorted(ranks.keys() | of_all.keys()):
        captures = [
            {kind: [str(path.resolve()) for path in paths] for kind, paths in files.items()}
            for files in ranks.get(rank, ())
        ]
        zeros = {"counter": firsts.get(rank, {}).get("counter", 0), **common}
        shares.append(Share(one_rank.__name__, rank, captures, zeros, of_all.get(rank, {})))
    outcomes = read_shares(shares, run, progress)
    nothing = Damage(
        f"nothing to import in `{paths[0]}`: {format_count(len(paths), 'file')} without a row that can be used",
        "import the whole folder that the profiler wrote",
    )
    known = [Damage(one_line(error.message), error.hint) for error in unread]
    damage = take_in(manifest, outcomes, nothing, damage=known, measured=MEASURED)
    _fill_in(manifest, outcomes, common["epoch"])
    decide(manifest, damage, _MISSING, "what comes before the damage is used: ")


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
    for outcome in outcomes:
        if any(outcome.counts.get(table) for table in MEASURED):
            zero = epoch if "epoch" in outcome.first else 0
            evidence = _EVIDENCE.get(outcome.steps or "")
            rep.ranks.append(
                Rank(
                    rank=outcome.rank, pid=0, host="", zero_realtime_ns=zero, zero_monotonic_ns=0,
                    step_evidence=evidence,
                )
            )  # fmt: skip
            ends += list(outcome.last.values())
        _say(manifest, outcome)
    rep.dur_ns = max((*ends, 0))
    manifest.reps = [rep]


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
