"""One recording: the run folder, its manifest, and the command N times in fresh processes."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import psutil

from pipeprof.collect import fingerprint
from pipeprof.collect.launch import Exit, ProbeOptions, command_path, run_command
from pipeprof.collect.probe.redact import without_secrets
from pipeprof.errors import RunError, UsageError
from pipeprof.record import lock
from pipeprof.record.document import BAD_JSON, COMPACT
from pipeprof.record.lock import being_recorded
from pipeprof.record.own_files import refuse_foreign
from pipeprof.record.plain_file import read_file
from pipeprof.record.run import LAUNCHER, MANIFEST, MOST_BYTES, Manifest, Run, new_run_id
from pipeprof.record.text import printable, printable_all, shortened
from pipeprof.version import __version__

_AS_MANY_AT_ONCE = 16  # recordings that begin in one folder in one second
LONGEST_PATH = 3800  # bytes, of 4095 that a path may have: files in the run need the rest
RESERVE_BYTES = 16 * 1024
SCHEDULE_FIELDS = ("skip_first", "wait", "warmup", "active", "repeat")
_NUMBER = re.compile("[0-9]{1,9}")


def create_run(path: Path | None, command: Sequence[str], options: dict[str, Any], *, force: bool) -> Run:
    """Make the run folder, which is this process's until the run is finished, and its first manifest.

    Without a path in a new folder, named for the time. Raises UsageError when the command cannot be found, the folder
    exists (and is not a run that `force` may replace), or it cannot be written.
    """
    command_path(command)
    path, run_id = _claim_new_name() if path is None else (path, claim_folder(path, force=force))
    return new_run(path, run_id, command, printable_all(options), surroundings())


@dataclass(frozen=True)
class Surroundings:
    """What does not change while a process runs: the repository's state, the CI job, the machine."""

    git: dict[str, Any] | None
    job: str | None
    machine: dict[str, Any]


def surroundings() -> Surroundings:
    """Look at the repository, the job and the machine; takes some milliseconds."""
    return Surroundings(fingerprint.git_state(Path.cwd()), fingerprint.job(), fingerprint.machine())


def new_run(
    path: Path,
    run_id: str,
    command: Sequence[str],
    options: dict[str, Any],
    around: Surroundings,
    source: str = "collect",
) -> Run:
    """Write the first manifest of a run whose folder is claimed. Raises RunError when it cannot be written."""
    now = dt.datetime.now(dt.timezone.utc)
    launcher = psutil.Process()
    manifest = Manifest(
        run_id=run_id,
        source=source,
        command=printable_all(without_secrets(command)),
        workdir=printable(str(Path.cwd())),
        started_at=now.isoformat(timespec="seconds"),
        pipeprof_version=__version__,
        launcher_pid=launcher.pid,
        launcher_start=launcher.create_time(),
        git=around.git,
        job=around.job,
        options=options,
        fingerprint=dict(around.machine),
    )
    run = Run(path, manifest)
    run.save()
    return run


def record(
    run: Run,
    command: Sequence[str],
    probe: ProbeOptions,
    *,
    reps: int,
    host_interval_s: float,
    started: Callable[[int], None] = lambda _rep: None,
) -> list[Exit]:
    """Run the command `reps` times, or until it fails or is interrupted; returns how each ended.

    No repetition begins in a folder that was deleted or replaced meanwhile, or cannot be written, nor where the command
    cannot be started. A warning of the run says why there are fewer than that. When the first one cannot begin, raises
    UsageError, and removes what `create_run` has made.
    """
    _make_reserve(run)
    probe = replace(probe, run_id=run.manifest.run_id)
    outcomes: list[Exit] = []
    early = ""
    while len(outcomes) < reps and not early:
        rep = len(outcomes)
        try:
            spool = _make_spool(run, rep)
            started(rep)
            outcomes.append(run_command(command, spool, probe, host_interval_s))
        except UsageError as error:
            _take_back(run, rep)
            if not rep:
                raise
            early = error.message
            break
        if outcomes[-1].status != 0:
            break
        early = "interrupted" if outcomes[-1].interrupted else ""
    if len(outcomes) < reps and early:
        run.manifest.warn(LAUNCHER, f"only {len(outcomes)} of {reps} repetitions were made: {early}")
    return outcomes


def _make_spool(run: Run, rep: int) -> Path:
    """The folder of a repetition in the spool. Raises UsageError that says why it cannot begin."""
    if rep and not lock.is_mine(run.path, run.manifest.run_id):
        what = f"the file `{lock.LOCK}`" if run.path.joinpath(MANIFEST).is_file() else "the folder of the run"
        raise UsageError(f"{what} was removed or replaced meanwhile")
    spool = run.spool / f"rep={rep}"
    try:
        spool.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"cannot write `{spool}`: {error.strerror}", "choose another folder with -o") from error
    return spool


def _take_back(run: Run, rep: int) -> None:
    """Remove what was made for a repetition that did not begin; of the first one, the run itself."""
    with contextlib.suppress(OSError):
        if lock.is_mine(run.path, run.manifest.run_id):
            shutil.rmtree(run.spool / f"rep={rep}", ignore_errors=True)
            if not rep:
                _empty(run.path)
                lock.release(run.path, run.manifest.run_id)
                run.path.rmdir()


def parse_schedule(text: str) -> dict[str, int]:
    """`skip_first=10,wait=5,warmup=1,active=3,repeat=2` as a mapping; `active` is needed, the rest default to 0.

    Raises UsageError that says which part is wrong.
    """
    schedule: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name not in SCHEDULE_FIELDS or not _NUMBER.fullmatch(value.strip()):
            raise UsageError(
                f"cannot read `{shortened(part.strip())}` in the schedule, expected name=number "
                f"with one of {', '.join(SCHEDULE_FIELDS)}",
                "for example --schedule skip_first=10,wait=5,warmup=1,active=3,repeat=2",
            )
        if name in schedule:
            raise UsageError(f"the schedule says `{name}` twice", "leave one of them out")
        schedule[name] = int(value)
    if not schedule.get("active"):
        raise UsageError("the schedule records nothing: active is 0", "add active=3 to --schedule")
    return dict.fromkeys(SCHEDULE_FIELDS, 0) | schedule


def default_name(prefix: str = "pipeprof-run-", ending: str = "") -> Path:
    """A new folder in the working directory, named for the time."""
    stem = prefix + dt.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    path, number = Path(stem + ending), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}{ending}")
    return path


def _make_reserve(run: Run) -> None:
    """Space for the last words of a recording that filled its disk."""
    with contextlib.suppress(OSError):
        run.spool.mkdir()
        run.reserve.write_bytes(bytes(RESERVE_BYTES))


def claim_folder(path: Path, *, force: bool) -> str:
    """Make an empty folder that this process holds (record/lock.py), and give the id of the run that it is for.

    Raises UsageError when something is there (and is no run that `force` may replace), and when it cannot be written.
    What is being recorded is never replaced.
    """
    run_id = new_run_id()
    try:
        _refuse_what_is_there(path, force=force)
        folder = path.resolve()
        _refuse_long(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise UsageError(f"cannot write `{path}`: permission denied", "choose another folder with -o")
        with lock.deciding(folder):
            _refuse_what_is_there(path, force=force)  # again: nobody can be faster now
            lock.take(folder, run_id)
            if force:
                with lock.released_if_it_fails(folder, run_id):
                    _empty(folder)
    except RunError as error:
        raise UsageError(error.message, "give a new name with -o") from error
    except OSError as error:
        shown = shortened(str(path))
        raise UsageError(f"cannot write `{shown}`: {error.strerror}", "choose another folder with -o") from error
    return run_id


def _refuse_long(folder: Path) -> None:
    """Raises UsageError for a path that leaves no room for those of the files in it."""
    length = len(os.fsencode(folder))
    if length > LONGEST_PATH:
        raise UsageError(
            f"the path of the run is too long: `{shortened(str(folder))}` has {length:,} bytes, "
            f"at most {LONGEST_PATH:,} can be used",
            "choose another folder with -o",
        )


def _claim_new_name() -> tuple[Path, str]:
    """A folder of the default name that no other recording, begun at the same moment, has; and the run's id."""
    path = default_name()
    for _ in range(_AS_MANY_AT_ONCE):
        with contextlib.suppress(UsageError):
            return path, claim_folder(path, force=False)
        path = default_name()
    return path, claim_folder(path, force=False)  # whatever is wrong, it is not another recording


def _refuse_what_is_there(path: Path, *, force: bool) -> None:
    """Raises UsageError unless a run may be made at the path. The lock of a recording that was killed is nothing."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if path.is_dir() and being_recorded(path):
        raise UsageError(f"`{path}` is being recorded", "wait until that has ended, or give a new name with -o")
    if path.is_dir() and all(entry.name == lock.LOCK for entry in path.iterdir()):
        return
    if not force:
        raise UsageError(f"`{path}` exists", "give a new name with -o, or --force to replace the run")
    if not is_run(path):
        raise UsageError(f"`{path}` is not a pipeprof run, so --force does not replace it", "give a new name with -o")
    refuse_foreign(path, "give a new name with -o")


def is_run(folder: Path) -> bool:
    """Whether a folder can only be a run, so that it may be replaced; other programs have files named run.json, too.

    Where the manifest is damaged the folders beside it tell; where it is not written yet, the lock.
    """
    if lock.is_there(folder):
        return True
    try:
        facts = msgspec.json.decode(read_file(folder / MANIFEST, MOST_BYTES))
    except FileNotFoundError:
        return False
    except (OSError, *BAD_JSON):
        return any(any(folder.glob(f"*/{inside}")) for inside in ("rep=*", COMPACT))
    return isinstance(facts, dict) and {"run_id", "pipeprof_version"} <= facts.keys()


def _empty(folder: Path) -> None:
    """Remove what is in a folder but the lock, the manifest first: half a run must not look like a whole one."""
    folder.joinpath(MANIFEST).unlink(missing_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != lock.LOCK:
            entry.unlink()
