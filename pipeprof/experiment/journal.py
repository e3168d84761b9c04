"""What the sessions of all experiments have in common on disk: `session.json` is whole at every moment.

A repetition is entered before it starts and confirmed when it is over, so that after a kill at any moment what is
complete is known.
"""

from __future__ import annotations

import contextlib
import fcntl
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec

from pipeprof.collect import fingerprint
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.runs import write_json
from pipeprof.record.document import FileName, read_document
from pipeprof.record.plain_file import read_file, refuse_links_out, remove
from pipeprof.record.run import new_run_id
from pipeprof.units import utc_now
from pipeprof.verdict.gate.policy import differences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    Alive = Callable[[Path], Sequence[int]]  # processes of an interrupted repetition that have not ended yet

SESSION, HISTORY, IGNORE, LOCK = "session.json", "history.jsonl", ".gitignore", ".lock"
DEPTH = 3  # of the folders of runs: `trial-3/rows/a0`
USERS = ("artefacts", "tree-base", "tree-new")  # folders for what the user's commands and commits hold


class Journal(msgspec.Struct, kw_only=True):
    """What every session notes of itself: when and where it was begun, and how often it was gone on with."""

    FILE: ClassVar[str] = SESSION

    session_id: str = msgspec.field(default_factory=new_run_id)
    started_at: str = msgspec.field(default_factory=utc_now)
    starts: int = 0
    fingerprint: dict[str, Any] = {}
    job: str | None = None

    def begin(self, folder: Path) -> None:
        """Note where and in which job it is begun, and write it. Raises MeasureError when it cannot be written."""
        self.fingerprint, self.job = fingerprint.machine(), fingerprint.job()
        self.save(folder)

    def refuse_elsewhere(self, what: str, hint: str, *, in_a_job: bool) -> None:
        """Raises MeasureError when it was begun on another machine, or, where it goes on `in_a_job`, in another one."""
        names = [entry["name"] for entry in differences(self.fingerprint, fingerprint.machine())]
        if names:
            raise MeasureError(f"{what} was begun under different conditions: {', '.join(names)}", hint)
        if in_a_job and self.job != fingerprint.job():
            raise MeasureError(f"{what} was begun in another job, or before this machine's last start", hint)

    def save(self, folder: Path) -> None:
        """Write it, whole. Raises MeasureError when it cannot be written."""
        write_json(folder / self.FILE, msgspec.to_builtins(self))


class Repetition(msgspec.Struct, kw_only=True):
    """One repetition: its folder's name, and seconds from start to exit; `running` until it is confirmed."""

    name: FileName
    state: str = "running"
    seconds: float | None = None


AnyJournal = TypeVar("AnyJournal", bound=Journal)
AnyRepetition = TypeVar("AnyRepetition", bound=Repetition)


class Repeated(Journal, Generic[AnyRepetition], kw_only=True):
    """A session that is made of repetitions."""

    repetitions: list[AnyRepetition] = []

    @property
    def spent(self) -> float:
        """Seconds that all repetitions took, discarded and failed ones too."""
        return sum(one.seconds or 0.0 for one in self.repetitions)

    def entered(self, repetition: AnyRepetition) -> AnyRepetition:
        """A new repetition, about to start."""
        self.repetitions.append(repetition)
        return repetition

    def interrupted(self, folder: Path, alive: Alive) -> list[AnyRepetition]:
        """Those that were begun and never confirmed. Raises UsageError while a process of one is still running."""
        cut_off = [one for one in self.repetitions if one.state == "running"]
        refuse_orphans(folder, [one.name for one in cut_off], alive)
        return cut_off

    def throw_away(self, folder: Path, alive: Alive) -> list[AnyRepetition]:
        """Those that were interrupted, whose files are removed. Raises as `interrupted`."""
        cut_off = self.interrupted(folder, alive)
        for one in cut_off:
            remove(folder / one.name)
            for ending in ("log", "pid"):
                remove(folder / f"{one.name}.{ending}")
        return cut_off


def saved(folder: Path, kind: type[AnyJournal], version: int, what: str, hint: str) -> AnyJournal | None:
    """The session of a folder; None when it has none. Raises RunError for one that cannot be read."""
    path = folder / kind.FILE
    return read_document(path, kind, version, what, hint) if path.is_file() else None


def refuse_orphans(folder: Path, names: Iterable[str], alive: Alive) -> None:
    """Raises UsageError when a process of one of these interrupted repetitions has not ended yet."""
    for name in names:
        processes = alive(folder / name)
        if processes:
            raise UsageError(
                f"process {processes[0]} of the interrupted repetition `{name}` is still running",
                "wait until it has ended, or end it",
            )


def refuse_links(folder: Path) -> None:
    """Raises RunError when a link leads out of the folder of a session: nothing is written or removed through one."""
    refuse_links_out(folder, DEPTH, USERS)


@contextlib.contextmanager
def session_folder(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """The folder of a session, which is made, for this process alone; who interrupts it is told how it goes on.

    Raises UsageError when another process runs it, or when it holds something else than a session.
    """
    make_session_folder(folder)
    with alone(folder):
        try:
            yield
        except KeyboardInterrupt:
            say("interrupted: run the same command again to go on from here")
            raise


def make_session_folder(folder: Path) -> None:
    """The folder, invisible to git. Raises UsageError when it holds something else than a session."""
    refuse_links(folder)
    try:
        if folder.exists() and (not folder.is_dir() or not _is_ours(folder)):
            raise UsageError(f"`{folder}` exists and holds no session", "give another folder with -o")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / IGNORE).write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write `{folder}`: {error.strerror}", "choose another folder with -o") from error


def _is_ours(folder: Path) -> bool:
    """Whether a folder is empty, or as a session leaves it: nothing of the user's is ever written over."""
    names = {path.name for path in folder.iterdir()}
    ignored = not names or (IGNORE in names and read_file(folder / IGNORE, 1 << 16) in (b"*\n", b""))
    return ignored and (bool(names & {SESSION, HISTORY}) or names <= {IGNORE, LOCK})


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other processes from measuring into a folder. Raises UsageError when one does."""
    with contextlib.ExitStack() as held:
        try:
            file = held.enter_context((folder / LOCK).open("w"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"another pipeprof measures into `{folder}`", "wait until it has ended") from error
        except OSError as error:
            raise UsageError(f"cannot lock `{folder}`: {error.strerror}", "choose another folder with -o") from error
        yield
