"""What led to a verdict: each number with its unit, the query it came from and what it was measured on, as codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeprof.query.rows import JudgedSink, JudgedStage
    from pipeprof.verdict.capacity import Stage

LOAD = "diagnose/load"
SEEN = 0.0005  # two shares that differ by less are the same number where they are shown


def evidence(
    code: str, value: float | None, unit: str, source: str, measured_on: Mapping[str, Any], **facts: Any
) -> dict[str, Any]:
    """One number. `code` says what it is, with `facts` such as the operator; reports word both.

    `unit` is share (0..1), ns, batches/s or cores; `source` the query; `measured_on` a `code` with its numbers.
    """
    return {
        "code": code, "value": value, "unit": unit, "source": source, "facts": facts, "measured_on": dict(measured_on),
    }  # fmt: skip


def on(code: str, **facts: Any) -> dict[str, Any]:
    """Builds the code and numbers of what was measured."""
    return {"code": code, **facts}


def of_waiting(first: JudgedStage, whole_share: float | None) -> Iterator[dict[str, Any]]:
    """The loop: how much it waits, how fast it goes, how fast it could go. `whole_share`: in all steps of the rank."""
    steady = on("steady_batches", batches=first.batches or 0)
    yield evidence("data_wait", first.wait_share, "share", LOAD, steady)
    if whole_share is not None and abs(whole_share - (first.wait_share or 0.0)) >= SEEN:
        yield evidence("data_wait_whole", whole_share, "share", "step/data_wait", on("all_steps"))
    yield evidence("throughput", first.loop_rate, "batches/s", LOAD, steady)
    if first.consumer_rate is not None:
        yield evidence("consumer_throughput", first.consumer_rate, "batches/s", LOAD, on("without_data_wait"))


def of_stage(row: JudgedStage, rule: str) -> Iterator[dict[str, Any]]:
    """One operator: its capacity, how busy it is, its queues, and what its workers do."""
    who = operator(row)
    if row.work_ns is not None:
        timed = on("timed_batches", times=row.source, batches=row.timed_batches or 0)
        yield evidence("work_per_batch", row.work_ns, "ns", LOAD, timed, op=who)
        yield evidence("max_throughput", row.rate, "batches/s", LOAD, on("workers", workers=row.workers), op=who)
        yield _utilisation(row, who)
    else:
        yield evidence("queue_drop", row.drop_ratio or 0.0, "share", LOAD, on("no_service_times"), op=who)
    samples = on("samples", samples=row.samples)
    if row.input_ratio is not None:
        yield evidence("input_queue", row.input_ratio, "share", LOAD, samples, op=who)
    if row.output_ratio is not None:
        yield evidence("output_queue", row.output_ratio, "share", LOAD, samples, op=who)
    yield from _of_computing(row, who, rule)


def _utilisation(row: JudgedStage, who: dict[str, Any]) -> dict[str, Any]:
    """At most all of its time: a training may take more for a while, from batches that were prepared before."""
    times = row.utilisation
    if row.chained:
        return evidence("utilisation", times and min(times, 1.0), "share", LOAD, on("takes_turns"), op=who)
    if times is None or times <= 1:
        return evidence("utilisation", times, "share", LOAD, on("throughputs"), op=who)
    return evidence("utilisation", 1.0, "share", LOAD, on("prefilled", times=times), op=who)


def _of_computing(row: JudgedStage, who: dict[str, Any], rule: str) -> Iterator[dict[str, Any]]:
    if row.cpu_share is not None:
        yield evidence("computing", row.cpu_share, "share", LOAD, on("thread_cpu_time"), op=who)
    if row.cores is not None and (rule in ("gil", "contention") or row.kind in ("gil", "cpu")):
        yield evidence("cpu", row.cores, "cores", LOAD, on("mean"), op=who)
    if row.gil_share is not None and (rule == "gil" or row.kind == "gil"):
        yield evidence("lock_held", row.gil_share, "share", LOAD, on("probes", per_second=10))
    if row.lock_share is not None and row.kind == "lock_wait":
        yield evidence("lock_waits", row.lock_share, "share", LOAD, on("probes", per_second=10), op=who)
    if row.kind in ("burst", "poll") and row.longest_ns is not None:
        yield evidence("longest_row", row.longest_ns, "ns", LOAD, on("intervals"), op=who)
    if row.kind == "poll" and row.law_row_ns is not None:
        yield evidence("polled_row", row.law_row_ns, "ns", LOAD, on("polls", poll_ms=100))
    if row.idle_share is not None and row.kind in ("cpu", "gil"):
        yield evidence("idle", row.idle_share, "share", LOAD, on("host_samples"))


def of_queues(row: JudgedSink) -> Iterator[dict[str, Any]]:
    """In sink mode: how often the queues on the host and on the device were found empty."""
    batches, source = on("batches", batches=row.batches or 0), "diagnose/sink"
    if row.host_empty_share is not None:
        yield evidence("host_queue_empty", row.host_empty_share, "share", source, batches)
    if row.device_empty_share is not None:
        yield evidence("device_queue_empty", row.device_empty_share, "share", source, batches)


def operator(stage: JudgedStage | Stage) -> dict[str, Any]:
    """What names an operator."""
    return {"op_id": stage.op_id, "op_type": stage.op_type, "name": stage.name}
