"""One rank's files to rows of the record."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from pipeprof.read.minddata.folder import begin_ns
from pipeprof.read.minddata.graph import structure_key
from pipeprof.units import format_count

if TYPE_CHECKING:
    from pipeprof.read.minddata.folder import RankFiles
    from pipeprof.read.tables.rows import RankRows

PIPELINE_ID = 0  # a folder holds one iterator's tree
ROUNDING_NS = 2_000_000  # stamp and wait are whole ms each


def add_rows(content: RankFiles, out: RankRows) -> None:
    """Add all rows of a rank. What the rows cannot say is added to the rank's notes."""
    if content.loose:
        for block in content.blocks:
            block.wall_ns += out.zero
    _add_graph(content, out)
    _add_samples(content, out)
    _add_machine(content, out)
    _add_service(content, out)
    step_of = _add_loop_steps(content, out) if content.records and not content.sink else {}
    _add_host_side(content, out, step_of)
    _add_device_side(content, out)


def _add_graph(content: RankFiles, out: RankRows) -> None:
    out.pipelines += 1
    out.add(
        "pipeline", pipeline_id=PIPELINE_ID, pipeline_key=structure_key(content.ops), role="train",
        batch_size=_batch_size(content), queues=_queues(content),
    )  # fmt: skip
    for op in content.ops:
        out.add(
            "pipeline_op", pipeline_id=PIPELINE_ID, op_id=op.op_id, op_type=op.op_type, workers=op.workers,
            capacity=op.capacity, is_python=True if op.op_type.removesuffix("Op") == "Generator" else None,
            inlined=not op.has_queue, stated_fill_ratio=op.stated_ratio,
        )  # fmt: skip
        for child in op.children:
            out.add("pipeline_edge", pipeline_id=PIPELINE_ID, producer_id=child, consumer_id=op.op_id)
    if not content.ops:
        for number, kind in sorted({(op.op_id, op.op_type) for block in content.blocks[:100] for op in block.ops}):
            out.add("pipeline_op", pipeline_id=PIPELINE_ID, op_id=number, op_type=kind)


def _queues(content: RankFiles) -> str:
    if not content.ops:
        return "not_recorded: no file with the operators could be read"
    if not any(op.depths for op in content.ops):
        return "not_recorded: the file has no samples"
    return "recorded" if content.times else "not_recorded: the samples have no times"


def _batch_size(content: RankFiles) -> int | None:
    """Rows per batch as the timing blocks count them below the outermost batch operator, in most blocks."""
    batch = next((op for op in content.ops if op.op_type.removesuffix("Op") == "Batch"), None)
    if batch is None or len(batch.children) != 1:
        return None
    counts = Counter(op.rows for block in content.blocks for op in block.ops if op.op_id == batch.children[0])
    return counts.most_common(1)[0][0] if counts else None


def _add_samples(content: RankFiles, out: RankRows) -> None:
    for op in content.ops:
        for time, depth in zip(content.times, op.depths, strict=False):
            if depth is not None:
                out.add(
                    "queue", pipeline_id=PIPELINE_ID, op_id=op.op_id, t_ns=out.at(time), depth=depth,
                    capacity=op.capacity,
                )  # fmt: skip
        for time, (user, system) in zip(content.times, op.cpu, strict=False):
            if user is not None or system is not None:
                out.add(
                    "cpu", t_ns=out.at(time), scope="pipeline_op", pipeline_id=PIPELINE_ID, op_id=op.op_id,
                    user_ratio=user, sys_ratio=system,
                )  # fmt: skip


def _add_machine(content: RankFiles, out: RankRows) -> None:
    """CPU and memory of the process and of the host, by the samples' own times."""
    cpu, peak = content.cpu, 0
    times = [None if time is None else out.at(time) for time in cpu.times]
    for time, (user, system) in zip(times, cpu.process, strict=False):
        if time is not None and (user is not None or system is not None):
            out.add(
                "cpu", t_ns=time, scope="process", name="trainer", pid=content.pid, user_ratio=user, sys_ratio=system
            )
    for time, (user, system, idle) in zip(times, cpu.host, strict=False):
        if time is not None and (user, system, idle) != (None, None, None):
            out.add("cpu", t_ns=time, scope="host", user_ratio=user, sys_ratio=system, idle_ratio=idle)
    for time, used in zip(times, cpu.used, strict=False):
        if time is not None and used is not None:
            out.add("memory", t_ns=time, device="host", allocated_bytes=used)
    for time, rss in zip(times, cpu.rss, strict=False):
        if time is not None and rss is not None:
            peak = max(peak, rss)
            out.add(
                "memory", t_ns=time, device="process", pid=content.pid, name="trainer", rss_bytes=rss,
                rss_peak_bytes=peak,
            )  # fmt: skip


def _add_service(content: RankFiles, out: RankRows) -> None:
    for block in content.blocks:
        at = out.at(block.wall_ns)
        for op in block.ops:
            out.add(
                "op_service", pipeline_id=PIPELINE_ID, op_id=op.op_id, t_ns=at, source="log", avg_ns=op.avg_ns,
                max_ns=op.max_ns, min_ns=op.min_ns, rows=op.rows, batches=1, io_ns=op.io_ns,
            )  # fmt: skip
        for name, dur in block.extras.items():
            out.add("span", track="dataset", category="timing", name=name, start_ns=at - dur, dur_ns=dur)


def _add_step(out: RankRows, start: int, handed: int, end: int) -> int:
    """One step of a rank, from one request to the next; returns its number."""
    number = out.steps
    out.add(
        "step", step=number, kind_step=number, kind="train" if number else "warmup", pipeline_id=PIPELINE_ID,
        start_ns=out.at(start), fp_ns=out.at(handed), end_ns=out.at(end), data_wait_ns=handed - start,
        fetch_wait_ns=handed - start, fp_source="fetch", in_window=False,
    )  # fmt: skip
    out.steps += 1
    return number


def _add_loop_steps(content: RankFiles, out: RankRows) -> dict[int, int]:
    """Steps from the loop's own requests; returns the step by batch.

    The next request may seem to come before this batch was handed over, by the rounding of both to whole ms: it is
    put where the batch was handed over. What is further off, or has a batch missing in between, is no step.
    """
    step_of: dict[int, int] = {}
    odd = 0
    previous = None
    for record, following in pairwise(content.records):
        handed, start, end = record.t_ns, begin_ns(record, sink=False), begin_ns(following, sink=False)
        if handed is None or start is None or end is None:
            odd += 1
            continue
        if previous is not None and 0 <= previous - start <= ROUNDING_NS:
            start = min(previous, handed)
        previous = handed
        if handed - ROUNDING_NS <= end < handed:
            end = handed
        if following.batch != record.batch + 1 or end < handed:
            odd += 1
            continue
        step_of[record.batch] = _add_step(out, start, handed, end)
    if odd:
        content.notes.add(
            "steps",
            f"{format_count(odd, 'batch')} without a step: times are missing or contradict each other, or the next "
            "batch is missing",
        )
    return step_of


def _add_host_side(content: RankFiles, out: RankRows, step_of: dict[int, int]) -> None:
    untimed = 0
    first = min((record.batch for record in content.records), default=1)
    for record in content.records:
        start = begin_ns(record, sink=content.sink)
        if start is None:
            untimed += 1
            continue
        out.add(
            "fetch", pipeline_id=PIPELINE_ID, fetch=record.batch - min(first, 1), step=step_of.get(record.batch),
            start_ns=out.at(start), wait_ns=record.wait_ns, push_ns=record.push_ns, batch_ns=record.batch_ns,
            depth=record.depth, capacity=record.capacity, side="host_queue" if content.sink else "iterator",
        )  # fmt: skip
    if untimed:
        content.notes.add("fetch_times", f"left out {format_count(untimed, 'batch')} without a time or a wait")


def _add_device_side(content: RankFiles, out: RankRows) -> None:
    """Batches taken from the device's queue; they make the steps when the loop itself does not."""
    makes_steps = not out.steps
    for number, fetch in enumerate(content.device):
        step = None
        if makes_steps and number + 1 < len(content.device):
            end, handed = content.device[number + 1].start_ns, fetch.start_ns + fetch.wait_ns
            step = _add_step(out, fetch.start_ns, handed, end) if end >= handed else None
        out.add(
            "fetch", pipeline_id=PIPELINE_ID, fetch=number, step=step, start_ns=out.at(fetch.start_ns),
            wait_ns=fetch.wait_ns, depth=fetch.depth, side="data_queue",
        )  # fmt: skip
    overlapping = makes_steps and len(content.device) - 1 - out.steps
    if content.device and overlapping:
        batches = format_count(overlapping, "batch")
        content.notes.add("steps", f"{batches} without a step: the next dequeue began before the end of theirs")
