"""One recording: the run folder, its manifest, and the command N times in fresh processes."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from pipeprof import __version__
from pipeprof.collect import fingerprint
from pipeprof.collect.launch import Outcome, ProbeOptions, command_path, run_command
from pipeprof.errors import UsageError
from pipeprof.record.run import MANIFEST, Manifest, Run, new_run_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESERVE_BYTES = 16 * 1024
SCHEDULE_FIELDS = ("skip_first", "wait", "warmup", "active", "repeat")


def create_run(path: Path, command: Sequence[str], options: dict[str, Any], *, force: bool) -> Run:
    """Make the run folder and its first manifest.

    Raises UsageError when the command cannot be found, the folder exists (and is not a run that `force` may replace),
    or it cannot be written.
    """
    command_path(command)
    make_folder(path, force=force)
    return new_run(path, command, options, surroundings())


@dataclass(frozen=True)
class Surroundings:
    """What does not change while a process runs: the repository's state, the CI job, the machine."""

    git: dict[str, Any] | None
    job: str | None
    machine: dict[str, Any]


def surroundings() -> Surroundings:
    """Look at the repository, the job and the machine; takes some milliseconds."""
    return Surroundings(fingerprint.git_state(str(Path.cwd())), fingerprint.job(), fingerprint.machine())


def new_run(
    path: Path, command: Sequence[str], options: dict[str, Any], around: Surroundings, source: str = "collect"
) -> Run:
    """Write the first manifest of a run whose folder exists. Raises RunError when it cannot be written."""
    now = dt.datetime.now(dt.timezone.utc)
    launcher = psutil.Process()
    manifest = Manifest(
        run_id=new_run_id(),
        source=source,
        command=fingerprint.without_secrets(command),
        workdir=str(Path.cwd()),
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
) -> list[Outcome]:
    """Run the command `reps` times, or until it fails or is interrupted; returns how each ended."""
    _make_reserve(run)
    outcomes = []
    for rep in range(reps):
        spool = run.spool / f"rep={rep}"
        spool.mkdir(parents=True)
        started(rep)
        outcomes.append(run_command(command, spool, probe, host_interval_s))
        if outcomes[-1].status != 0 or outcomes[-1].interrupted:
            break
    return outcomes


def parse_schedule(text: str) -> dict[str, int]:
    """`skip_first=10,wait=5,warmup=1,active=3,repeat=2` as a mapping; `active` is needed, the rest default to 0.

    Raises UsageError that says which part is wrong.
    """
    schedule = dict.fromkeys(SCHEDULE_FIELDS, 0)
    given = set()
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name not in SCHEDULE_FIELDS or not equals or not value.strip().isdigit():
            raise UsageError(
                f"cannot read `{part.strip()}` in the schedule, expected name=number "
                f"with one of {', '.join(SCHEDULE_FIELDS)}",
                "for example --schedule skip_first=10,wait=5,warmup=1,active=3,repeat=2",
            )
        schedule[name] = int(value)
        given.add(name)
    if schedule["active"] < 1:
        raise UsageError("the schedule records nothing: active is 0", "add active=3 to --schedule")
    return schedule


def default_name(prefix: str = "pipeprof-run-") -> Path:
    """A new folder in the working directory, named for the time."""
    stem = prefix + dt.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    path, number = Path(stem), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}")
    return path


def _make_reserve(run: Run) -> None:
    """Space for the last words of a recording that filled its disk."""
    with contextlib.suppress(OSError):
        run.spool.mkdir()
        run.reserve.write_bytes(bytes(RESERVE_BYTES))


def make_folder(path: Path, *, force: bool) -> None:
    """Make an empty folder. Raises UsageError when it exists (and is no run that `force` may replace)."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        if not force:
            raise UsageError(f"`{path}` exists", "give a new name with -o, or --force to replace the run")
        if not path.joinpath(MANIFEST).is_file():
            raise UsageError(
                f"`{path}` is not a pipeprof run, so --force does not replace it", "give a new name with -o"
            )
        shutil.rmtree(path.resolve())
    try:
        path.resolve().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {error.strerror}", "choose another folder with -o") from error
    if not os.access(path, os.W_OK):
        raise UsageError(f"cannot write `{path}`: permission denied", "choose another folder with -o")
