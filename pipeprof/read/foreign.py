"""Reads other programs' files into a run. To add a source: its own file, and one line in `READERS`."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeprof import __version__
from pipeprof.errors import RunError, SourceError, UsageError
from pipeprof.read.minddata import reader as minddata
from pipeprof.record.run import MANIFEST, Manifest, Run, load, new_run_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_NAMED_AT_MOST = 20  # files in one warning


class Reader(NamedTuple):
    """One source: its name for `--kind`, what it is for people, which files are its own, and how they are read."""

    kind: str
    what: str
    recognise: Callable[[Path], bool]
    add_files: Callable[[Sequence[Path], Run, Callable[[str], None]], None]


READERS: tuple[Reader, ...] = (Reader(minddata.KIND, minddata.WHAT, minddata.recognise, minddata.add_files),)
KINDS = tuple(reader.kind for reader in READERS)


class _Sorted(NamedTuple):
    known: dict[str, list[Path]]
    left_out: list[str]


def recognise(path: Path) -> str | None:
    """The kind of a file, by its content; None when no reader knows it. Raises SourceError when it cannot be read."""
    return next((reader.kind for reader in READERS if reader.recognise(path)), None)


def holds_known(folder: Path) -> bool:
    """Whether a folder, or its `profiler` folder, has a file that some reader knows. Never raises."""
    for place in (folder, folder / "profiler"):
        try:
            if any(recognise(path) for path in sorted(place.iterdir()) if path.is_file()):
                return True
        except (OSError, SourceError):
            continue
    return False


def import_path(
    source: Path,
    target: Path,
    *,
    kind: str | None = None,
    force: bool = False,
    progress: Callable[[str], None] = lambda _text: None,
) -> Run:
    """Read a folder (with what is below it) or a file into a new run.

    The run appears under its name only when it is whole. Raises UsageError for a target that exists (and is not a run
    that `force` may replace), SourceError when nothing usable is found.
    """
    _check(source, target, force=force)
    found = _sort(source, target, kind, progress)
    if not found.known:
        wanted = "; ".join(reader.what for reader in READERS if kind in (None, reader.kind))
        raise SourceError(
            f"nothing to import in `{source}`: {len(found.left_out)} file(s), none known, expected {wanted}",
            "give the folder that the profiler wrote, such as its `profiler` folder",
        )
    if len(found.known) > 1:
        raise SourceError(
            f"files of several kinds in `{source}`: {', '.join(sorted(found.known))}", "choose one with --kind"
        )
    chosen = next(reader for reader in READERS if reader.kind in found.known)
    paths = found.known[chosen.kind]
    run = _new_run(source, target, chosen.kind, paths)
    try:
        chosen.add_files(paths, run, progress)
        _say_left_out(run.manifest, found.left_out)
        run.manifest.ended_at = _now()
        run.save()
        return _put_in_place(run, target)
    except BaseException:
        shutil.rmtree(run.path, ignore_errors=True)
        raise


def _check(source: Path, target: Path, *, force: bool) -> None:
    if not source.exists():
        raise UsageError(f"no such folder: `{source}`", "give the folder that the profiler wrote")
    if _is_run(source):
        raise UsageError(f"`{source}` is a pipeprof run already", f"pipeprof report {source}")
    if source.resolve() == target.resolve() or target.resolve() in source.resolve().parents:
        raise UsageError(f"the run `{target}` would replace the files it is read from", "give a new name with -o")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        if not force:
            raise UsageError(f"`{target}` exists", "give a new name with -o, or --force to replace the run")
        if not _is_run(target):
            raise UsageError(
                f"`{target}` is not a pipeprof run, so --force does not replace it", "give a new name with -o"
            )


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
    known: dict[str, list[Path]] = {}
    left_out: list[str] = []
    for number, path in enumerate(_walk(source, target)):
        if number % 100 == 0:
            progress(f"looking at {path.name}")
        shown = path.name if path == source else str(path.relative_to(source))
        try:
            found = recognise(path)
        except SourceError as error:
            left_out.append(f"{shown} ({error.__cause__ or 'cannot be read'})")
            continue
        if found is None or kind not in (None, found):
            left_out.append(shown)
        else:
            known.setdefault(found, []).append(path)
    return _Sorted(known, left_out)


def _walk(source: Path, target: Path) -> Iterator[Path]:
    """Files in a stable order, without hidden ones, those of pipeprof runs, and those of the target."""
    if source.is_file():
        yield source
        return
    for place, folders, names in os.walk(source):
        here = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and (here / name).resolve() != target.resolve() and not _is_run(here / name)
        )
        yield from (here / name for name in sorted(names) if not name.startswith(".") and (here / name).is_file())


def _new_run(source: Path, target: Path, kind: str, paths: Sequence[Path]) -> Run:
    folder = target.resolve().with_name(f".{target.resolve().name}.{os.getpid()}.importing")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"cannot write `{target}`: {error.strerror}", "choose another folder with -o") from error
    base = source if source.is_dir() else source.parent
    manifest = Manifest(
        run_id=new_run_id(),
        source=f"import:{kind}",
        workdir=str(Path.cwd()),
        started_at=_now(),
        pipeprof_version=__version__,
        options={"imported": str(source.resolve()), "files": [str(path.relative_to(base)) for path in paths]},
    )
    return Run(folder, manifest)


def _say_left_out(manifest: Manifest, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
        manifest.warn("left_out", f"files that are not known: {', '.join(names[:_NAMED_AT_MOST])}{more}")


def _put_in_place(run: Run, target: Path) -> Run:
    """Rename the finished folder. A run that it replaces goes first, and only now."""
    place = target.resolve()
    try:
        if place.exists():
            shutil.rmtree(place)
        run.path.rename(place)
    except OSError as error:
        raise UsageError(f"cannot write `{target}`: {error.strerror}", "choose another folder with -o") from error
    return Run(target, run.manifest)


def _now() -> str:
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
