"""The runs below folders as one table `fleet_rank`; what was found is kept in an index for the next question.

The index is a Parquet file of the cache for each folder, with a checksum on every page. Of each run it notes what
`run.json` was (size, times, number of the file): a run is asked again when that has changed. Runs that are damaged or
running are asked each time. An index of another pipeprof, or one that cannot be read, is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof import cluster
from pipeprof.errors import RunError
from pipeprof.record.cache import cache_folder, forget_oldest, write_whole
from pipeprof.record.run import MANIFEST
from pipeprof.record.text import printable, reachable
from pipeprof.report.fleet.rows import DAMAGED, RUNNING, SCHEMA, rows_of
from pipeprof.report.rollup import VERSION
from pipeprof.report.runs import CUT_OFF
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

DEEPEST = 6  # folders below the one that is given
MOST_INDEXES = 32  # of folders that were asked about last
OFTEN = 500  # runs: after so many new ones the index is written, so that what interrupts does not lose them all
BLOCK = 25  # runs that are asked together: some tenths of a CPU second
_KEPT = pa.schema([pa.field("seen", pa.string()), *SCHEMA])
_MARK = b"pipeprof"


def gather(
    roots: Sequence[Path], progress: Callable[[str], None] = lambda _text: None, *, fresh: bool = False
) -> pa.Table:
    """Rows of fleet_rank of every run in these folders and the folders in them; `fresh` believes no index.

    A run is called by its path as the folder was given. Raises RunError for a folder that cannot be listed.
    """
    tables = [_gathered(root, progress, fresh=fresh) for root in dict.fromkeys(roots)]
    return pa.concat_tables(tables) if tables else SCHEMA.empty_table()


def _gathered(root: Path, progress: Callable[[str], None], *, fresh: bool) -> pa.Table:
    there = dict(_seen(root))
    place = _place(root)
    known = None if fresh or place is None else _read(place)
    kept, names = _still_true(known, there)
    new = [name for name in there if name not in names]
    fresh_rows: dict[str, pa.Table] = {}
    try:
        for name, rows in _asked(root, new):
            fresh_rows[name] = _noted(rows, there[name])
            progress(f"{len(fresh_rows):,} of {len(new):,} runs that are new or changed")
            if len(fresh_rows) % OFTEN == 0 and place is not None:
                _write([kept, *fresh_rows.values()], place)
    finally:
        # In the order of the folder, whoever was first: sums of floats depend on it.
        parts = [kept, *(fresh_rows[name] for name in new if name in fresh_rows)]
        if place is not None and (new or (known is not None and known.num_rows > kept.num_rows)):
            _write(parts, place)
    found = pa.concat_tables(parts).combine_chunks()  # DuckDB takes 50 KB for each piece of a table
    given = _as_given(root, found.column("run"))
    return found.drop_columns(["seen"]).set_column(SCHEMA.get_field_index("run"), SCHEMA.field("run"), given)


def _asked(root: Path, names: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Each run with its rows, as they come."""
    blocks = [names[at : at + BLOCK] for at in range(0, len(names), BLOCK)]
    for number, (rows, counts) in cluster.each(_block, [(root.absolute(), root, block) for block in blocks]):
        at = 0
        for name, count in zip(blocks[number], counts, strict=True):
            yield name, _sure(rows.slice(at, count), root, name)
            at += count


def _block(part: tuple[Path, Path, Sequence[str]]) -> tuple[pa.Table, list[int]]:
    """The rows of some runs, and how many each has. Perhaps on another machine: `root` is absolute."""
    root, given, names = part
    found = [_renamed(rows_of(root / name, printable(name)), root / name, given / name) for name in names]
    return pa.concat_tables(found).combine_chunks(), [rows.num_rows for rows in found]


def _renamed(rows: pa.Table, path: Path, given: Path) -> pa.Table:
    """A problem that names a run by the path under which it was asked names it as it was given."""
    at = SCHEMA.get_field_index("problem")
    if path == given or not rows.column(at)[0].is_valid:
        return rows
    said = pc.replace_substring(rows.column(at), printable(str(path)), printable(str(given)))
    return rows.set_column(at, SCHEMA.field(at), said)


def _sure(rows: pa.Table, root: Path, name: str) -> pa.Table:
    """The rows; asked here where they say whether a recording still runs, which is seen on its own machine alone."""
    running = rows.column("state")[0].as_py() == RUNNING or rows.column("problem")[0].as_py() == CUT_OFF
    return rows_of(root / name, printable(name)) if running and cluster.is_connected() else rows


def _as_given(root: Path, names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Runs by their path as the folder was given, all at once: of tens of thousands each would take its time."""
    front = printable(str(root / "x"))[:-1]
    below = pc.binary_join_element_wise(pa.scalar(front), names, pa.scalar(""))
    return pc.if_else(pc.equal(names, pa.scalar(".")), pa.scalar(printable(str(root))), below)


def _seen(root: Path) -> Iterator[tuple[str, str]]:
    """The runs below a folder by their path in it, each with what its manifest looks like from outside."""
    waiting = [(root, "", 0)]
    while waiting:
        folder, name, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            if depth == 0:
                raise RunError(
                    f"cannot list the runs in `{folder}`: {error.strerror}", "give a folder that holds runs"
                ) from error
            continue
        manifest = next((entry for entry in entries if entry.name == MANIFEST), None)
        if manifest is not None:
            yield name or ".", _looks(manifest)
        elif depth < DEEPEST:
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            waiting += [
                (folder / entry.name, f"{name}/{entry.name}" if name else entry.name, depth + 1)
                for entry in folders
                if not entry.name.startswith(".")
            ]


def _looks(manifest: os.DirEntry[str]) -> str:
    try:
        about = manifest.stat(follow_symlinks=False)
    except OSError:
        return ""
    return f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns} {about.st_ino}"


def _still_true(known: pa.Table | None, there: dict[str, str]) -> tuple[pa.Table, set[str]]:
    """The rows of an index whose runs are as they were, and the names of these runs."""
    if known is None:
        return _KEPT.empty_table(), set()
    looked = dict(zip(known.column("run").to_pylist(), known.column("seen").to_pylist(), strict=True))
    names = {name for name, seen in looked.items() if seen and there.get(name) == seen}
    if len(names) == len(looked):
        return known, names
    return known.filter(pc.is_in(known.column("run"), pa.array(sorted(names), pa.string()))), names


def _noted(rows: pa.Table, seen: str) -> pa.Table:
    """Rows with what their run looked like; null for one that may be another soon, though its manifest is the same."""
    lasting = not {DAMAGED, RUNNING} & set(rows.column("state").to_pylist())
    column = pa.repeat(pa.scalar(seen if lasting else None, pa.string()), rows.num_rows)
    return rows.add_column(0, _KEPT.field("seen"), pa.chunked_array([column]))


def _place(root: Path) -> Path | None:
    """The index of a folder; None where nobody's home is known."""
    with contextlib.suppress(RuntimeError):
        whole = hashlib.sha256(os.fsencode(os.path.abspath(root)))  # noqa: PTH100 - links stay as they are
        return cache_folder("fleet") / f"{whole.hexdigest()[:32]}.parquet"
    return None


def _mark() -> bytes:
    """What an index must say to be believed: columns that mean something else, or other rules, are another one."""
    return f"{VERSION} {__version__} {_KEPT}".encode()


def _read(place: Path) -> pa.Table | None:
    try:
        with pq.ParquetFile(reachable(place), page_checksum_verification=True) as file:
            if (file.schema_arrow.metadata or {}).get(_MARK) != _mark():
                return None
            found = file.read().replace_schema_metadata()
    except (OSError, ValueError, pa.ArrowException):
        return None
    return found if found.schema.equals(_KEPT) else None


def _write(parts: list[pa.Table], place: Path) -> None:
    """Write an index whole or not at all; where that fails its runs are asked again."""
    rows = pa.concat_tables(parts).replace_schema_metadata({_MARK: _mark()})
    rows = rows.filter(pc.is_valid(rows.column("seen")))
    with contextlib.suppress(pa.ArrowException):
        write_whole(
            place, lambda path: pq.write_table(rows, reachable(path), compression="zstd", write_page_checksum=True)
        )
        forget_oldest(place.parent, MOST_INDEXES)
