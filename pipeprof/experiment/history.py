"""`pipeprof history`: how each metric of a workload moved over its measurements, since when, and because of what."""

from __future__ import annotations

import math
import os
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from pipeprof.errors import PipeprofError, RunError
from pipeprof.experiment.compare import compare_sides
from pipeprof.experiment.stored_history import Line, stored_entries, told
from pipeprof.query.measure import measure
from pipeprof.read.spool.finish import open_run
from pipeprof.record import baseline, checksums
from pipeprof.record.baseline_summary import unit_of
from pipeprof.record.cache import cached
from pipeprof.record.git import Repository, git_or_none
from pipeprof.record.history import Entry, entry_of, metrics, series
from pipeprof.record.listing import runs_in
from pipeprof.record.machine import machine_class
from pipeprof.record.measures import Measures, Repetition
from pipeprof.record.objects import without_secrets
from pipeprof.record.run import MANIFEST
from pipeprof.report.words.comparison import because, position
from pipeprof.verdict.gate.causes import stated_cause
from pipeprof.verdict.gate.changes import LEAST_SIDE, Point, change_points
from pipeprof.verdict.gate.policy import differences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeprof.record.listing import Listed
    from pipeprof.record.run import Run
    from pipeprof.verdict.gate.changes import Change

SCHEMA_VERSION = 1
LEAST_POINTS = 2 * LEAST_SIDE
MOST_COMPARED = 20  # measurements on each side of a change that its cause is sought in
MOST_COMMITS = 50
_NOT_WHOLE = "it is still being recorded, or its recording was cut off and is not recovered yet"
_TOGETHER = "history"  # stands for the job of all measurements: they are one side of a comparison each


def history_of(
    source: str, root: str, say: Callable[[str], None], *, recover: bool = True, chosen: bool = False
) -> dict[str, Any]:
    """The content of `pipeprof history --format json`: a series per workload, metric and conditions.

    `source` is the name of a workload with baselines below `root` (all its machines), the folder or URL of a baseline,
    the folder of a workload's baselines, or a folder or URL of runs. A name wins over a folder that is called the same;
    `left_out` says so where the folder holds something, and `./NAME` is the folder. A `chosen` root was named by the
    user: a name that it does not know is refused. Without a `root` there are no names. `say` is told what takes long.
    Commits are looked up in the repository of the working directory. Without `recover`, runs whose recording was cut
    off are left out.

    Raises RunError when nothing was measured there or a history is damaged, UsageError when ruptures is not installed.
    """
    entries, left_out = _entries(source, root, say, recover=recover, chosen=chosen)
    shown = without_secrets(source) if "://" in source else source
    if not entries:
        why = f": {left_out[0]['problem']}" if left_out else ""
        raise RunError(
            f"nothing was measured in `{shown}`{why}",
            "give a workload (pipeprof baseline list), or a folder of runs (pipeprof runs FOLDER)",
        )
    all_series = []
    for name in sorted({entry.workload for entry in entries}):
        mine = [entry for entry in entries if entry.workload == name]
        for metric in sorted(metrics(mine), key=position):
            all_series += _all_series(name, metric, mine)
    return {
        "schema_version": SCHEMA_VERSION, "source": shown, "measurements": len(entries), "series": all_series,
        "conditions": _conditions(entries), "left_out": left_out,
    }  # fmt: skip


def _entries(
    source: str, root: str, say: Callable[[str], None], *, recover: bool, chosen: bool
) -> tuple[list[Entry], list[dict[str, str]]]:
    """The measurements, oldest first, and what could not be read."""
    folder = Path(source)
    if "://" in source:
        below = stored_entries(source, say)
        if below is not None:
            return below
        return _of_baselines([baseline.parts_of(one) for one in _baselines_at(source)]), []
    named = [(root, workload, machine) for workload, machine in _names(root, source)]
    if named:
        return _of_baselines(named), _beside(folder, root)
    if chosen and _is_name(source):
        raise RunError(
            f"no baseline of a workload `{source}` below `{without_secrets(root) if '://' in root else root}`",
            f"`pipeprof baseline list --root ROOT` names them; give ./{source} for a folder of runs",
        )
    if _holds_baselines(folder):
        return _of_baselines([baseline.parts_of(one) for one in _baselines_at(source)]), []
    return _of_runs(folder, say, recover=recover) if folder.is_dir() else ([], [])


def _is_name(source: str) -> bool:
    """Whether it may be the name of a workload; a path is none."""
    return "/" not in source and source not in (".", "..")


def _names(root: str, source: str) -> Sequence[tuple[str, str]]:
    """(workload, machine) of each baseline of the workload `source` below `root`."""
    return baseline.names(root, source) if root and _is_name(source) else ()


def _of_baselines(parts: Sequence[tuple[str, str, str]]) -> list[Entry]:
    entries = [entry for one in parts for entry in baseline.read_history(*one)]
    return sorted(entries, key=lambda entry: entry.created_at or "")


def _beside(folder: Path, root: str) -> list[dict[str, str]]:
    """The folder that is called as the workload is and was not read; nothing where it holds no runs or baselines."""
    read = "://" not in root and Path(root, folder).resolve() == folder.resolve()
    if read or not (_holds_runs(folder) or _holds_baselines(folder)):
        return []
    return [{"path": str(folder), "problem": f"the workload of this name was read; ./{folder} is the folder"}]


def _holds_baselines(folder: Path) -> bool:
    return baseline.is_baseline(folder) or any(folder.glob(f"*/{baseline.MANIFEST}"))


def _holds_runs(folder: Path) -> bool:
    return folder.joinpath(MANIFEST).is_file() or any(folder.glob(f"*/{MANIFEST}"))


def _baselines_at(source: str) -> list[str]:
    if "://" in source:
        return [source] if urlsplit(source).path.rstrip("/").count("/") > 1 else []
    if baseline.is_baseline(Path(source)):
        return [source]
    return [str(path.parent) for path in sorted(Path(source).glob(f"*/{baseline.MANIFEST}"))]


def _of_runs(folder: Path, say: Callable[[str], None], *, recover: bool) -> tuple[list[Entry], list[dict[str, str]]]:
    """Every run of a folder as a line of a history. One that cannot be read, or a copy, is told, not passed over."""
    lines = []
    listed = sorted(runs_in(folder, linked=recover), key=lambda one: one.began)
    for number, one in enumerate(listed, 1):
        say(f"{number} of {len(listed)}")
        lines.append((str(one.path), _line(one, recover=recover)))
    return told(lines)


def _line(one: Listed, *, recover: bool) -> Line:
    if one.run is None:
        return Line(problem=one.problem)
    if not recover and not one.run.is_settled():
        return Line(problem=_NOT_WHOLE)
    try:
        return Line(_measured(one.run), run_id=one.run.manifest.run_id)
    except PipeprofError as error:
        return Line(problem=error.message)


def _measured(run: Run) -> Entry:
    """What a run measured; of one whose files lie as they did, what is remembered of it."""

    def asked() -> Entry:
        measures = measure(open_run(run.path))
        return entry_of(measures, machine_class(measures.fingerprint), None, None)

    if not run.is_settled():
        return asked()
    return cached("measured", b"\n".join([os.fsencode(run.name), checksums.as_it_lies(run)]), Entry, asked)


def _conditions(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Where machine or versions changed: the first measurement of a workload under conditions that it never had.

    It is told from the one before it on the same machine; the first one there, from the one before it on any.
    """
    changes = []
    last: dict[tuple[str, str | None], Entry] = {}  # of a workload on a machine, and on any
    seen: set[tuple[str, str]] = set()
    for new in entries:
        old = last.get((new.workload, new.machine)) or last.get((new.workload, None))
        if old is not None and (new.workload, new.fingerprint_hash) not in seen:
            differing = differences(old.conditions, new.conditions) if old.conditions and new.conditions else []
            changes.append({
                "workload": new.workload, "at": new.created_at, "revision": new.revision, "machine": new.machine,
                "before": old.fingerprint_hash, "after": new.fingerprint_hash,
                "differences": [{name: one[name] for name in ("name", "base", "new")} for one in differing],
            })  # fmt: skip
        last[new.workload, new.machine] = last[new.workload, None] = new
        seen.add((new.workload, new.fingerprint_hash))
    return changes


def _all_series(workload: str, metric: str, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The series of a metric, one for each set of conditions, in the order of their first measurements."""
    marks = series(entries, metric)
    points = [Point(mark.value, mark.group, mark.created_at, mark.revision, mark.tag) for mark in marks]
    measured = [entry for entry in entries if _has(entry, metric)]
    changes = change_points(points)
    all_series = []
    for group in dict.fromkeys(point.group for point in points):
        here = [at for at, point in enumerate(points) if point.group == group]
        mine = [(change, [at for at in here if at < change.index]) for change in changes if change.group == group]
        first = measured[here[0]]
        anchor = first.anchor if metric in first.ratios else None  # as `series` decides it
        all_series.append({
            "workload": workload, "metric": metric, "unit": unit_of(metric) if anchor is None else "",
            "machine": first.machine, "conditions": first.fingerprint_hash, "anchor": anchor,
            "enough": len(here) >= LEAST_POINTS, "median": median(points[at].value for at in here),
            "points": [
                {
                    "value": points[at].value, "at": points[at].at, "revision": points[at].revision,
                    "tag": points[at].tag, "reps": measured[at].reps, "label": measured[at].label,
                }
                for at in here
            ],
            "changes": [_change(change, before, here, measured, metric) for change, before in mine],
        })  # fmt: skip
    return all_series


def _has(entry: Entry, metric: str) -> bool:
    """Whether `series` would use the value of this metric."""
    value = entry.ratios.get(metric, entry.medians.get(metric)) if entry.anchor else entry.medians.get(metric)
    return value is not None and value > 0


def _change(
    change: Change, before: Sequence[int], here: Sequence[int], measured: Sequence[Entry], metric: str
) -> dict[str, Any]:
    """A change with the commits that it lies among, and its cause as `pipeprof compare` finds it."""
    old = list(before)[-change.points_before :]
    new = [at for at in here if at >= change.index][: change.points_after]
    good = [at for at in here if at < change.earliest][-1:]
    entry = _cause([measured[at] for at in old], [measured[at] for at in new], metric, change.ratio)
    return {
        "position": here.index(change.index), "earliest": here.index(change.earliest),
        "latest": here.index(change.latest), "at": change.at, "revision": change.revision, "ratio": change.ratio,
        "before": change.before, "after": change.after, "points_before": change.points_before,
        "points_after": change.points_after, "p_value": change.p_value,
        "range": _commits(measured[good[0]] if good else None, measured[change.latest]),
        "cause": entry, "because": because(entry).removeprefix(", "),
    }  # fmt: skip


def _commits(good: Entry | None, bad: Entry) -> dict[str, Any]:
    """The commits after the last measurement before a change, up to the first one that is surely after it.

    `commits` is None where git does not know them; `count` may be more than the `MOST_COMMITS` that are listed.
    `uncommitted`: one of the two was measured with changes that no commit holds.
    """
    one, other = (good.revision if good else None), bad.revision
    between: dict[str, Any] = {
        "good": one, "good_at": good.created_at if good else None, "bad": other, "bad_at": bad.created_at,
        "same_revision": one is not None and one == other, "count": None, "commits": None,
        "uncommitted": bool((good and good.dirty) or bad.dirty),
    }  # fmt: skip
    around = Repository.around(Path.cwd())
    if around is None or not one or not other or one == other or one.startswith("-") or other.startswith("-"):
        return between
    text = git_or_none(around.root, "log", "--format=%H%x09%s", "--end-of-options", f"{one}..{other}")
    if text is None:
        return between
    lines = [line.partition("\t") for line in text.split("\n") if line]  # the tab of an empty last subject is gone
    commits = [{"revision": revision, "subject": subject} for revision, _, subject in lines]
    return between | {"count": len(commits), "commits": commits[:MOST_COMMITS]}


def _cause(old: Sequence[Entry], new: Sequence[Entry], metric: str, ratio: float) -> dict[str, Any] | None:
    """The line of `compare`'s explanation that says why; None for a metric that no part of a step explains."""
    before, after = _side(old[-MOST_COMPARED:], "before"), _side(new[:MOST_COMPARED], "after")
    if not (before.values and after.values):
        return None
    return stated_cause("regressed", metric, ratio, compare_sides(before, after)["explanation"])


def _side(entries: Sequence[Entry], label: str) -> Measures:
    """Measurements as the repetitions of one side; facts of the latest."""
    values: dict[str, dict[int, float]] = {}
    for number, entry in enumerate(entries):
        for name, value in (entry.medians | entry.parts).items():
            if math.isfinite(value):
                values.setdefault(name, {})[number] = value
    latest = entries[-1]
    return Measures(
        label=label, kind="baseline", workload=latest.workload, values=values, facts=latest.facts, places=latest.places,
        reps={number: Repetition(order=number, job=_TOGETHER) for number in range(len(entries))},
        fingerprint=msgspec.to_builtins(latest.conditions),
    )  # fmt: skip
