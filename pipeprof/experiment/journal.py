"""What the sessions of all experiments have in common on disk: `session.json` is whole at every moment.

A repetition is entered before it starts and confirmed when it is over, so that after a kill at any moment what is
complete is known.
"""

from __future__ import annotations

import contextlib
import fcntl
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.runs import write_json
from pipeprof.record.document import FileName, read_document
from pipeprof.record.plain_file import refuse_links_out, remove
from pipeprof.record.run import new_run_id
from pipeprof.units import utc_now
from pipeprof.verdict.gate.policy import differences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SESSION, LOCK = "session.json", ".lock"
DEPTH = 3  # of the folders of runs: `trial-3/rows/a0`
USERS = ("artefacts", "tree-base", "tree-new")  # folders for what the user's commands and commits hold

Conditions = tuple["Mapping[str, Any]", "str | None"]  # fingerprint and job of here and now


class Repetition(msgspec.Struct, kw_only=True):
    """One repetition: its folder's name, and seconds from start to exit; `running` until it is confirmed."""

    name: FileName
    state: str = "running"
    seconds: float | None = None


class Journal(msgspec.Struct, kw_only=True):
    """What every session notes of itself: when and where it was begun, and how often it was gone on with."""

    session_id: str = msgspec.field(default_factory=new_run_id)
    started_at: str = msgspec.field(default_factory=utc_now)
    starts: int = 0
    fingerprint: dict[str, Any] = {}
    job: str | None = None

    def begin(self, folder: Path, conditions: Conditions) -> None:
        """Note the conditions, and write it. Raises MeasureError when it cannot be written."""
        self.fingerprint, self.job = dict(conditions[0]), conditions[1]
        self.save(folder)

    def refuse_elsewhere(self, what: str, conditions: Conditions, hint: str, *, in_a_job: bool) -> None:
        """Raises MeasureError when it was begun on another machine, or, where it goes on `in_a_job`, in another one."""
        names = [entry["name"] for entry in differences(self.fingerprint, conditions[0])]
        if names:
            raise MeasureError(f"{what} was begun under different conditions: {', '.join(names)}", hint)
        if in_a_job and self.job != conditions[1]:
            raise MeasureError(f"{what} was begun in another job, or before this machine's last start", hint)

    def save(self, folder: Path) -> None:
        """Write `session.json`, whole. Raises MeasureError when it cannot be written."""
        write_json(folder / SESSION, msgspec.to_builtins(self))


def refuse_links(folder: Path) -> None:
    """Raises RunError when a link leads out of the folder of a session: nothing is written or removed through one."""
    refuse_links_out(folder, DEPTH, USERS)


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


AnySession = TypeVar("AnySession", bound=msgspec.Struct)
AnyRepetition = TypeVar("AnyRepetition", bound=Repetition)


def saved(folder: Path, kind: type[AnySession], version: int, what: str, hint: str) -> AnySession | None:
    """The session of a folder; None when it has none. Raises RunError for one that cannot be read."""
    path = folder / SESSION
    return read_document(path, kind, version, what, hint) if path.is_file() else None


def spent(repetitions: Iterable[Repetition]) -> float:
    """Seconds that all of them took, discarded and failed ones too."""
    return sum(one.seconds or 0.0 for one in repetitions)


def unconfirmed(repetitions: Iterable[Repetition]) -> list[str]:
    """Names of entries that were begun and never confirmed: the process was killed in them."""
    return [one.name for one in repetitions if one.state == "running"]


def incomplete(folder: Path, repetitions: Iterable[AnyRepetition]) -> list[AnyRepetition]:
    """Those that were not confirmed, since the process was killed meanwhile; their files are gone."""
    cut_off = [one for one in repetitions if one.state == "running"]
    for one in cut_off:
        remove(folder / one.name)
        for ending in ("log", "pid"):
            remove(folder / f"{one.name}.{ending}")
    return cut_off
