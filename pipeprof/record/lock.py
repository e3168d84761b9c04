"""Who is writing a run, and whether that is still there.

The file `lock` in its folder says so, from the first moment of a recording until it has its tables.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil

from pipeprof.errors import RunError
from pipeprof.record.document import BAD_JSON
from pipeprof.record.machine import host_name
from pipeprof.record.plain_file import file_end, refuse_links_out
from pipeprof.record.run import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeprof.record.run import Run

LOCK = "lock"
QUIET_S = 60.0  # a recording writes twice a second: after this long without a word from elsewhere it is over
_TABLES, _SPOOL = 3, "spool"  # levels of folders that a run has; the spool is only read, and as damaged input is
_LONGEST = 4096  # bytes; more than any lock has
_NO_MORE = (b"Z", b"X")  # states of a process that has ended, though nobody has asked how


class Lock(msgspec.Struct, kw_only=True, frozen=True):
    """Which process writes which run.

    `start_ticks`: when it started, in clock ticks since boot, which no change of the clock moves; None where the
    system does not say. `place`: a hash of host, boot and process namespace; numbers of processes mean nothing outside.
    """

    run_id: str
    pid: int
    start_ticks: int | None
    place: str


def is_held(folder: Path) -> bool | None:
    """Whether the process that wrote the lock runs; None without a lock.

    A process of another host, container or boot cannot be looked for: it counts as running as long as something in
    the folder is written to, and so does the one of a lock that cannot be read.
    """
    lock = _read(folder)
    if lock is None:
        return None
    if isinstance(lock, Lock) and lock.place == _place() and lock.start_ticks is not None:
        return start_ticks(lock.pid) == lock.start_ticks
    return last_change(folder) > time.time() - QUIET_S


def is_there(folder: Path) -> bool:
    """Whether there is a lock that can be read: another program's file of that name is none."""
    return isinstance(_read(folder), Lock)


def is_mine(folder: Path, run_id: str) -> bool:
    """Whether this process holds the folder, for this run."""
    return _read(folder) == _own(run_id)


@contextlib.contextmanager
def deciding(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes from taking the folder, while this one looks whether it may.

    Raises RunError when another one is at it, unless it is to `wait`. A file system that cannot lock folders is left
    with `take` alone, which refuses a folder that another process took meanwhile, unless both replace the same dead
    lock.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(f"another pipeprof is opening `{folder}` at this moment", "try again") from error
        except OSError:  # network file systems that lock no folders
            pass
        yield
    finally:
        os.close(handle)


def take(folder: Path, run_id: str) -> None:
    """Write this process's lock in place of one whose process is gone.

    Raises RunError when it cannot be written, and where a link leads out of the folder: what holds a folder writes into
    its tables, and removes them.
    """
    refuse_links_out(folder, _TABLES, (_SPOOL,))
    path = folder / LOCK
    try:
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.write(handle, msgspec.json.encode(_own(run_id)) + b"\n")
        finally:
            os.close(handle)
    except FileExistsError as error:
        raise RunError(f"another pipeprof has just taken `{folder}`", "try again") from error
    except OSError as error:
        raise RunError(
            f"cannot write `{path}`: {error.strerror}", "the folder of a run has to be writable until it is complete"
        ) from error


def release(folder: Path, run_id: str) -> None:
    """Remove the lock if it is this process's. Never raises: a lock without its process holds nothing."""
    with contextlib.suppress(OSError):
        if is_mine(folder, run_id):
            folder.joinpath(LOCK).unlink()


@contextlib.contextmanager
def released_if_it_fails(folder: Path, run_id: str) -> Iterator[None]:
    """Let go of a folder that was taken, where what follows goes wrong: a long-lived process could not use it again."""
    try:
        yield
    except BaseException:
        release(folder, run_id)
        raise


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it is gone, or has ended and nobody reaped it."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return None if state in _NO_MORE else int(fields[18])
    except (OSError, ValueError, IndexError):
        return None


def last_change(folder: Path) -> float:
    """When something in a folder was written last, in seconds since 1970; 0 when it is empty."""
    last = 0.0
    for path in folder.rglob("*"):
        try:
            last = max(last, path.stat().st_mtime)
        except OSError:  # just removed
            continue
    return last


def _own(run_id: str) -> Lock:
    return Lock(run_id=run_id, pid=os.getpid(), start_ticks=start_ticks(os.getpid()), place=_place())


def _place() -> str:
    facts = [platform.node()]
    with contextlib.suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        facts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - its target is no path
    return hashlib.sha256(" ".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _read(folder: Path) -> Lock | bytes | None:
    """The lock; its first bytes when they say nothing (it is being written, or damaged); None without one."""
    try:
        handle = os.open(folder / LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError:
        return b""
    try:
        text = os.read(handle, _LONGEST)
        return msgspec.json.decode(text, type=Lock)
    except OSError:
        return b""
    except BAD_JSON:
        return text
    finally:
        os.close(handle)


_ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)  # nobody has asked how: pid 1 of a container may never do so
_HELLO = re.compile(rb'\{"pid": (\d{1,9})\b')
_HELLO_BYTES = 1 << 18


def being_recorded(folder: Path) -> bool:
    """Whether something is recorded or recovered into a folder now; also by a process whose launcher is gone."""
    try:
        run = load(folder)
    except (RunError, OSError):
        return bool(is_held(folder))  # a recording that has no manifest yet
    if run.manifest.state == "running":
        return is_running(run)
    return bool(is_held(run.path) or _recorded_alive(run))


def is_running(run: Run) -> bool:
    """Whether a run that its manifest calls `running` is recorded now, also by a process whose launcher is gone."""
    return launcher_alive(run) or bool(_recorded_alive(run))


def launcher_alive(run: Run) -> bool:
    """Whether the process that writes the run is there; another one with its number does not count, nor does a zombie.

    By the run's lock; of a run without one (made by an older pipeprof) by its manifest.
    """
    held = is_held(run.path)
    if held is not None:
        return held
    manifest = run.manifest
    recorded_on = manifest.fingerprint.get("host")
    if recorded_on is not None and recorded_on != host_name():
        return last_change(run.spool) > time.time() - QUIET_S
    try:
        process = psutil.Process(manifest.launcher_pid or 0)
        began = process.create_time()
        return (
            manifest.launcher_start is not None
            and abs(began - manifest.launcher_start) < 1.0
            and process.status() not in _ENDED
        )
    except psutil.Error:
        return False


def processes_alive(run: Run) -> list[int]:
    """Process ids of recorded processes that still run; of a repetition without any, those of watched Pythons.

    A training in the background has recorded nothing yet while it imports MindSpore.
    """
    reps = [rep for rep in run.spool.glob("rep=*") if not any(rep.glob("proc-*"))]
    watched = {int(pid) for rep in reps for pid in _watched(rep) if _runs(pid, rep)}
    return sorted(watched | _recorded_alive(run))


def _recorded_alive(run: Run) -> set[int]:
    """Those that have recorded something: another Python that the command left behind keeps no folder occupied."""
    pids = [(path.name.split("-")[1], path.parent) for path in run.spool.glob("rep=*/proc-*")]
    return {int(pid) for pid, rep in pids if _runs(pid, rep)}


def _watched(rep: Path) -> list[str]:
    """Process ids of the Pythons that the probe has entered, the newest of very many."""
    try:
        data, _ = file_end(rep / "hello.jsonl", _HELLO_BYTES, inside=rep)
    except OSError:
        return []
    return [pid.decode() for pid in _HELLO.findall(data)]


def _runs(pid: str, rep: Path) -> bool:
    """Whether a process runs, and is of this repetition."""
    try:
        process = psutil.Process(int(pid))
        mine = str(rep.resolve()) == process.environ().get("PIPEPROF_SPOOL")
        return mine and process.status() not in _ENDED
    except (psutil.Error, ValueError, OverflowError):
        return False
