"""Reads other programs' files into a run. To add a source: its own file, and one line in `READERS`.

Puts what several readers found in one tree into one run, table by table.

Readers do not know of each other: each writes a run of its own. A rank has one list of steps: that of the first reader
which has some. Rows of others that named their own steps lose that name, and nothing else. Operators, calls, source
locations and pipelines, which each reader numbers from 0, are numbered on from one reader to the next.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof.errors import RunError, SourceError, UsageError
from pipeprof.read.ascend import reader as ascend
from pipeprof.read.chrome.dialect import pattern
from pipeprof.read.chrome.reader import KINETO, PROGRAMS
from pipeprof.read.megengine import reader as megengine
from pipeprof.read.minddata import reader as minddata
from pipeprof.record import checksums, store
from pipeprof.record.lock import being_recorded
from pipeprof.record.note import note
from pipeprof.record.own_files import refuse_foreign
from pipeprof.record.plain_file import open_handle, refuse_outside
from pipeprof.record.run import MANIFEST, Manifest, Run, load, new_run_id
from pipeprof.record.schema import BY_NAME
from pipeprof.record.text import reachable
from pipeprof.units import format_count, utc_now
from pipeprof.version import __version__

_NAMED_AT_MOST = 20  # files in one warning


class Reader(NamedTuple):
    """One source: its name for `--kind`, what it is for people, which files are its own, and how they are read."""

    kind: str
    what: str
    recognise: Callable[[Path], bool]
    add_files: Callable[[Sequence[Path], Run, Callable[[str], None]], None]


READERS: tuple[Reader, ...] = (  # the steps of the first that has some count
    *(Reader(one.KIND, one.WHAT, one.recognise, one.add_files) for one in (ascend, minddata, megengine)),
    *(Reader(one.kind, one.what, one.recognise, one.add_files) for one in PROGRAMS),
)
_TRACES = tuple(one.kind for one in PROGRAMS)  # whose steps a pattern can name
_TORCH = PROGRAMS[0]
_LAST = _TRACES[-1]  # of a folder with other known files it takes none: these have the same in another form


class _Sorted(NamedTuple):
    by_kind: dict[str, list[Path]]
    left_out: list[str]


def recognise(path: Path, kind: str | None = None) -> str | None:
    """The kind of a file, by its content; None when no reader (or not that of `kind`) knows it.

    Raises SourceError when it cannot be read.
    """
    return next((reader.kind for reader in READERS if kind in (None, reader.kind) and reader.recognise(path)), None)


def holds_known(path: Path) -> bool:
    """Whether a file, or a file in a folder or its `profiler` folder, is one that some reader knows. Never raises."""
    for folder in (path, path / "profiler"):
        try:
            files = [folder] if folder.is_file() else sorted(inside for inside in folder.iterdir() if inside.is_file())
            if any(recognise(file) for file in files):
                return True
        except (OSError, SourceError):
            continue
    return False


def import_hint(error: RunError, path: Path) -> RunError:
    """The error about a path that is not a run; with the import as its hint when another profiler wrote it."""
    return RunError(error.message, f"pipeprof import {shlex.quote(str(path))} -o RUN") if holds_known(path) else error


def import_path(
    source: Path,
    target: Path,
    *,
    kind: str | None = None,
    step: str | None = None,
    force: bool = False,
    progress: Callable[[str], None] = lambda _text: None,
) -> Run:
    """Read a folder (with what is below it) or a file into a new run.

    `step` is a pattern for the names of steps in Chrome traces. The run appears under its name only when it is whole.
    Raises UsageError for a target that exists (and is not a run that `force` may replace), and for a `step` that is no
    pattern or that no file can use; SourceError when nothing usable is found.
    """
    _check(source, target, force=force)
    pattern(step)
    # a trace that is given by itself is read as one, also when it is one of several files of another profiler
    alone = kind is None and source.is_file() and KINETO.recognise(source)
    assigned = _sort(source, target, KINETO.kind if alone else kind, progress)
    if not assigned.by_kind:
        if source.is_file() and not source.stat().st_size:
            raise SourceError(
                f"nothing to import: `{source}` is empty", "the program may have been ended while writing it"
            )
        raise _nothing(source, len(assigned.left_out), kind)
    chosen = [reader for reader in READERS if reader.kind in assigned.by_kind]
    if step is not None and not assigned.by_kind.keys() & set(_TRACES):
        raise UsageError(
            f"--step names the steps of Chrome traces, and `{source}` is read as {' and '.join(assigned.by_kind)}",
            f"leave --step out, or give --kind {KINETO.kind} if there are such traces in it",
        )
    run = _new_run(source, target, chosen, assigned.by_kind)
    if step is not None:
        run.manifest.options["step_pattern"] = step
    try:
        _read(chosen, assigned.by_kind, run, progress)
        for unfinished in list(run.path.rglob(".*.tmp")):  # of a node that was lost; its part was done again
            if unfinished.is_dir():
                shutil.rmtree(unfinished, ignore_errors=True)
            else:
                unfinished.unlink(missing_ok=True)
        _say_left_out(run.manifest, assigned.left_out)
        run.manifest.ended_at = utc_now()
        checksums.seal(run)
        run.save()
        return _put_in_place(run, target)
    except BaseException:
        shutil.rmtree(run.path, ignore_errors=True)
        raise


def _read(chosen: Sequence[Reader], by_kind: dict[str, list[Path]], run: Run, progress: Callable[[str], None]) -> None:
    """Read the files of every kind into one run. Of several kinds, one that has nothing of use makes it partial."""
    if len(chosen) == 1:
        chosen[0].add_files(by_kind[chosen[0].kind], run, progress)
        return
    parts, failed = [], []
    for reader in chosen:
        part = Run(run.path / f".{reader.kind}", msgspec.structs.replace(run.manifest, source=f"import:{reader.kind}"))
        part.manifest = msgspec.convert(msgspec.to_builtins(part.manifest), Manifest)
        part.path.mkdir()  # processes that read ranks work in it
        try:
            reader.add_files(by_kind[reader.kind], part, progress)
        except SourceError as error:
            failed.append((reader, error))
            shutil.rmtree(part.path, ignore_errors=True)
            continue
        parts.append(part)
    if not parts:
        raise failed[0][1]
    combine(run, parts)
    for reader, problem in failed:
        run.manifest.warn("damaged_file", f"{reader.kind}: {problem.message}")
        run.manifest.decide("partial", note("file_not_read", error=problem.message))


def _nothing(source: Path, looked_at: int, kind: str | None) -> SourceError:
    wanted = "".join(f"\n  {reader.kind}: {reader.what}" for reader in READERS if kind in (None, reader.kind))
    if source.is_file():
        return SourceError(f"`{source}` is of a kind that is not known", f"give what a profiler wrote:{wanted}")
    return SourceError(
        f"nothing to import in `{source}`: {format_count(looked_at, 'file')} of unknown kinds",
        f"give the folder that the profiler wrote, such as its `profiler` folder:{wanted}",
    )


def _check(source: Path, target: Path, *, force: bool) -> None:
    if not source.exists():
        raise UsageError(f"no such file or folder: `{source}`", "give what the profiler wrote")
    if not source.is_dir():
        try:
            os.close(open_handle(source))
        except OSError as error:
            raise SourceError(f"cannot read `{source}`: {error.strerror}", "give a folder or a file") from error
    if _is_run(source):
        raise UsageError(f"`{source}` is a pipeprof run already", f"pipeprof report {shlex.quote(str(source))}")
    if source.resolve() == target.resolve() or target.resolve() in source.resolve().parents:
        raise UsageError(f"the run `{target}` would replace the files it is read from", "give a new name with -o")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        if not force:
            raise UsageError(f"`{target}` exists", "give a new name with -o, or --force to replace the run")
        if not _is_run(target):
            raise UsageError(
                f"`{target}` is not a pipeprof run, so --force does not replace it", "give a new name with -o"
            )
        _refuse_recorded(target)
        refuse_foreign(target, "give a new name with -o")


def _refuse_recorded(target: Path) -> None:
    if being_recorded(target):
        raise UsageError(f"`{target}` is being recorded", "wait until that has ended, or give a new name with -o")


def _is_run(folder: Path) -> bool:
    """Whether a folder is a run of ours; other programs have files named run.json, too."""
    if not folder.joinpath(MANIFEST).is_file():
        return False
    try:
        load(folder)
    except (RunError, OSError, ValueError):
        return False
    return True


def _sort(source: Path, target: Path, kind: str | None, progress: Callable[[str], None]) -> _Sorted:
    by_kind: dict[str, list[Path]] = {}
    left_out: list[str] = []
    for number, path in enumerate(_walk(source, target)):
        if number % 100 == 0:
            progress(f"looking at {path.name}")
        shown = path.name if path == source else str(path.relative_to(source))
        try:
            refuse_outside(path, source)
            reader_kind = recognise(path, kind)
        except SourceError as error:
            left_out.append(f"{shown} ({error.__cause__ or 'cannot be read'})")
            continue
        except OSError as error:
            left_out.append(f"{shown} ({error.strerror})")
            continue
        if reader_kind is None:
            left_out.append(shown)
        else:
            by_kind.setdefault(reader_kind, []).append(path)
    if len(by_kind) > 1:
        left_out += [str(path.relative_to(source)) for path in by_kind.pop(_LAST, [])]
    return _Sorted(by_kind, left_out)


def _walk(source: Path, target: Path) -> Iterator[Path]:
    """What is no folder, also pipes and broken links, in a stable order; not what is hidden, of a run, or the target.

    A link to a folder elsewhere comes too: it is not followed, and that must be said.
    """
    if not source.is_dir():
        yield source
        return
    for folder, folders, names in os.walk(source):
        here = Path(folder)
        linked = [name for name in folders if (here / name).is_symlink() and not name.startswith(".")]
        yield from (
            path for path in map(here.joinpath, sorted(linked)) if not path.resolve().is_relative_to(source.resolve())
        )
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and (here / name).resolve() != target.resolve() and not _is_run(here / name)
        )
        yield from (here / name for name in sorted(names) if not name.startswith("."))


def _new_run(source: Path, target: Path, chosen: Sequence[Reader], by_kind: dict[str, list[Path]]) -> Run:
    folder = target.resolve().with_name(f".{target.resolve().name}.{os.getpid()}.importing")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"cannot write `{target}`: {error.strerror}", "choose another folder with -o") from error
    base = source if source.is_dir() else source.parent
    manifest = Manifest(
        run_id=new_run_id(),
        source=f"import:{'+'.join(reader.kind for reader in chosen)}",
        workdir=str(Path.cwd()),
        started_at=utc_now(),
        pipeprof_version=__version__,
        options={
            "imported": str(source.resolve()),
            "files": [str(path.relative_to(base)) for reader in chosen for path in by_kind[reader.kind]],
        },
    )
    return Run(folder, manifest)


def _say_left_out(manifest: Manifest, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
        manifest.warn("left_out", f"files of unknown kinds were left out: {', '.join(names[:_NAMED_AT_MOST])}{more}")


def _put_in_place(run: Run, target: Path) -> Run:
    """Rename the finished folder. A run that it replaces goes only now, and is gone only when the new one is there."""
    final = target.resolve()
    replaced = run.path.with_suffix(".replaced")
    try:
        if final.exists():
            _refuse_recorded(final)
            final.rename(replaced)
        run.path.rename(final)
    except OSError as error:
        if replaced.exists():
            replaced.rename(final)
        raise UsageError(f"cannot write `{target}`: {error.strerror}", "choose another folder with -o") from error
    shutil.rmtree(replaced, ignore_errors=True)
    return Run(target, run.manifest)


_OF_PIPELINES = ("step", "pipeline", "pipeline_op", "pipeline_edge", "queue", "op_service", "fetch", "cpu")
_NUMBERED = {  # table -> column -> what it numbers. The op_id of a pipeline's operator is within the pipeline
    "op": {"op_id": "operator", "exec_id": "call", "parent_id": "call"},
    "op_info": {"op_id": "operator", "stack_id": "location"},
    "allocation": {"op_id": "operator"},
    "span": {"stack_id": "location"},
    "stack": {"stack_id": "location", "parent_id": "location"},
    **{table: {"pipeline_id": "pipeline"} for table in _OF_PIPELINES},
}


def combine(run: Run, parts: Sequence[Run]) -> None:
    """Move the tables of the parts, best first, into a run and fill in its manifest. The parts are gone afterwards."""
    stepped: set[int] = set()
    timed: set[int] = set()  # ranks with executions of operators
    numbers: dict[tuple[str, str], int] = {}
    for part in parts:
        mine = {_rank(path) for path in part.files("step")}
        foreign, operators = mine & stepped, {_rank(path) for path in part.files("op")}
        numbers |= _move(run, part, numbers, foreign)
        source = part.manifest.source
        _warn(run, "two_step_sources", foreign, f"steps of {source} were left out", "another source has better ones")
        _warn(
            run,
            "two_op_sources",
            operators & timed,
            f"operators of {source} were added",
            "it has those of another source, too",
        )
        stepped |= mine
        timed |= operators
        _add_manifest(run.manifest, part.manifest)
        shutil.rmtree(part.path, ignore_errors=True)
    if len({rep.zero_realtime_ns for part in parts for rep in part.manifest.reps}) > 1:
        run.manifest.warn("clocks", "sources on several clocks were imported together; each begins at 0")


def _warn(run: Run, code: str, ranks: set[int], what: str, why: str) -> None:
    if ranks:
        run.manifest.warn(code, f"{what} for rank {', '.join(map(str, sorted(ranks)))}: {why}")


def _rank(path: Path) -> int:
    return int(path.parent.name.removeprefix("rank="))


def _move(run: Run, part: Run, numbers: Mapping[tuple[str, str], int], foreign: set[int]) -> dict[tuple[str, str], int]:
    """Move the tables of a part. `numbers` and the result: the first that is free, by partition and what is numbered.

    Steps of the `foreign` ranks stay behind.
    """
    free = dict(numbers)
    for table in BY_NAME:
        for path in part.files(table):
            if table == "step" and _rank(path) in foreign:
                continue
            place = f"{path.parent.parent.name}/{path.parent.name}"
            first = {name: numbers.get((place, what), 0) for name, what in _NUMBERED.get(table, {}).items()}
            for name, what in _NUMBERED.get(table, {}).items():
                free[place, what] = max(free.get((place, what), 0), first[name] + _largest(path, name) + 1)
            _move_file(run, table, path, first, keeps_steps=_rank(path) not in foreign)
    return free


def _largest(path: Path, name: str) -> int:
    """The largest number in a column, by the statistics of the file, which every writer here makes; -1 without one."""
    with pq.ParquetFile(reachable(path)) as file:
        column, metadata = file.schema_arrow.get_field_index(name), file.metadata
    groups = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
    return max((group.max for group in groups if group is not None and group.has_min_max), default=-1)


def _move_file(run: Run, table: str, path: Path, first: Mapping[str, int], *, keeps_steps: bool) -> None:
    """Move a file of a table, with each column of `first` numbered from there on, and without its steps if they go."""
    rep = int(path.parent.parent.name.removeprefix("rep="))
    folder = store.partition(run, table, rep, _rank(path))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / store.part_name(len(list(folder.glob("part-*.parquet"))))
    schema = BY_NAME[table].arrow()
    unnamed = not keeps_steps and "step" in schema.names
    rows = pq.ParquetFile(reachable(path)).metadata.num_rows
    run.manifest.tables[table] = run.manifest.tables.get(table, 0) + rows
    if not unnamed and not any(first.values()):
        path.rename(target)
        return
    with pq.ParquetWriter(reachable(target), schema, compression="zstd") as out:
        for group in store.row_groups(path):
            columns = {name: pc.add(group.column(name), by) for name, by in first.items()}
            columns |= {"step": pa.nulls(len(group), pa.int64())} if unnamed else {}
            out.write_table(pa.table([columns.get(name, group.column(name)) for name in schema.names], schema=schema))


def _add_manifest(manifest: Manifest, part: Manifest) -> None:
    for warning in part.warnings:
        if warning not in manifest.warnings:
            manifest.warnings.append(warning)
    for mine, theirs in ((manifest.options, part.options), (manifest.fingerprint, part.fingerprint)):
        for name, value in theirs.items():
            mine.setdefault(name, value)
    if part.state != "complete" and manifest.state != "partial":
        manifest.decide(part.state, part.reason_facts)
    elif manifest.state == "running":
        manifest.state = part.state
    named = {entry.what for entry in manifest.not_measured}
    manifest.not_measured = [
        entry
        for entry in [*manifest.not_measured, *(entry for entry in part.not_measured if entry.what not in named)]
        if not manifest.tables.get(entry.what)
    ]
    if not manifest.reps:
        manifest.reps = part.reps
    elif part.reps:
        ranks = {rank.rank for rank in manifest.reps[0].ranks}
        manifest.reps[0].ranks += [rank for rank in part.reps[0].ranks if rank.rank not in ranks]
        manifest.reps += part.reps[len(manifest.reps) :]
        manifest.reps[0].dur_ns = max(manifest.reps[0].dur_ns or 0, part.reps[0].dur_ns or 0)
