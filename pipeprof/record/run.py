"""A run: one folder, its manifest `run.json`, and where its files are."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from pipeprof.errors import RunError, did_you_mean, near_names
from pipeprof.record import limits
from pipeprof.record.cache import origin_of
from pipeprof.record.document import BAD_JSON, COMPACT, PartName, Sha256, decode_document, is_rank_part, is_table_file
from pipeprof.record.note import Note, sentence
from pipeprof.record.plain_file import read_file, replacing
from pipeprof.record.schema import BY_NAME, SCHEMA_VERSION
from pipeprof.record.text import printable_all
from pipeprof.record.whereabouts import Last  # noqa: TC001 - read when the manifest is

MANIFEST = "run.json"
SPOOL = "spool"
EVERYWHERE = "rep=*/rank=*"
CUT = "cut"  # option of the manifest: a file of the spool had more than may be read
UNFINISHED = "unfinished"  # option of the manifest: the spool holds more than the tables
CURES = ("numpy", "openmp")  # codes of warnings that say the cure of what ended the command
LAUNCHER = "launcher"  # code of warnings about the recording itself, which no conversion of its spool takes back
TRACED = "operators of PyTorch are not recorded, but imported: from the trace that its own profiler writes"
UNSEEN_NS = 1_000_000_000  # what a kill may cost: marks are written twice a second, on a busy machine later than that
MOST_BYTES = 1 << 25  # of `run.json`; one of 1,000 ranks has a quarter of that
_REP = re.compile("rep=(0|[1-9][0-9]{0,8})")

Ns = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]  # of a repetition, a rank, a process of ours

State = Literal["running", "complete", "partial", "failed"]


class Warn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something the user should know about the run: `code` is stable, `message` is for people."""

    code: str
    message: str
    rep: Number | None = None
    rank: Number | None = None


class NotMeasured(msgspec.Struct, kw_only=True):
    """What the run does not hold, and why."""

    what: str
    why: str


class Rank(msgspec.Struct, kw_only=True):
    """One process of the job within one repetition.

    `zero_realtime_ns` and `zero_monotonic_ns` are the two clocks at the repetition's zero, as this process saw them.
    `missing_steps_s` and `missing_queue_s` bound what was lost at the end, in seconds; None: nothing is known to be.
    `last`: what it was in at its end, in a command that did not end well. `hooks`: `compiled` or `python`.
    """

    rank: Number
    pid: Ns
    host: str
    python: str | None = None
    mindspore: str | None = None
    hooks: str | None = None
    zero_realtime_ns: Ns
    zero_monotonic_ns: Ns
    ended: Literal["normal", "lost"] = "normal"
    step_evidence: str | None = None
    evidence_counts: dict[str, Count] = {}
    missing_steps_s: float | None = None
    missing_queue_s: float | None = None
    last: Last | None = None


class Failure(msgspec.Struct, kw_only=True):
    """The exception that ended a process: its last line, where in the program's own code, and the traceback's end."""

    pid: Ns
    error: str
    place: str | None = None
    code: str | None = None
    lines: list[str] = []


class Rep(msgspec.Struct, kw_only=True):
    """One execution of the command. `exit_code` is negative for a signal (as in `subprocess`); None when unknown.

    `oom_kills`: processes that the kernel ended for lack of memory meanwhile, of the job's control group where that
    tells, else of the machine; None: it does not tell. `cpu_s`: CPU time that the command and those that it waited for
    had used; `cpu_limit_s`: how much a process was allowed (`ulimit -t`); None: no limit.
    `calibration_ns`: how fast the machine was just before (`fingerprint.calibration_ns`).
    """

    rep: Number
    zero_realtime_ns: Ns
    zero_monotonic_ns: Ns
    dur_ns: Ns | None = None
    exit_code: Annotated[int, msgspec.Meta(gt=-(1 << 31), lt=1 << 32)] | None = None
    failure: Failure | None = None
    oom_kills: Count | None = None
    cpu_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    cpu_limit_s: Count | None = None
    calibration_ns: Count | None = None
    ranks: list[Rank] = []


class Part(msgspec.Struct, kw_only=True):
    """A Parquet file as it was written: its size, 16 digits of the SHA-256 of its footer, and the SHA-256 of it all."""

    bytes: Count
    footer: str
    sha256: Sha256


class Earlier(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a run held before its last repetition was added to it."""

    state: State = "complete"
    reason_facts: Note | None = None
    tables: dict[str, Count] = {}
    warnings: list[Warn] = []


class Manifest(msgspec.Struct, kw_only=True):
    """What `run.json` holds. `parts`: the files of all tables by name; None in runs of an older pipeprof.

    `reason_facts` says why it is partial or failed, as a code with values.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    state: State = "running"
    reason_facts: Note | None = None
    source: str = "collect"
    command: list[str] = []
    workdir: str | None = None
    started_at: str
    ended_at: str | None = None
    pipeprof_version: str
    launcher_pid: Number | None = None
    launcher_start: float | None = None
    git: dict[str, Any] | None = None
    job: str | None = None
    options: dict[str, Any] = {}
    fingerprint: dict[str, Any] = {}
    reps: list[Rep] = []
    tables: dict[str, Count] = {}
    parts: dict[PartName, Part] | None = None
    not_measured: list[NotMeasured] = []
    warnings: list[Warn] = []
    earlier: Earlier | None = None

    @property
    def reason(self) -> str | None:
        """Why it is partial or failed, in words."""
        return None if self.reason_facts is None else sentence(self.reason_facts)

    def decide(self, state: State, why: Note | None = None) -> None:
        """Set the state with its reason."""
        self.state, self.reason_facts = state, why

    def begin_again(self) -> None:
        """A repetition is being added: keep what there was before it."""
        self.earlier = Earlier(
            state=self.state, reason_facts=self.reason_facts, tables=dict(self.tables), warnings=list(self.warnings),
        )  # fmt: skip
        self.decide("running")

    def take_back(self, before: Earlier) -> None:
        """The repetition that was being added left nothing: the run is as before."""
        self.take_state(before)
        self.tables, self.warnings = dict(before.tables), list(before.warnings)
        self.earlier = self.launcher_pid = self.launcher_start = None

    def take_state(self, before: Earlier) -> None:
        """The state of earlier repetitions counts."""
        self.decide(before.state, before.reason_facts)

    def warn(self, code: str, message: str, *, rep: int | None = None, rank: int | None = None) -> None:
        """Add a warning once."""
        entry = Warn(code=code, message=message, rep=rep, rank=rank)
        if entry not in self.warnings:
            self.warnings.append(entry)


def new_run_id() -> str:
    """Sortable by time, unique across machines: `20261121T085959-4f3a9c`."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + secrets.token_hex(3)


class Share(NamedTuple):
    """The rows of one rank of one repetition in a Parquet file of a run; a compact file holds those of all ranks."""

    path: Path
    rep: int
    rank: int

    @property
    def is_compact(self) -> bool:
        """Whether the file has the columns `rep` and `rank`, and rows of others, too."""
        return is_compact(self.path)


def is_compact(path: Path) -> bool:
    """Whether a file of a table holds the rows of all ranks."""
    return path.name == COMPACT


def is_part_name(name: str) -> bool:
    """Whether a table can have such a file: `step/rows.parquet`, `step/rep=0/rank=3/part-00000.parquet`."""
    table, _, rest = name.partition("/")
    return table in BY_NAME and is_table_file(rest)


class Run:
    """A run folder and its manifest."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @property
    def name(self) -> str:
        """What a user calls the run: its path, or the URL that it was copied from."""
        return origin_of(self.path) or str(self.path)

    @property
    def spool(self) -> Path:
        """Where the recorded process writes until its data is converted."""
        return self.path / SPOOL

    @property
    def reserve(self) -> Path:
        """A file that holds space for `run.json` and the exit status when the disk is full; removed to use it."""
        return self.spool / "reserve"

    def is_settled(self) -> bool:
        """Whether the tables hold all that the spool does: there is nothing to recover."""
        manifest = self.manifest
        if manifest.state == "running":
            return False
        if not self.spool.is_dir():
            return True
        if manifest.options.get(CUT) and os.environ.get(limits.BYTES):
            return False  # what was left out may be read now
        kept = manifest.options.get("keep_spool") or manifest.options.get(CUT)
        return bool(kept and not manifest.options.get(UNFINISHED))

    def spooled_reps(self) -> list[int]:
        """Repetitions that the spool holds, in order; folders of other names, and links, are none of ours."""
        paths = (path for path in self.spool.glob("rep=*") if _REP.fullmatch(path.name))
        return sorted(int(path.name.partition("=")[2]) for path in paths if path.is_dir() and not path.is_symlink())

    def files(self, table: str, place: str = EVERYWHERE) -> list[Path]:
        """The Parquet files of a table, in a stable order; empty when the run does not have it.

        Of a table that the manifest notes as compact the one file, whatever else its folder holds. `place`: of other
        tables the files of one rank of one repetition alone, as `rep=0/rank=7`.
        """
        return [self.path / name for name in self.names(table, place)]

    def names(self, table: str, place: str = EVERYWHERE) -> list[str]:
        """As `files`, by their names in the run: `step/rep=0/rank=0/part-00000.parquet`."""
        if self._is_compact(table):
            return [name for name in [f"{table}/{COMPACT}"] if os.path.lexists(self.path / name)]
        return sorted(self._found(table, place))

    def has(self, table: str) -> bool:
        """Whether there is any file of a table."""
        return bool(self.names(table)) if self._is_compact(table) else next(self._found(table), None) is not None

    def partitions(self, table: str) -> list[Path]:
        """The files of a table as they are recorded: some for each rank of each repetition."""
        return [self.path / name for name in sorted(self._found(table))]

    def _found(self, table: str, place: str = EVERYWHERE) -> Iterator[str]:
        root = f"{os.fspath(self.path)}/{BY_NAME[table].name}"
        reps, _, ranks = place.partition("/")
        for rep in _matching(root, reps):
            for rank in _matching(f"{root}/{rep}", ranks):
                for part in _matching(f"{root}/{rep}/{rank}", "part-*"):
                    if is_rank_part(f"{rep}/{rank}/{part}"):
                        yield f"{table}/{rep}/{rank}/{part}"

    def _is_compact(self, table: str) -> bool:
        return f"{table}/{COMPACT}" in (self.manifest.parts or {})

    def shares(self, table: str, rep: int, rank: int) -> list[Share]:
        """Where the rows of one rank of one repetition are; empty when no file can hold any."""
        return [Share(path, rep, rank) for path in self.files(table, f"rep={rep}/rank={rank}")]

    def save(self) -> None:
        """Write the manifest: to a temporary name, then renamed, so that it is whole at every moment.

        Raises RunError when it cannot be written; the old one is still whole then.
        """
        try:
            encoded = msgspec.json.encode(self.manifest)
        except UnicodeEncodeError:  # a name that is bytes and no text
            encoded = msgspec.json.encode(printable_all(msgspec.to_builtins(self.manifest)))
        text = msgspec.json.format(encoded, indent=2)
        try:
            with replacing(self.path / MANIFEST, durable=True) as temporary:
                temporary.write_bytes(text + b"\n")
        except OSError as error:
            raise RunError(
                f"cannot write `{self.path / MANIFEST}`: {error.strerror}", "free some space, then open the run again"
            ) from error


def _matching(folder: str, wanted: str) -> list[str]:
    """The names in a folder that begin as `wanted` does before its star; without a star, `wanted` alone."""
    begin, star, _ = wanted.partition("*")
    if not star:
        return [wanted]
    try:
        return [name for name in os.listdir(folder) if name.startswith(begin)]  # noqa: PTH208 - a third of the time
    except OSError:
        return []


def load(path: str | os.PathLike[str]) -> Run:
    """Open a run folder as it lies on disk.

    Raises RunError when the folder is not a run, its manifest is damaged, or a newer pipeprof wrote it.
    """
    folder = Path(path)
    manifest = folder / MANIFEST
    try:
        text = read_file(manifest, MOST_BYTES, inside=folder)
    except OSError as error:
        raise _not_read(folder, manifest, error) from error
    try:
        upgrade = "upgrade pipeprof: `pip install -U pipeprof`"
        written = decode_document(text, Manifest, SCHEMA_VERSION, str(manifest), upgrade)
        msgspec.convert({"fingerprint": written.fingerprint, "options": written.options}, _Known)
        return Run(folder, written)
    except BAD_JSON as error:
        raise RunError(
            f"damaged manifest `{manifest}`: {error}", "restore the file, or collect the run again"
        ) from error


def _not_read(folder: Path, manifest: Path, error: OSError) -> RunError:
    if not folder.exists():
        hint = did_you_mean(folder.name, near_names(folder.name, _names_beside(folder)))
        return RunError(
            f"no such run: `{folder}`", hint or "record one with `pipeprof collect -o RUN -- python train.py`"
        )
    if _is_missing(manifest):
        content = "a folder without `run.json`" if folder.is_dir() else "a file"
        return RunError(
            f"`{folder}` is not a pipeprof run: found {content}", "give the folder that `pipeprof collect` made"
        )
    return RunError(f"cannot read `{manifest}`: {error.strerror}", "restore the file")


def _is_missing(path: Path) -> bool:
    """Whether nothing is there, not even a link; of what may not be looked at that is not known."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _names_beside(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.parent.iterdir() if path.joinpath(MANIFEST).is_file()]
    except OSError:
        return []


class _Machine(msgspec.Struct):
    cpu_cores: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None
    memory_bytes: Annotated[float, msgspec.Meta(ge=0, le=1e18)] | None = None
    environment: dict[str, str | None] = {}
    host: str | None = None
    mode: str | None = None


class _Options(msgspec.Struct):
    fp_point: str | None = None
    bp_point: str | None = None
    ops: str | None = None
    points: dict[str, dict[str, Any]] = {}


class _Known(msgspec.Struct):
    """The entries that something is done with; others are shown as they are."""

    fingerprint: _Machine
    options: _Options
