"""Turns a run's spool into its tables and completes the manifest. Also after a crash: whatever was flushed is used."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeprof.read.mindspore_ops import graph_collective, op_type
from pipeprof.read.source.numbers import filled
from pipeprof.read.spool import account, blocks, lines, operators, pipelines, sections, spans
from pipeprof.read.spool.account import add_account
from pipeprof.read.spool.amounts import Amounts
from pipeprof.read.spool.backward import backward_ends
from pipeprof.read.spool.blocks import called_first, with_sampled_fetches
from pipeprof.read.spool.call_sites import CallSites, Frames, by_line, told_apart
from pipeprof.read.spool.family import Family, read_origins
from pipeprof.read.spool.lines import SpoolNotes, content
from pipeprof.read.spool.live import last_of
from pipeprof.read.spool.marks import Kind, Marks
from pipeprof.read.spool.process import Process, facts, failure_of, is_of, load_processes
from pipeprof.read.spool.spans import add_cell_blocks, add_syncs
from pipeprof.read.spool.step_rows import EVAL, TRAIN, WARMUP, StepRows
from pipeprof.read.spool.step_table import add_fetches, add_steps
from pipeprof.read.spool.steps import BY_HAND, READS, ROWS, Steps, find_steps, has_trained, leave_out
from pipeprof.read.spool.whole_run import add_whole_run
from pipeprof.read.tables.rows import RankRows
from pipeprof.read.tables.writer import tables_of
from pipeprof.record import store
from pipeprof.record.document import BAD_JSON
from pipeprof.record.run import UNSEEN_NS, Manifest, Rank, Rep, Run
from pipeprof.units import format_count

FORKS = "forks.tsv"
POINT_VARIABLES = {"fp": ("PROFILING_FP_START", "FP_POINT"), "bp": ("PROFILING_BP_END", "BP_POINT")}


@dataclass
class Converted:
    """One repetition after conversion."""

    rep: Rep
    rows: dict[str, int] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    hello: int = 0
    problem: str | None = None
    damage: list[str] = field(default_factory=list)  # what of the spool was left out, though nothing was killed
    reason: str | None = None  # how a profiled block ended, in words, when not by its last line


def convert_rep(run: Run, rep: int, progress: Callable[[str], None] = lambda _text: None) -> Converted:
    """Write the tables of one repetition from `spool/rep=N` and add it to the manifest (which is not saved).

    What another run recorded there (a training that went on while its run was replaced) is left out. Converting again
    gives the same files. Raises RunError when the files cannot be written.
    """
    spool = run.spool / f"rep={rep}"
    notes = SpoolNotes()
    launch = facts(spool / "launch.json", notes)
    ended = facts(spool / "exit.json", notes)
    ended = ended if is_of(run, ended) else {}
    processes = _own_processes(run, rep, notes)
    zero = int(launch.get("monotonic") or min((int(p.about["started"]) for p in processes), default=0))
    real = int(launch.get("realtime") or 0)
    samples = account.read_samples(spool / "host.jsonl", notes)
    origins = read_origins(spool / FORKS, notes)
    # when the launcher died too, the best that there is: the last sign of the job
    end = int(
        ended.get("monotonic") or max([zero, *(one.last_ns for one in processes), *(one["t"] for one in samples)])
    )
    here = run.manifest.fingerprint.get("host")
    over = max([end, *(one.last_ns for one in processes if one.about.get("host") == here)])  # some outlive the command
    entry = Rep(
        rep=rep, zero_realtime_ns=real, zero_monotonic_ns=zero, dur_ns=over - zero, exit_code=ended.get("status"),
        oom_kills=ended.get("oom_kills"), cpu_s=ended.get("cpu_s"), cpu_limit_s=ended.get("cpu_limit_s"),
        calibration_ns=launch.get("calibration_ns"),
    )  # fmt: skip
    if entry.exit_code:
        entry.failure = failure_of(spool, [int(process.about["pid"]) for process in processes], notes)
    hello = content(spool / "hello.jsonl", notes).splitlines()
    result = Converted(entry, processes=processes, hello=len(hello))
    result.problem, result.reason = ended.get("problem"), ended.get("reason")
    ranks = assign_ranks(processes, run.manifest, rep)
    trained = {int(process.about["pid"]) for members in ranks.values() for process in members}
    points = user_points(run.manifest)
    trains = any(has_trained(process.marks) for process in processes)
    for rank, members in sorted(ranks.items()):
        progress(f"rep {rep} rank {rank}: {format_count(len(members), 'process')}")
        out = RankRows(rep, rank, zero)
        steps_of = []
        for process in members:
            recognised = _add_process(run.manifest, process, out, points, trains=trains)
            steps_of.append((process, recognised))
            last = _unseen_until(process, end, saw_end="monotonic" in ended)
            entry.ranks.append(_rank_entry(process, rank, entry, last))
            if entry.exit_code != 0:
                _tell_end(entry.ranks[-1], process, recognised.steps, samples, over)
        add_whole_run(steps_of, out, over)
        mine = {int(process.about["pid"]) for process in members}
        others = {int(process.about["pid"]) for process in processes} - mine
        account.add_host(samples, out, mine, others)
        add_account(samples, out, Family(samples, mine, trained - mine, origins), members)
        _write(run, out, result)
    if not ranks and samples:
        out = RankRows(rep, 0, zero)
        account.add_host(samples, out, set(), set())
        _write(run, out, result)
    for note in notes.all:
        run.manifest.warn("spool", note, rep=rep)
    for problem in _problems(hello):
        run.manifest.warn("recording_stopped", problem, rep=rep)
    result.damage = [*notes.damage, *(text for process in processes for text in process.notes.damage)]
    run.manifest.reps = sorted([*(r for r in run.manifest.reps if r.rep != rep), entry], key=lambda r: r.rep)
    return result


def _problems(hello: Sequence[bytes]) -> list[str]:
    """Why processes stopped recording before they ended."""
    said = []
    for line in hello:
        with contextlib.suppress(*BAD_JSON):  # the line that each process begins with
            facts = lines.stopped(line)
            said.append(f"process {facts['pid']} recorded nothing more: {facts['problem']}")
    return said


def _own_processes(run: Run, rep: int, notes: SpoolNotes) -> list[Process]:
    processes = load_processes(run.spool / f"rep={rep}", notes)
    for process in processes:
        if not is_of(run, process.about):
            text = f"process {process.about['pid']} was left out: it recorded for another run, which this one replaced"
            run.manifest.warn("other_run", text, rep=rep)
    return [process for process in processes if is_of(run, process.about)]


def assign_ranks(processes: Sequence[Process], manifest: Manifest, rep: int) -> dict[int, list[Process]]:
    """Processes that trained, by rank.

    RANK_ID decides; processes of one rank that overlap in time become further ranks.
    """
    ranks: dict[int, list[Process]] = {}
    for process in processes:
        trained = process.marks.has(Kind.FETCH, Kind.TRAIN_STEP, Kind.UPDATE, Kind.CALL)
        if not trained and not process.about.get("inprocess"):
            continue
        wanted = int(process.about.get("rank") or 0)
        rank = wanted
        while any(_overlap(process, other) for other in ranks.get(rank, [])):
            rank += 1
        if rank != wanted:
            pid = process.about["pid"]
            manifest.warn(
                "rank_clash",
                f"process {pid} ran at the same time as another one of rank {wanted} and is stored as rank {rank}",
                rep=rep,
                rank=rank,
            )
        ranks.setdefault(rank, []).append(process)
    return ranks


def user_points(manifest: Manifest) -> dict[str, str | None]:
    """FP and BP as the user named them: an option, else PROFILING_*, else FP_POINT and BP_POINT."""
    environment = manifest.fingerprint.get("environment", {})
    chosen: dict[str, str | None] = {}
    for point, (strong, weak) in POINT_VARIABLES.items():
        option = manifest.options.get(f"{point}_point")
        named = [name for name in (strong, weak) if environment.get(name)]
        if not option and len(named) == 2 and environment[strong] != environment[weak]:
            manifest.warn("points_differ", f"{strong} and {weak} differ; {strong} was used")
        chosen[point] = option or (environment[named[0]] if named else None)
    return chosen


def _add_process(
    manifest: Manifest, process: Process, out: RankRows, points: Mapping[str, str | None], *, trains: bool
) -> Steps:
    """Add the rows of one process; its steps come back. `trains`: whether any process of the command was seen to."""
    for warning in process.all("warning"):
        manifest.warn(warning["code"], warning["message"], rep=out.rep, rank=out.rank)
    looks = [look for event in process.all("looks") for look in event["samples"]]
    process.marks = with_sampled_fetches(process.marks, looks)
    hidden = [number for number, event in process.by_number("iterator").items() if event.get("hidden")]
    recognised = find_steps(process.marks, hidden, pipelines.pipeline_keys(process), beside_training=trains)
    given_up = [] if recognised.evidence == "named" else _given_up(process)
    leave_out(recognised.steps, sorted([*operators.recorder_at_work(process), *given_up]), process.marks)
    recorded = operators.load_windows(process)
    if recognised.evidence == READS and recorded.executions:  # a network that Python runs operator by operator
        recognised.evidence = ROWS
    notes: list[str] = list(recorded.notes)
    tree = pipelines.add_pipelines(process, out, pipelines.roles_from_steps(recognised.steps), notes)
    structures = sections.structures(recognised.steps, process.marks, by_line(process))
    placed = operators.place(recorded.executions, recognised.steps, structures, process.marks.only(Kind.UPDATE))
    sites = CallSites(process, [*recorded.led, *recorded.executions]).of(placed)
    placed = told_apart(placed, sites)
    first = out.steps
    at = _points(manifest, placed, recognised.steps, points, out, structures)
    ends = backward_ends(
        recognised.steps,
        process.marks,
        {index: bp for index, (_, bp) in at.items() if bp is not None},
        is_named=points["bp"] is not None,
    )
    apart = spans.undisturbed(process, recognised.steps, structures)
    # An update by hand lies in front of the next step's calls, as the wait for an unknown loader would.
    calls = called_first(Marks.of([]) if recognised.evidence == BY_HAND else process.marks)
    add_steps(out, recognised.steps, calls, recorded.windows, at, tree, apart, ends)
    passes = process.by_number("pass")
    _tell_passes(manifest, out, sections.repeated_passes(structures, passes))
    add_fetches(process, out, tree, recognised.steps, first)
    amounts = Amounts(process, placed)
    held, taken = blocks.of_operators(placed, recorded, amounts)
    op_ids = _add_operators(out, placed, sites, amounts, taken, first)
    _add_pool(out, process, recorded, int(manifest.options.get("sample_rate") or 0))
    blocks.add_blocks(out, held, op_ids)
    _add_lock(out, process)
    _add_stages(out, process, recognised.steps)
    _add_spans(out, process, recorded)
    spans.add_stacks(process, out)
    add_cell_blocks(process, placed, amounts, out)
    add_syncs(process, recognised.steps, out, first)
    process.marks = process.marks.anew()
    process.about |= {"evidence": recognised.evidence, "counts": recognised.counts}
    for note in process.notes.all:
        manifest.warn("spool", note, rep=out.rep, rank=out.rank)
    for note in notes:
        manifest.warn("source", note, rep=out.rep, rank=out.rank)
    return recognised


def _given_up(process: Process) -> list[tuple[int, int]]:
    """When iterators were given up: a loop that was left by `break` waits for their threads then, up to 5 s.

    Not of those that gave one batch, which may be used after that.
    """
    rows = Counter(process.marks.subject[process.marks.rows].tolist())
    closed = [(int(event["t"]), int(event["number"])) for event in process.all("closed")]
    return [(at, at + 1) for at, number in closed if rows[number] > 1]


def _points(
    manifest: Manifest,
    placed: Sequence[operators.Placed],
    steps: StepRows,
    points: Mapping[str, str | None],
    out: RankRows,
    structures: Mapping[int, sections.Structure],
) -> dict[int, tuple[int | None, int | None]]:
    chosen = operators.choose_points(placed, steps, points["fp"], points["bp"])
    for problem in chosen.problems.values():
        manifest.warn("point_not_found", problem, rep=out.rep, rank=out.rank)
    if chosen.fp or chosen.bp:
        named = [name for name in ("fp", "bp") if points[name] and name not in chosen.problems]
        how = {name: "named by the user" if name in named else "automatic" for name in ("fp", "bp")}
        manifest.options.setdefault("points", {})[f"rank {out.rank}"] = {
            "fp": chosen.fp, "fp_choice": how["fp"], "bp": chosen.bp, "bp_choice": how["bp"],
        }  # fmt: skip
    own = {name for name in ("fp", "bp") if points[name] and name not in chosen.problems}
    return operators.section_points(placed, operators.step_points(placed, chosen), structures, own)


def _tell_passes(manifest: Manifest, out: RankRows, passes: Sequence[Mapping[str, Any]]) -> None:
    """Leave in the manifest which networks run forward again in a step, of the last process of the rank that does."""
    if passes:
        manifest.options.setdefault("passes", {})[f"rank {out.rank}"] = list(passes)


def _add_operators(
    out: RankRows,
    placed: Sequence[operators.Placed],
    sites: Sequence[Frames],
    amounts: Amounts,
    memory: Sequence[int | None],
    first_step: int,
) -> list[int]:
    """Write the executions; the operators they are of come back, in their order."""
    op_ids, steps, collectives = [], [], []
    for item, frames in zip(placed, sites, strict=True):
        execution = item.execution
        kind = execution.type or op_type(execution.name)
        step = None if item.step is None else first_step + item.step
        stack = out.stack_id(frames)
        op_id = out.operators.numbers.get((item.name, item.phase, kind))
        if op_id is None:
            flops, moved = amounts.of(item)
            inputs, outputs = amounts.shapes_of(item)
            op_id = out.op_id(
                item.name, item.phase, type=kind, device="CPU", in_shapes=inputs, out_shapes=outputs, stack_id=stack,
                flops=flops, bytes=moved,
            )  # fmt: skip
        op_ids.append(op_id)
        steps.append(-1 if step is None else step)
        if collective := graph_collective(kind):
            collectives.append((item, step, collective))
    start = np.array([item.execution.start_ns for item in placed], np.int64) - out.zero
    dur = np.array([item.execution.dur_ns for item in placed], np.int64)
    own = [item.execution.dur_ns if item.execution.self_ns is None else item.execution.self_ns for item in placed]
    taken = filled(memory)
    step_of = np.array(steps, np.int64)
    out.add_block(
        "op", len(placed), op_id=np.array(op_ids, np.int64), step=(step_of, step_of >= 0), start_ns=start, dur_ns=dur,
        self_ns=np.array(own, np.int64), track=(np.zeros(len(placed), np.int8), ("CPU",)), memory_bytes=taken,
        self_memory_bytes=taken,
    )  # fmt: skip
    for item, step, collective in collectives:
        out.add(
            "collective", step=step, name=item.name, kind=collective, track="CPU",
            start_ns=out.at(item.execution.start_ns), dur_ns=item.execution.dur_ns,
        )  # fmt: skip
    return op_ids


def _add_pool(out: RankRows, process: Process, recorded: operators.Recorded, rate: int) -> None:
    """Write the pool's levels: all, or with a rate those at the begin of every so many operators."""
    times = [sample.t_ns for sample in recorded.pool]
    begins = [execution.start_ns for execution in recorded.executions[:: rate or 1]]
    chosen = {bisect_right(times, begin) - 1 for begin in begins} if rate else range(len(times))
    for sample in (recorded.pool[index] for index in sorted(chosen) if index >= 0):
        out.add(
            "memory", t_ns=out.at(sample.t_ns), device="CPU", pid=int(process.about["pid"]), name="pool",
            allocated_bytes=sample.allocated, reserved_bytes=sample.reserved, active_bytes=sample.active,
        )  # fmt: skip


def _add_lock(out: RankRows, process: Process) -> None:
    for event in process.all("gil"):
        pid = int(process.about["pid"])
        out.add("cpu", t_ns=out.at(event["t"]), scope="gil", pid=pid, user_ratio=min(1.0, float(event["held"])))


def _add_stages(out: RankRows, process: Process, steps: StepRows) -> None:
    def stage(name: str, begin: int, end: int) -> None:
        out.add("stage", stage=name, start_ns=out.at(begin), dur_ns=max(0, end - begin))

    imports = process.import_times()
    ready = max((end for _, end in imports), default=int(process.about["started"]))
    if not process.about.get("inprocess"):
        stage("start", out.zero, int(process.about["started"]))
    for begin, end in imports:
        stage("import", begin, end)
    training = np.flatnonzero(steps.kind != EVAL)
    start, end = steps.start[training].tolist(), steps.end[training].tolist()
    if start:
        stage("build", ready, start[0])
    for mark in process.marks.only(Kind.COMPILE):
        stage("compile", mark.begin, mark.end)
    if start:
        others = np.flatnonzero(steps.kind[training] != WARMUP)
        lead = int(others[0]) if len(others) else len(start)
        stage("warmup", start[0], end[lead - 1])
        if lead < len(start):
            stage("steady", start[lead], end[-1])


def _add_spans(out: RankRows, process: Process, recorded: operators.Recorded) -> None:
    def span(category: str, name: str, begin: int, end: int) -> None:
        out.add("span", track="main", category=category, name=name, start_ns=out.at(begin), dur_ns=end - begin)

    for mark in process.marks.only(Kind.COMPILE):
        span("compile", "graph compilation", mark.begin, mark.end)
    for begin, end in sorted(recorded.windows):
        span("window", "op window", begin, end)
    for event in process.all("iterator"):
        if not event.get("again"):
            span("pipeline", f"build of iterator {event['number']}", int(event["begin"]), int(event["end"]))
    spans.add_named(process, out)
    spans.add_cells(process, out)


def _rank_entry(process: Process, rank: int, rep: Rep, end: int) -> Rank:
    about = process.about
    lost = not process.ended_normally
    version = process.imported().get("mindspore", {}).get("version")
    monotonic = about.get("monotonic", rep.zero_monotonic_ns)
    realtime = about.get("realtime", rep.zero_realtime_ns)
    last_queue = max((path.lstat().st_mtime_ns for path in process.folder.glob("tree-*/*-*/*.json")), default=None)
    queue_end = None if last_queue is None else last_queue - realtime + monotonic
    return Rank(
        rank=rank, pid=int(about["pid"]), host=about.get("host", ""), python=about.get("python"),
        mindspore=version, zero_realtime_ns=realtime - monotonic + rep.zero_monotonic_ns,
        zero_monotonic_ns=rep.zero_monotonic_ns, ended="lost" if lost else "normal",
        hooks=about.get("hooks"), step_evidence=about.get("evidence"), evidence_counts=about.get("counts", {}),
        missing_steps_s=max(0, end - process.last_ns) / 1e9 if lost else None,
        missing_queue_s=max(0, end - queue_end) / 1e9 if lost and queue_end else None,
    )  # fmt: skip


def _tell_end(entry: Rank, process: Process, steps: StepRows, samples: Sequence[Mapping[str, Any]], end: int) -> None:
    """What a process of a command that did not end well was in, and the CPU time that it had used and was allowed."""
    cpu_s, until = account.life_of(entry.pid, samples, end)
    bye = process.first("bye")
    gone = min(until, end if bye is None else int(bye["t"]))
    entry.last = last_of(
        process, gone,
        gone_s=max(0, end - gone) / 1e9,
        longest_step_ns=max((steps.end - steps.start)[steps.kind == TRAIN].tolist(), default=None),
        cpu_s=cpu_s,
        cpu_limit_s=process.about.get("cpu_limit_s"),
    )  # fmt: skip


def _unseen_until(process: Process, end: int, *, saw_end: bool) -> int:
    """The last moment at which the process may have recorded what is not in the spool.

    When the launcher saw the end of the command (`saw_end`), that; else, or when the process outlived the command, so
    long after the last sign of the job as a mark may wait to be written.
    """
    return end if saw_end and process.last_ns <= end else max(end, process.last_ns) + UNSEEN_NS


def _write(run: Run, out: RankRows, result: Converted) -> None:
    for table, data in tables_of(out):
        count = store.write_arrow(run, table, out.rep, out.rank, data)
        result.rows[table] = result.rows.get(table, 0) + count


def _overlap(one: Process, other: Process) -> bool:
    return int(one.about["started"]) < other.last_ns and int(other.about["started"]) < one.last_ns
