"""What led to a verdict: each number with its unit, the query it came from and what it was measured on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = Mapping[str, Any]

SOURCES = {
    "log": "MindSpore's timing lines",
    "hook": "timed calls of its Python",
    "both": "timed calls and MindSpore's timing lines",
}


def evidence(what: str, value: float, unit: str, source: str, basis: str) -> dict[str, Any]:
    """One number. `unit` is share (0..1), ns, batches/s or cores; `source` the query; `basis` what was measured."""
    return {"what": what, "value": value, "unit": unit, "source": source, "basis": basis}


def of_waiting(first: Row, whole_share: float | None) -> Iterator[dict[str, Any]]:
    """The loop: how much it waits, how fast it goes, how fast it could go."""
    batches = f"{_batches(first['batches'])}, after the first quarter"
    yield evidence("time waiting for data", first["wait_share"], "share", "diagnose/load", batches)
    if whole_share is not None and abs(whole_share - first["wait_share"]) > 0.05:
        yield evidence("time waiting for data, start included", whole_share, "share", "step/data_wait", "all steps")
    yield evidence("throughput of the training", first["loop_rate"], "batches/s", "diagnose/load", batches)
    if first["consumer_rate"] is not None:
        yield evidence(
            "maximum throughput of the training itself",
            first["consumer_rate"],
            "batches/s",
            "diagnose/load",
            "without its wait for data",
        )


def of_stage(row: Row, rule: str) -> Iterator[dict[str, Any]]:
    """One operator: its capacity, how busy it is, its queues, and what its workers do."""
    who = label(row)
    if row["work_ns"] is not None:
        basis = f"{SOURCES.get(row['source'], row['source'])}, {_batches(row['timed_batches'])}"
        workers = f"{row['workers']} worker{'' if row['workers'] == 1 else 's'}"
        yield evidence(f"work per batch in {who}", row["work_ns"], "ns", "diagnose/load", basis)
        yield evidence(f"maximum throughput of {who}", row["rate"], "batches/s", "diagnose/load", workers)
        yield evidence(
            f"utilisation of {who}",
            row["utilisation"],
            "share",
            "diagnose/load",
            "throughput of the training / its maximum throughput",
        )
    else:
        yield evidence(
            f"drop in queue fill at {who}",
            row["drop_ratio"] or 0.0,
            "share",
            "diagnose/load",
            "it has no service times",
        )
    for side in ("input", "output"):
        if row[f"{side}_ratio"] is not None:
            yield evidence(
                f"fill of the queue {'in front of' if side == 'input' else 'behind'} {who}",
                row[f"{side}_ratio"],
                "share",
                "diagnose/load",
                f"{row['samples']} samples",
            )
    yield from _of_computing(row, who, rule)


def _of_computing(row: Row, who: str, rule: str) -> Iterator[dict[str, Any]]:
    if row["cpu_share"] is not None:
        yield evidence(
            f"computing, of the time {who} is busy",
            row["cpu_share"],
            "share",
            "diagnose/load",
            "thread CPU time",
        )
    if row["cores"] is not None and (rule in ("gil", "contention") or row["kind"] in ("gil", "cpu")):
        yield evidence(f"CPU of {who}", row["cores"], "cores", "diagnose/load", "mean")
    if row["gil_share"] is not None and (rule == "gil" or row["kind"] == "gil"):
        yield evidence(
            "Python code holds the interpreter's lock (GIL)", row["gil_share"], "share", "diagnose/load", "10 probes/s"
        )
    if row["kind"] in ("burst", "poll") and row["longest_ns"] is not None:
        yield evidence(f"usual longest row of {who}", row["longest_ns"], "ns", "diagnose/load", "per interval or batch")
    if row["kind"] == "poll" and row["law_row_ns"] is not None:
        yield evidence("least time between two rows", row["law_row_ns"], "ns", "diagnose/load", "100 ms polls")
    if row["idle_share"] is not None and row["kind"] in ("cpu", "gil"):
        yield evidence("idle part of the machine", row["idle_share"], "share", "diagnose/load", "host samples")


def label(row: Row) -> str:
    """An operator for people: its name if it has one, else its type and number."""
    return f"`{row['name']}`" if row["name"] else f"{row['op_type']} {row['op_id']}"


def stage_rows(rows: Sequence[Row], op_id: int) -> Row | None:
    """The row of one operator."""
    return next((row for row in rows if row["op_id"] == op_id), None)


def _batches(number: int | None) -> str:
    return f"{number or 0:,} batch{'' if number == 1 else 'es'}"
