"""The runs below folders as one table `fleet_rank`; what was found is kept in an index for the next question.

The index is a Parquet file of the cache for each folder, with a checksum on every page. Of each run it notes what
`run.json` was (size, times, number of the file; of a run in object storage, its time and the lengths of all files): a
run is asked again when that has changed. Runs that are damaged or running are asked each time. An index of another
pipeprof, or one that cannot be read, is made anew.

Where runs are looked for: a folder of this machine, or a prefix in object storage.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof import cluster
from pipeprof.errors import PipeprofError, RunError
from pipeprof.query.measure import fingerprint_of, seen_from, workload_of
from pipeprof.record.cache import cache_folder, forget
from pipeprof.record.checksums import refuse_changed
from pipeprof.record.compact import schema_of
from pipeprof.record.lock import is_running
from pipeprof.record.machine import fingerprint_hash, machine_class
from pipeprof.record.object_runs import HALF, READERS, add_rollup, glimpsed, runs_below
from pipeprof.record.objects import StorageError, below, escaped, without_secrets
from pipeprof.record.plain_file import replacing
from pipeprof.record.run import MANIFEST, load
from pipeprof.record.run_objects import copied, storage_of
from pipeprof.record.text import printable, reachable
from pipeprof.report.kept import VERSION
from pipeprof.report.rollup import make, rollup_of, stored
from pipeprof.report.runs import CUT_OFF
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeprof.record.object_runs import Stored
    from pipeprof.record.objects import Objects
    from pipeprof.record.run import Manifest, Run


SCHEMA = schema_of("fleet_rank")
DAMAGED, RUNNING = "damaged", "running"
PLACES = ("call", "code")  # below the working directory: the same code lies elsewhere on each machine


def rows_of(path: Path, name: str) -> pa.Table:
    """The rows of the run in a folder, called `name`; a single one, without rank, when no rank of it is known.

    Never raises for what is wrong with the run: that is its `problem`.
    """
    try:
        run = load(path)
    except (PipeprofError, OSError) as error:
        return _without_ranks({"run": name, "state": DAMAGED, "problem": _said(error)})
    facts = {"run": name, **_facts(run.manifest)}
    if run.manifest.state == RUNNING:
        cut_off = not is_running(run)
        return _without_ranks(facts | ({"state": "partial", "problem": CUT_OFF} if cut_off else {}))
    try:
        refuse_changed(run, footers=False)
        rollup = rollup_of(run)
    except (PipeprofError, OSError) as error:
        return _without_ranks(facts | {"state": DAMAGED, "problem": _said(error)})
    return _beside(facts, rollup, run) if rollup.num_rows else _without_ranks(facts)


def rows_of_stored(root: Objects, stored_run: Stored, name: str) -> pa.Table:
    """As `rows_of`, of a run below `root` in object storage: by its manifest and rollup, else by a copy of it.

    Raises StorageError where the storage fails in a way that may pass: that says nothing about the run.
    """
    if stored_run.problem == HALF:
        return _without_ranks({"run": name, "state": "partial", "problem": HALF})
    facts: dict[str, Any] = {"run": name}
    try:
        with glimpsed(root, stored_run) as run:
            facts |= _facts(run.manifest)
            add_rollup(root, stored_run, run)
            rollup = stored(run)
        if rollup is None:
            with copied(stored_run.url) as copy:
                rollup = make(copy)
    except (PipeprofError, OSError) as error:
        if isinstance(error, StorageError) and error.passes:
            raise
        return _without_ranks(facts | {"state": DAMAGED, "problem": _said(error)})
    return _beside(facts, rollup, run) if rollup.num_rows else _without_ranks(facts)


def _said(error: PipeprofError | OSError) -> str:
    return printable(error.message if isinstance(error, PipeprofError) else str(error.strerror or error))


def _facts(manifest: Manifest) -> dict[str, Any]:
    conditions = fingerprint_of(manifest)
    revision = (manifest.git or {}).get("revision")
    versions = [rank.mindspore for rep in manifest.reps for rank in rep.ranks if rank.mindspore]
    began, week = _began(manifest.started_at)
    facts = {
        "run_id": manifest.run_id, "state": manifest.state, "problem": manifest.reason, "started_at": began,
        "week": week, "workload": workload_of(manifest), "source": manifest.source,
        "machine": machine_class(conditions), "conditions": fingerprint_hash(conditions), "revision": revision,
        "mindspore": versions[0] if versions else manifest.fingerprint.get("mindspore"),
    }  # fmt: skip
    return {name: printable(value) if isinstance(value, str) else None for name, value in facts.items()}


def _began(text: str) -> tuple[str, str | None]:
    """When a run began in UTC, and the Monday of that week; None for a text that is no time."""
    try:
        at = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
        at = at.astimezone(dt.timezone.utc)
        monday = (at - dt.timedelta(days=at.weekday())).date().isoformat()
    except (ValueError, OverflowError):
        return text, None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ"), monday


def _beside(facts: dict[str, Any], rollup: pa.Table, run: Run) -> pa.Table:
    """The facts of a run in each row of its rollup."""
    hosts = {(rep.rep, one.rank): printable(one.host) for rep in run.manifest.reps for one in rep.ranks}
    usual = run.manifest.fingerprint.get("host")
    keys = zip(rollup.column("rep").to_pylist(), rollup.column("rank").to_pylist(), strict=True)
    host = [hosts.get(key) or (printable(usual) if isinstance(usual, str) else None) for key in keys]
    columns = []
    for field in SCHEMA:
        if field.name == "host":
            columns.append(pa.chunked_array([pa.array(host, field.type)]))
        elif field.name in PLACES:
            sites = [one and seen_from(run.manifest.workdir, one) for one in rollup.column(field.name).to_pylist()]
            columns.append(pa.chunked_array([pa.array(sites, field.type)]))
        elif field.name in rollup.column_names:
            columns.append(rollup.column(field.name))
        else:
            same = pa.repeat(pa.scalar(facts[field.name], field.type), rollup.num_rows)
            columns.append(pa.chunked_array([same]))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _without_ranks(facts: dict[str, Any]) -> pa.Table:
    return pa.Table.from_arrays([pa.array([facts.get(field.name)], field.type) for field in SCHEMA], schema=SCHEMA)


MOST_INDEXES = 32  # of folders that were asked about last
OFTEN = 500  # runs: after so many new ones the index is written, so that what interrupts does not lose them all
BLOCK = 25  # runs that are asked together: some tenths of a CPU second
_INDEX = pa.schema([pa.field("seen", pa.string()), *SCHEMA])
_MARK = b"pipeprof"


def gather(
    roots: Sequence[Path | str], progress: Callable[[str], None] = lambda _text: None, *, fresh: bool = False,
    unlisted: Callable[[str], None] = lambda _folder: None,
) -> pa.Table:  # fmt: skip
    """Rows of fleet_rank of every run in these folders and below these URLs; `fresh` believes no index.

    A run is called by its path as the folder was given, and counts once where one folder lies in another. `unlisted` is
    told of each folder below that cannot be listed, and why. Raises RunError for a place that cannot be listed.
    """
    gathered = SCHEMA.empty_table()
    for root in dict.fromkeys(roots):
        place = root_of(root)
        rows = _gathered(place, place.looks(unlisted), progress, fresh=fresh)
        again = pc.is_in(rows.column("run"), gathered.column("run").combine_chunks())
        gathered = pa.concat_tables([gathered, rows.filter(pc.invert(again))])
    return gathered.combine_chunks()


def once_each(rows: pa.Table) -> tuple[pa.Table, int]:
    """The rows without runs that are there twice, such as here and in a bucket, and how many those are.

    Of the places of a run the first counts in which it is complete.
    """
    seen: dict[str, dict[str, str]] = {}
    for run, run_id, state in zip(*(rows.column(name).to_pylist() for name in ("run", "run_id", "state")), strict=True):
        if run_id is not None:
            seen.setdefault(run_id, {})[run] = state
    twice = [places for places in seen.values() if len(places) > 1]
    left_out = [run for places in twice for run in sorted(places, key=lambda run: places[run] != "complete")[1:]]
    if not left_out:
        return rows, 0
    return rows.filter(pc.invert(pc.is_in(rows.column("run"), pa.array(left_out)))).combine_chunks(), len(left_out)


def _gathered(
    root: Folder | Prefix, there: dict[str, str], progress: Callable[[str], None], *, fresh: bool
) -> pa.Table:
    path = _index_path(root)
    index = None if fresh else _read(path)
    unchanged, names = _still_true(index, there)
    new = [name for name in there if name not in names]
    fresh_rows: dict[str, pa.Table] = {}
    try:
        for name, rows in _asked(root, new):
            fresh_rows[name] = _noted(rows, there[name])
            progress(f"{len(fresh_rows):,} of {len(new):,} runs that are new or changed")
            if len(fresh_rows) % OFTEN == 0:
                _write([unchanged, *fresh_rows.values()], path)
    finally:
        # In the order of the folder, whoever was first: sums of floats depend on it.
        parts = [unchanged, *(fresh_rows[name] for name in new if name in fresh_rows)]
        if new or (index is not None and index.num_rows > unchanged.num_rows):
            _write(parts, path)
    gathered = pa.concat_tables(parts).combine_chunks()  # DuckDB takes 50 KB for each piece of a table
    given = _as_given(root, gathered.column("run"))
    return gathered.drop_columns(["seen"]).set_column(SCHEMA.get_field_index("run"), SCHEMA.field("run"), given)


def _asked(root: Folder | Prefix, names: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Each run with its rows, as they come."""
    blocks = [names[at : at + BLOCK] for at in range(0, len(names), BLOCK)]
    read: Callable[[Any], tuple[pa.Table, list[int]]] = (
        _block_of_files if isinstance(root, Folder) else _block_of_objects
    )
    for number, (rows, counts) in cluster.each(read, [root.share(block) for block in blocks]):
        at = 0
        for name, count in zip(blocks[number], counts, strict=True):
            own = rows.slice(at, count)
            yield name, _sure(own, root, name) if isinstance(root, Folder) else own
            at += count


def _block_of_files(part: tuple[Path, Path, Sequence[str]]) -> tuple[pa.Table, list[int]]:
    """The rows of some runs, and how many each has. Perhaps on another machine: `root` is absolute."""
    root, given, names = part
    return _block([_renamed(rows_of(root / name, printable(name)), root / name, given / name) for name in names])


def _block_of_objects(part: tuple[str, Sequence[tuple[str, Stored]]]) -> tuple[pa.Table, list[int]]:
    """As `_block_of_files`, of runs in object storage: some at a time, since they wait for the network."""
    url, runs = part
    root = storage_of(url)
    with ThreadPoolExecutor(READERS) as pool:
        return _block(list(pool.map(lambda one: rows_of_stored(root, one[1], printable(one[0])), runs)))


def _block(tables: Sequence[pa.Table]) -> tuple[pa.Table, list[int]]:
    return pa.concat_tables(tables).combine_chunks(), [rows.num_rows for rows in tables]


def _renamed(rows: pa.Table, path: Path, given: Path) -> pa.Table:
    """A problem that names a run by the path under which it was asked names it as it was given."""
    at = SCHEMA.get_field_index("problem")
    if path == given or not rows.column(at)[0].is_valid:
        return rows
    said = pc.replace_substring(rows.column(at), printable(str(path)), printable(str(given)))
    return rows.set_column(at, SCHEMA.field(at), said)


def _sure(rows: pa.Table, root: Folder, name: str) -> pa.Table:
    """The rows; asked here where they say whether a recording still runs, which is seen on its own machine alone."""
    running = rows.column("state")[0].as_py() == RUNNING or rows.column("problem")[0].as_py() == CUT_OFF
    return rows_of(root.given / name, printable(name)) if running and cluster.is_connected() else rows


def _as_given(root: Folder | Prefix, names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Runs by their path as the folder was given, all at once: of tens of thousands each would take its time."""
    below = pc.binary_join_element_wise(pa.scalar(root.front), names, pa.scalar(""))
    return pc.if_else(pc.equal(names, pa.scalar(".")), pa.scalar(root.own), below)


def _still_true(index: pa.Table | None, there: dict[str, str]) -> tuple[pa.Table, set[str]]:
    """The rows of an index whose runs are as they were, and the names of these runs."""
    if index is None:
        return _INDEX.empty_table(), set()
    looked = dict(zip(index.column("run").to_pylist(), index.column("seen").to_pylist(), strict=True))
    names = {name for name, seen in looked.items() if seen and there.get(name) == seen}
    if len(names) == len(looked):
        return index, names
    return index.filter(pc.is_in(index.column("run"), pa.array(sorted(names), pa.string()))), names


def _noted(rows: pa.Table, seen: str) -> pa.Table:
    """Rows with what their run looked like; null for one that may be another soon, though its manifest is the same."""
    lasting = not {DAMAGED, RUNNING} & set(rows.column("state").to_pylist())
    column = pa.repeat(pa.scalar(seen if lasting else None, pa.string()), rows.num_rows)
    return rows.add_column(0, _INDEX.field("seen"), pa.chunked_array([column]))


def _index_path(root: Folder | Prefix) -> Path:
    """The index of a folder."""
    return cache_folder("fleet") / f"{hashlib.sha256(root.key).hexdigest()[:32]}.parquet"


def _mark() -> bytes:
    """What an index must say to be believed: columns that mean something else, or other rules, are another one."""
    return f"{VERSION} {__version__} {_INDEX}".encode()


def _read(path: Path) -> pa.Table | None:
    try:
        with pq.ParquetFile(reachable(path), page_checksum_verification=True) as file:
            if (file.schema_arrow.metadata or {}).get(_MARK) != _mark():
                return None
            index = file.read().replace_schema_metadata()
    except (OSError, ValueError, pa.ArrowException):
        return None
    return index if index.schema.equals(_INDEX) else None


def _write(parts: list[pa.Table], path: Path) -> None:
    """Write an index whole or not at all; where that fails its runs are asked again."""
    rows = pa.concat_tables(parts).replace_schema_metadata({_MARK: _mark()})
    rows = rows.filter(pc.is_valid(rows.column("seen")))
    with contextlib.suppress(OSError, pa.ArrowException):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            pq.write_table(rows, reachable(temporary), compression="zstd", write_page_checksum=True)
        forget(path.parent, MOST_INDEXES)


DEEPEST = 6  # folders below the one that is given


class Folder:
    """A folder and the runs in it and in the folders in it, by their path in it; it itself is `.`.

    `front` is what stands before the name of a run, `own` what it is called itself. `key` is another for each folder.
    """

    def __init__(self, root: Path) -> None:
        self.path, self.given = root.absolute(), root
        self.own, self.front = printable(str(root)), printable(str(root / "x"))[:-1]
        self.key = os.fsencode(os.path.abspath(root))  # noqa: PTH100 - links stay as they are

    def looks(self, unlisted: Callable[[str], None]) -> dict[str, str]:
        """What the manifest of each run looks like from outside. Raises RunError when the folder cannot be listed.

        `unlisted` is told of those in it that cannot.
        """
        return dict(_seen(self.given, unlisted))

    def share(self, names: Sequence[str]) -> tuple[Path, Path, Sequence[str]]:
        """What another process needs to read some of the runs."""
        return self.path, self.given, names


class Prefix:
    """As Folder, of a prefix in object storage, which one listing shows."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.own, self.front = (printable(without_secrets(below(url, name))) for name in ("", "x"))
        self.front = self.front[:-1]
        self.key = url.encode(errors="surrogatepass")
        self._runs: Mapping[str, Stored] = {}

    def looks(self, _unlisted: Callable[[str], None]) -> dict[str, str]:
        """What each run looks like in the listing. Raises RunError as `runs_below`."""
        self._runs = {escaped(one.name) or ".": one for one in runs_below(self.url)}
        return {name: one.seen for name, one in self._runs.items()}

    def share(self, names: Sequence[str]) -> tuple[str, list[tuple[str, Stored]]]:
        """See Folder."""
        return self.url, [(name, self._runs[name]) for name in names]


def root_of(given: Path | str) -> Folder | Prefix:
    """The place that a path or URL names."""
    return Prefix(given) if isinstance(given, str) and "://" in given else Folder(Path(given))


def _seen(root: Path, unlisted: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """The runs below a folder by their path in it, each with what its manifest looks like from outside.

    Links to folders are not followed.
    """
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
            unlisted(printable(f"{folder}: {error.strerror}"))
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
