"""The verdict on a recording: complete, partial or failed, why, and what was not measured."""

from __future__ import annotations

import contextlib
import shutil
import signal
from typing import TYPE_CHECKING, Any

from pipeprof.errors import RunError
from pipeprof.escape import as_argument, shell_word
from pipeprof.read.spool.convert import Converted, convert_rep
from pipeprof.read.spool.process import Process, refuse_another_run, refuse_anothers_spool
from pipeprof.record import checksums, lock
from pipeprof.record.limits import BYTES
from pipeprof.record.lock import launcher_alive, processes_alive
from pipeprof.record.note import Note, note
from pipeprof.record.run import (
    CURES,
    CUT,
    LAUNCHER,
    MANIFEST,
    TRACED,
    UNFINISHED,
    UNSEEN_NS,
    Earlier,
    NotMeasured,
    Run,
    load,
)
from pipeprof.record.schema import BY_NAME
from pipeprof.units import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Manifest, Rank, State

_EXPECTED = {
    "step": "no training step was seen",
    "op": "no op window was completed",
    "queue": "no queue samples were recorded",
    "op_service": "MindSpore printed no timing lines",
    "memory": "no memory sample was taken",
    "cpu": "no CPU sample was taken",
}
_ASIDE = ".spool"  # what the spool is called while it is removed


def finish(run: Run, *, keep_spool: bool = False, progress: Callable[[str], None] = lambda _text: None) -> Run:
    """End the recording of this process: make the tables of its spool, decide the state, and let go of the folder.

    The spool is removed, but stays when something still writes to it, or when the conversion fails (on a full disk,
    say): the run is partial then, says why, and the next verb that opens it tries again. A folder that was deleted
    meanwhile is made again, for a manifest that says so. Raises RunError when the conversion failed, and when the
    folder holds another run by now, which is left alone.
    """
    try:
        there = refuse_another_run(run)
        if not run.spooled_reps():
            if there is not None and there.is_settled():
                return there  # the conversion failed before, and another process has recovered it since
            return _deleted(run)
        return _convert(run, keep_spool=keep_spool, progress=progress)
    finally:
        lock.release(run.path, run.manifest.run_id)


def open_run(path: str | Path, *, progress: Callable[[str], None] = lambda _text: None) -> Run:
    """Open a run, recovering its spool first when the recording was cut off; of one at a URL, its copy in the cache.

    Raises RunError when it is no run, is still being recorded, its spool is that of another run, or a file of a table
    was rewritten.
    """
    if isinstance(path, str) and "://" in path:  # a URL
        from pipeprof.record.run_objects import fetch  # noqa: PLC0415 - object storage is only for those who use it

        path = fetch(path, progress)
    run = load(path)
    if run.is_settled():
        if run.path.joinpath(_ASIDE).is_dir():
            shutil.rmtree(run.path / _ASIDE, ignore_errors=True)
        checksums.refuse_changed(run)
        return run
    with lock.deciding(run.path):
        _refuse_recorded(run)
        lock.take(run.path, run.manifest.run_id)
    try:
        run = load(path)  # another process may have recovered it by now
        return run if run.is_settled() else _recovered(run, progress)
    finally:
        lock.release(run.path, run.manifest.run_id)


def _refuse_recorded(run: Run) -> None:
    if lock.is_held(run.path) or (run.manifest.state == "running" and launcher_alive(run)):
        raise RunError(
            f"`{run.path}` is still being recorded, or another pipeprof recovers it", "wait until it has ended"
        )
    alive = processes_alive(run)
    if alive:
        raise RunError(
            f"`{run.path}` is still being recorded: the launcher is gone, but process {alive[0]} runs on",
            "wait until it has ended, or end it",
        )


def _recovered(run: Run, progress: Callable[[str], None]) -> Run:
    if not run.spool.is_dir():
        if run.manifest.earlier is not None:
            run.manifest.take_back(run.manifest.earlier)
        else:
            run.manifest.decide("failed", note("nothing_recorded"))
        checksums.seal(run, [])
        run.save()
        return run
    return _convert(run, keep_spool=bool(run.manifest.options.get("keep_spool")), progress=progress)


def _convert(run: Run, *, keep_spool: bool, progress: Callable[[str], None]) -> Run:
    """Convert every repetition of the spool, decide the state, save the manifest, and remove the spool."""
    reps = run.spooled_reps()
    refuse_anothers_spool(run, reps)
    manifest = run.manifest
    before = manifest.earlier or Earlier()
    of_launcher = [item for item in manifest.warnings if item.code == LAUNCHER and item not in before.warnings]
    manifest.warnings = [*before.warnings, *of_launcher]
    try:
        results = [convert_rep(run, rep, progress) for rep in reps]
        manifest.tables = dict(before.tables)
        for result in results:
            for table, rows in result.rows.items():
                manifest.tables[table] = manifest.tables.get(table, 0) + rows
        alive = processes_alive(run)
        manifest.options[UNFINISHED] = bool(alive)
        manifest.options[CUT] = any(BYTES in text for result in results for text in result.damage)
        _describe(run, results, alive)
        _decide(run, results, alive)
        if manifest.state == "complete":
            manifest.take_state(before)
        if not run.spool.is_dir():
            _remove_tables(run, reps)
            return _deleted(run)
        checksums.seal(run, reps)
        run.save()
    except RunError as error:
        _remove_tables(run, reps)
        manifest.decide("partial", note("tables_not_written", error=error.message))
        manifest.options[UNFINISHED] = True
        run.save()
        if isinstance(error.__cause__, OSError):  # what was recorded is whole: recording again would be refused
            again = f"pipeprof report {shell_word(as_argument(str(run.path)))}"
            raise RunError(
                error.message, f"free some space, then make the tables of what was recorded: {again}"
            ) from error
        raise
    if not (alive or keep_spool or manifest.options[CUT]):
        _remove_spool(run)
    return run


def _deleted(run: Run) -> Run:
    """The run whose folder, or spool, is gone: nothing that was recorded is there any more."""
    manifest = run.manifest
    what = "spool" if run.path.joinpath(MANIFEST).is_file() else "folder"
    manifest.decide("failed", note("deleted", what=what))
    if what == "folder":
        manifest.tables = {}
    manifest.ended_at = utc_now()
    try:
        run.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"{manifest.reason}: `{run.path}`, which cannot be made again: {error.strerror}", "record again"
        ) from error
    checksums.seal(run, [])
    run.save()
    return run


def _remove_spool(run: Run) -> None:
    """In one step: half a spool, left by a kill, would be read as all there was. `open_run` removes what is left."""
    aside = run.path / _ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    with contextlib.suppress(OSError):
        run.spool.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def _remove_tables(run: Run, reps: Sequence[int]) -> None:
    """Tables of a conversion that failed are incomplete; the spool has everything of these repetitions."""
    run.reserve.unlink(missing_ok=True)
    for table in BY_NAME:
        for rep in reps:
            shutil.rmtree(run.path / table / f"rep={rep}", ignore_errors=True)
    run.manifest.tables = dict((run.manifest.earlier or Earlier()).tables)
    checksums.forget(run, reps)


_MODES = {"0": "graph", "1": "pynative", "eager": "eager", "compiled": "compiled"}  # of MindSpore by its numbers


def _describe(run: Run, results: Sequence[Converted], alive: Sequence[int]) -> None:
    """Fill in what only the recorded processes knew, and what is missing."""
    manifest = run.manifest
    for result in results:
        for process in result.processes:
            context = process.first("context") or {}
            versions = {library: event.get("version") for library, event in process.imported().items()}
            facts = {
                "python": process.about.get("python"),
                **versions,
                "device": context.get("device_target"),
                "mode": _MODES.get(str(context.get("mode"))),
                "numpy": context.get("numpy"),
            }
            manifest.fingerprint.update({name: value for name, value in facts.items() if value is not None})
            cure = next((event for event in process.all("warning") if event["code"] in CURES), None)
            if cure and all(warning.code != cure["code"] for warning in manifest.warnings):
                manifest.warn(
                    cure["code"], cure["message"]
                )  # also of one that died before its first step, and has no rank
    warned = {warning.code: warning.message for warning in manifest.warnings}
    reasons = {"op_service": warned.get("service_off"), "queue": warned.get("queues_off"), "op": warned.get("ops_off")}
    reasons |= _switched_off(manifest)
    own = "torch" in manifest.fingerprint and "mindspore" not in manifest.fingerprint
    reasons["op"] = reasons["op"] or warned.get("ops_left_to_user") or (TRACED if own else None)
    why = _nothing_seen(results, alive)
    manifest.not_measured = [
        NotMeasured(what=table, why=why if why and table not in ("memory", "cpu") else reasons.get(table) or text)
        for table, text in _EXPECTED.items()
        if not manifest.tables.get(table)
    ]
    if why:
        manifest.warn("nothing_seen", why)
    for result in results:
        missed = _not_applied(manifest.options.get("override"), result.processes)
        if missed:
            manifest.warn("not_applied", missed, rep=result.rep.rep)


def _switched_off(manifest: Manifest) -> dict[str, str | None]:
    """Tables that the user did not want, with how that was said."""
    said = {"op": ("ops", "off", "--ops off"), "op_service": ("service", False, "--no-service")}
    of_profile = "not among the activities of the profile" if manifest.source == "profile" else None
    return {
        table: of_profile or f"switched off with {word}"
        for table, (option, off, word) in said.items()
        if manifest.options.get(option) == off
    }


def _not_applied(override: dict[str, Any] | None, processes: Sequence[Process]) -> str | None:
    """What is said of settings of `collect --apply` that no process applied; None for none, and where one did."""
    if not override or not override.get("changes") or any(one.first("override") for one in processes):
        return None
    missed = next((event for one in processes for event in one.all("override_missed")), None)
    site = f" at `{override['site']}`" if override.get("site") else ""
    why = missed["why"] if missed else f"no iterator was made{site}"
    return f"the settings of the data pipeline were not applied: {why}"


def _nothing_seen(results: Sequence[Converted], alive: Sequence[int]) -> str | None:
    if any(result.rows.get("step") or result.rows.get("fetch") for result in results):
        return None
    if alive:
        return (
            f"process {alive[0]} runs on in the background, and nothing of it was recorded yet: open the run when it "
            "has ended, or let the command wait for it (msrun: --join=True)"
        )
    if not any(result.hello for result in results):
        return (
            "no Python of the command was watched: it starts none, or it was started with -I, -E or -S, "
            "with its own PYTHONPATH, or in a container"
        )
    if not any(process.first("import") for result in results for process in result.processes):
        return "no training was seen: no dataset iterator, callback, optimizer or graph call"
    return "MindSpore or PyTorch was used, but no dataset was iterated and no training step was seen"


def _decide(run: Run, results: Sequence[Converted], alive: Sequence[int]) -> None:
    manifest = run.manifest
    manifest.ended_at = utc_now()
    codes = [result.rep.exit_code for result in results]
    problems = [result.problem for result in results if result.problem]
    damage = [text for result in results for text in result.damage]
    bad = next((code for code in codes if code not in (0, None)), None)
    lost = [rank for result in results for rank in result.rep.ranks if rank.ended == "lost"]
    ended = next((note("block_ended", error=result.reason) for result in results if result.reason), None)
    state: State = "complete"
    why: Note | None = None
    if alive:
        state, why = "partial", note("process_alive", pid=alive[0])
    elif None in codes or not codes:
        who = "process" if manifest.source == "profile" else "launcher"
        state, why = "partial", note("killed", who=who)
    elif bad is not None and bad < 0:
        state, why = "partial", note("signal", signal=_signal_name(bad))
    elif bad is not None:
        state, why = "failed", ended or note("exit_code", exit_code=bad)
    elif problems:
        state, why = "partial", note("record_not_written", error=problems[0])
    elif lost:
        state, why = "partial", note("rank_lost", pid=lost[0].pid, rank=lost[0].rank)
    elif damage:
        state, why = "partial", note("spool_damaged", damage=damage[0], more=len(damage) - 1)
    elif ended is not None:
        state, why = "partial", ended
    manifest.decide(state, None if why is None else why | _missing(results, lost))


def _missing(results: Sequence[Converted], lost: Sequence[Rank]) -> Note:
    """How much a kill has cost at most."""
    if lost:
        queue_s = [rank.missing_queue_s for rank in lost if rank.missing_queue_s is not None]
        return {
            "missing_steps_s": max((rank.missing_steps_s or 0.0) for rank in lost),
            "missing_queue_s": max(queue_s, default=None),
        }
    if any(result.rep.exit_code is None for result in results) and any(
        not process.ended_normally for result in results for process in result.processes
    ):
        return {"missing_steps_s": UNSEEN_NS / 1e9, "missing_queue_s": None}  # killed before its first marks
    return {}


def _signal_name(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
