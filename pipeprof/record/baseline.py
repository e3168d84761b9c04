"""Baselines: measures saved per workload and machine class, in a folder or in object storage. See docs/baselines.md."""

from __future__ import annotations

import contextlib
import fnmatch
import os
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

from pipeprof.errors import RunError, UsageError
from pipeprof.record import history
from pipeprof.record.baseline_files import (
    POINTER,
    DamagedBaselineError,
    Document,
    NoBaselineError,
    decode,
    encode,
    read_document,
)
from pipeprof.record.baseline_summary import is_primary
from pipeprof.record.document import checked_name
from pipeprof.record.machine import hard_differences, machine_class
from pipeprof.record.measures import Measures, merged
from pipeprof.record.note import note, unique
from pipeprof.record.objects import without_secrets
from pipeprof.record.place import open_place
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.record.place import Place

MANIFEST = POINTER
_ATTEMPTS = 10


class Saved(msgspec.Struct, kw_only=True):
    """What was written, and where. `notes` are for people.

    `replaced`: a baseline was there before; `appended`: the new one holds its repetitions, too.
    """

    where: str
    document: Document
    bytes: int
    replaced: bool
    appended: bool
    notes: list[str] = []


def save(
    measures: Measures, root: str, workload: str, *, append: bool = False, replace: bool = True,
    drop: Sequence[str] = (), tag: str | None = None, anchor: Measures | None = None, restart: bool = False,
    keep_jobs: int | None = None, keep_days: float | None = None,
) -> Saved:  # fmt: skip
    """Write measures as the baseline of `workload` on their machine class, and a line of its history.

    `append` adds their repetitions to those of the baseline there, which must have no hard difference in its
    fingerprint and the same facts. Without `replace` a baseline that is there is kept, unless it is the same one.
    `drop` holds names or patterns (`op/*`) of metrics and facts that are left out.
    `restart`: where nothing can be appended because the environment or the workload changed, it starts over.
    `keep_jobs`, `keep_days`: repetitions of older jobs are left out.
    `anchor` is the base arm that was measured in turn with them: the history then keeps the ratios to it.

    Raises UsageError for a bad name, a pattern that matches nothing, or a baseline that is not to be replaced, and
    RunError or MeasureError for what cannot be a baseline: a primary metric of the old one is gone and not in `drop`, a
    repetition is there already, or a file is too large. The old baseline stays whole then.
    """
    place = open_place(root)
    checked_name(workload, "workload")
    machine = machine_class(measures.fingerprint)
    fresh = msgspec.structs.replace(measures, workload=workload)
    with place.turn(workload):
        old, notes = _old(place, workload, machine, needed=append)
        _check_patterns(drop, fresh, old)
        _refuse_vanished(fresh, old, drop, f"{workload}/{machine}")
        kept = _without(fresh, drop)  # of both before they are compared: what the baseline lacks is no difference
        joined, restarted = _joined(_without(old, drop) if append and old else None, kept, restart=restart)
        notes += restarted
        joined, expired = without_old(joined, keep_jobs, keep_days)
        notes += [f"left out {format_count(expired, 'older job')}"] if expired else []
        files = encode(joined, sorted(drop))
        document = read_document(files[POINTER], POINTER)
        if not (append or replace):
            _refuse_other(place, workload, machine, document)
        entry = history.entry_of(kept, machine, tag, anchor)
        line = _new_line(place, workload, machine, entry)
        notes += [] if line else ["its history holds this run already: no line was added"]
        place.replace(workload, machine, files, line)
    if old is not None and not append:
        changed = hard_differences(old.fingerprint, measures.fingerprint)
        notes += [f"the old baseline was of another environment: {', '.join(changed)} differ"] if changed else []
    where = f"{place.shown}/{workload}/{machine}"
    size = sum(len(data) for data in files.values())
    added = append and old is not None and not restarted
    return Saved(where=where, document=document, bytes=size, replaced=old is not None, appended=added, notes=notes)


def _joined(old: Measures | None, fresh: Measures, *, restart: bool) -> tuple[Measures, list[str]]:
    """What the baseline will hold, and what to say of it."""
    if old is None:
        return fresh, []
    try:
        return appended(old, fresh), []
    except ChangedError as error:
        if not restart:
            raise
        return fresh, [f"started over: {error.message}"]


def load_named(root: str, workload: str, machine: str) -> Measures:
    """The baseline of a workload on a machine class, as Measures of kind `baseline`. Raises as `load`."""
    return _read(open_place(root), checked_name(workload, "workload"), checked_name(machine, "machine class"))[1]


def load(path: str) -> Measures:
    """The baseline in one folder or under one URL, as Measures. Raises as `load_whole`."""
    return load_whole(path)[1]


def load_whole(path: str) -> tuple[Document, Measures]:
    """The baseline in one folder or under one URL, wherever it was copied to: what it says of itself, and its measures.

    Raises RunError when there is none, DamagedBaselineError or NewerBaselineError (both RunError) that name the file.
    """
    root, workload, machine = parts_of(path)
    return _read(open_place(root), workload, machine, moved=True)


def parts_of(path: str) -> tuple[str, str, str]:
    """Root, workload and machine class of a baseline's folder or URL. Raises UsageError for a shorter path."""
    head, _, query = path.partition("?") if "://" in path else (os.path.realpath(path), "", "")
    parts = head.rstrip("/").rsplit("/", 2)
    if len(parts) < 3 or ("://" in path and "://" not in parts[0]):
        shown = without_secrets(path) if "://" in path else path
        raise UsageError(f"`{shown}` is not a baseline", "name the folder ROOT/WORKLOAD/MACHINE")
    root, workload, machine = parts
    return f"{root}?{query}" if query else root or "/", workload, machine


def is_baseline(path: Path) -> bool:
    """Whether a folder looks like a baseline."""
    return path.joinpath(POINTER).is_file()


def document(root: str, workload: str, machine: str) -> Document:
    """What `baseline.json` says, after all files were checked. Raises as `load`."""
    return _read(open_place(root), checked_name(workload, "workload"), checked_name(machine, "machine class"))[0]


def refuse_missing(root: str) -> None:
    """Raises RunError unless the root is there."""
    place = open_place(root)
    if not place.exists():
        raise RunError(
            f"there is no `{place.shown}`: no baselines are kept there",
            "name another place with --root, or write one with pipeprof baseline write RUN --workload NAME",
        )


def names(root: str, workload: str | None = None) -> list[tuple[str, str]]:
    """(workload, machine) of every baseline under the root, damaged ones too; of one workload if it is given."""
    return [name for name in open_place(root).names() if workload in (None, name[0])]


def of_machine(root: str, workload: str, measures: Measures) -> Measures | None:
    """The baseline for the machine class that the measures come from; None when there is none. Raises as `load`."""
    machine = machine_class(measures.fingerprint)
    return load_named(root, workload, machine) if (workload, machine) in names(root, workload) else None


def read_history(root: str, workload: str, machine: str) -> list[history.Entry]:
    """The history of a baseline, oldest first. Raises RunError that names a line that cannot be read."""
    place = open_place(root)
    lines = place.history(checked_name(workload, "workload"), checked_name(machine, "machine class"))
    return history.entries(lines)


def remove(root: str, workload: str, machine: str | None = None) -> list[tuple[str, str]]:
    """Remove the baselines of a workload with their history, of one machine class or of all; what was removed.

    Raises RunError when there is none.
    """
    place = open_place(root)
    checked_name(workload, "workload")
    if not _of_workload(place, workload, machine):
        raise NoBaselineError(f"no baseline of `{workload}` in `{place.shown}`", "pipeprof baseline list")
    with place.turn(workload):  # not while another process writes one of them
        removed = _of_workload(place, workload, machine)
        for _, inner in removed:
            place.remove(workload, inner)
    return removed


def _of_workload(place: Place, workload: str, machine: str | None) -> list[tuple[str, str]]:
    return [name for name in place.names() if name[0] == workload and machine in (None, name[1])]


def _read(place: Place, workload: str, machine: str, *, moved: bool = False) -> tuple[Document, Measures]:
    """Read again when a writer came between; `moved`: it may lie under another name than its own."""
    where = f"{place.shown}/{workload}/{machine}"
    pointer = place.read(workload, machine, POINTER)
    for attempt in range(_ATTEMPTS):
        try:
            return _read_once(place, workload, machine, pointer, moved=moved)
        except DamagedBaselineError:
            again = place.read(workload, machine, POINTER)
            if again == pointer or attempt == _ATTEMPTS - 1:
                raise
            pointer = again
    raise AssertionError(where)


def _read_once(
    place: Place, workload: str, machine: str, pointer: bytes | None, *, moved: bool
) -> tuple[Document, Measures]:
    where = f"{place.shown}/{workload}/{machine}"
    if pointer is None:
        if moved or (workload, machine) not in place.names():
            raise NoBaselineError(
                f"no baseline in `{where}`", "write one with pipeprof baseline write RUN --workload NAME"
            )
        raise DamagedBaselineError(
            f"baseline file `{where}/{POINTER}` is damaged: it is missing", "restore it from git, or write it again"
        )
    written = read_document(pointer, f"{where}/{POINTER}")
    actual = (workload, machine) if moved else (written.workload, written.machine)
    if (workload, machine) != actual:
        raise DamagedBaselineError(
            f"`{where}` is damaged: it holds the baseline `{written.workload}/{written.machine}`",
            "move it back, or write it again",
        )
    values = decode(written, lambda name: place.read(workload, machine, name, written.files[name].sha256), where)
    return written, values


def _old(place: Place, workload: str, machine: str, *, needed: bool) -> tuple[Measures | None, list[str]]:
    """The baseline there; a damaged one may be replaced, but nothing can be appended to it."""
    try:
        return _read(place, workload, machine)[1], []
    except NoBaselineError:
        return None, []
    except DamagedBaselineError as error:
        if needed:
            raise
        return None, [f"replaced what could not be read: {error.message}"]


def _refuse_other(place: Place, workload: str, machine: str, fresh: Document) -> None:
    """Raises UsageError when another baseline is there, also a damaged one."""
    there = place.read(workload, machine, POINTER)
    if there is None and (workload, machine) not in place.names():
        return
    with contextlib.suppress(DamagedBaselineError):
        if there is not None and read_document(there, POINTER).sha256 == fresh.sha256:
            return
    raise UsageError(
        f"`{place.shown}/{workload}/{machine}` holds another baseline already",
        "replace it with --force, or add the repetitions of another job with --append",
    )


def _new_line(place: Place, workload: str, machine: str, entry: history.Entry) -> bytes:
    """The line for the history; empty when it holds this run already."""
    with contextlib.suppress(RunError):  # of a damaged history `baseline check` tells
        if history.holds(history.entries(place.history(workload, machine)), entry):
            return b""
    return history.line_of(entry)


def _without(measures: Measures, drop: Sequence[str]) -> Measures:
    return msgspec.structs.replace(
        measures,
        values={name: by_rep for name, by_rep in measures.values.items() if not _dropped(name, drop)},
        facts={name: text for name, text in measures.facts.items() if not _dropped(name, drop)},
    )


def _dropped(name: str, drop: Sequence[str]) -> bool:
    return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for pattern in drop)


def _check_patterns(drop: Sequence[str], fresh: Measures, old: Measures | None) -> None:
    all_names = {*fresh.values, *fresh.facts, *(old.values if old else ()), *(old.facts if old else ())}
    for pattern in drop:
        if not any(_dropped(name, [pattern]) for name in all_names):
            near = get_close_matches(pattern, all_names, 3, 0.5)
            raise UsageError(
                f"--drop {pattern} matches no metric and no fact, neither of the run nor of the old baseline",
                f"did you mean {', '.join(near)}?" if near else "",
            )


def _refuse_vanished(fresh: Measures, old: Measures | None, drop: Sequence[str], where: str) -> None:
    gone = sorted(set(old.values) - set(fresh.values)) if old else []
    for metric in gone:
        if is_primary(metric) and not _dropped(metric, drop):
            raise RunError(
                f"`{metric}` was never measured in `{fresh.label}`, the baseline {where} has it",
                f"if the metric was removed on purpose, add --drop {metric}",
            )


DAY_NS = 86_400 * 10**9
SOME_TIME_NS = 10**17  # an order above it is a time of the clock, of 1973 or later
MOST_RUNS = 200  # whose ids are kept


class ChangedError(RunError):
    """The baseline is of another environment or workload: only a new one can hold the run."""


def appended(old: Measures, fresh: Measures) -> Measures:
    """The repetitions of both, in one baseline.

    Raises ChangedError for another environment and a workload whose facts differ, RunError for a repetition that is
    there already.
    """
    where = f"the baseline of `{old.workload}`"
    changed = hard_differences(old.fingerprint, fresh.fingerprint)
    if changed:
        raise ChangedError(
            f"cannot append to {where}: {', '.join(changed)} differ", "write it without --append, or another --workload"
        )
    facts = sorted(name for name in {*old.facts, *fresh.facts} if old.facts.get(name) != fresh.facts.get(name))
    if facts:
        raise ChangedError(
            f"cannot append to {where}: the workload is not the same, `{facts[0]}` is "
            f"`{fresh.facts.get(facts[0], 'not there')}`, was `{old.facts.get(facts[0], 'not there')}`",
            "write it without --append",
        )
    old_contents = {_content(old, rep) for rep in old.reps}
    twice = [rep for rep in fresh.reps if _content(fresh, rep) in old_contents]
    if twice:
        raise RunError(f"cannot append to {where}: it holds repetition {twice[0]} of `{fresh.label}` already")
    last = max(rep.order for rep in old.reps.values())
    late = max(0, last + 1 - min(rep.order for rep in fresh.reps.values()))  # 0 where the order is a time
    moved = {at: msgspec.structs.replace(rep, order=rep.order + late) for at, rep in fresh.reps.items()}
    joined = merged([old, msgspec.structs.replace(fresh, reps=moved, fingerprint=old.fingerprint)], fresh.label)
    revisions = {str((side.git or {}).get("revision")) for side in (old, fresh)}
    if len(revisions) > 1:
        joined.notes = unique([*joined.notes, note("several_revisions")])
    joined.git, joined.created_at, joined.command = fresh.git, fresh.created_at, fresh.command or old.command
    return joined


def without_old(measures: Measures, keep_jobs: int | None, keep_days: float | None) -> tuple[Measures, int]:
    """The measures with the repetitions of the latest jobs alone, and how many jobs were left out.

    `keep_days` counts from the latest repetition; it says nothing of repetitions whose time is not known. The latest
    job always stays.
    """
    if not measures.reps:
        return measures, 0
    latest: dict[str | None, int] = {}
    for rep in measures.reps.values():
        latest[rep.job] = max(latest.get(rep.job, rep.order), rep.order)
    jobs = sorted(latest, key=lambda job: -latest[job])
    newest = latest[jobs[0]]
    remaining = jobs[:keep_jobs]
    if keep_days is not None and newest > SOME_TIME_NS:
        known = [job for job in remaining if latest[job] > SOME_TIME_NS]  # older pipeprof stored benchmarks without
        expired = {job for job in known if newest - latest[job] > keep_days * DAY_NS}
        remaining = [job for job in remaining if job not in expired]
    if len(remaining) == len(jobs):
        return measures, 0
    reps = {at: rep for at, rep in measures.reps.items() if rep.job in remaining}
    values = {
        name: {at: value for at, value in by_rep.items() if at in reps} for name, by_rep in measures.values.items()
    }
    digests = measures.digests
    if len(digests) == len(measures.reps):
        digests = [one for at, one in zip(sorted(measures.reps), digests, strict=True) if at in reps]
    latest_alone = msgspec.structs.replace(
        measures, reps=reps, values={name: by_rep for name, by_rep in values.items() if by_rep}, digests=digests,
        run_ids=measures.run_ids[-MOST_RUNS:],
    )  # fmt: skip
    return latest_alone, len(jobs) - len(remaining)


def _content(measures: Measures, rep: int) -> tuple[str | None, tuple[tuple[str, float], ...]]:
    values = sorted((metric, by_rep[rep]) for metric, by_rep in measures.values.items() if rep in by_rep)
    return measures.reps[rep].job, tuple(pair for pair in values if is_primary(pair[0])) or tuple(values)
