"""What becomes a counter or an arrow: queues, service times, CPU, memory, counters of the source, flows."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.report.timeline.read import batches, distinct, integers
from pipeprof.report.timeline.text import NONE, counter_text, flow_text, microseconds_text, quoted
from pipeprof.report.timeline.tracks import TRACK
from pipeprof.report.words.busy import title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipeprof.record.run import Share
    from pipeprof.report.timeline.clock import Process
    from pipeprof.report.timeline.tracks import Tracks

TABLES = ("queue", "fetch", "op_service", "cpu", "memory", "counter", "flow")
SIDES = {
    "iterator": "ready for the loop", "host_queue": "host queue, before the device",
    "data_queue": "data queue, on the device",
}  # fmt: skip
_FLOW = {"start": "s", "step": "t", "end": "f"}
_FLOW_COLUMNS = ("t_ns", "track", "category", "name", "side", "flow_id")
_SHORT = "^[0-9]{1,11}$"


class Counter(NamedTuple):
    """One column of a table as a counter: what tells the counters apart, and the name that they get from it."""

    table: str
    keys: tuple[str, ...]
    value: str
    series: str
    name: Callable[..., str]
    at: str = "t_ns"  # its column of times


class PipelineNames:
    """Names of pipelines and of their operators for people, such as `2 MapOp flip`."""

    def __init__(self, files: Callable[[str], Sequence[Share]]) -> None:
        self._roles = {
            row["pipeline_id"]: row["role"] for row in _rows(files("pipeline"), ("pipeline_id", "role"))
        }  # fmt: skip
        columns = ("pipeline_id", "op_id", "op_type", "name")
        self._ops = {(row["pipeline_id"], row["op_id"]): row for row in _rows(files("pipeline_op"), columns)}

    def pipeline(self, number: object) -> str:
        """`pipeline 0 (train)`."""
        role = self._roles.get(number)
        return f"pipeline {number}" + (f" ({role})" if role else "")

    def op(self, pipeline: object, op_id: object) -> str:
        """`pipeline 0 (train) · 2 MapOp flip`."""
        row = self._ops.get((pipeline, op_id), {})
        words = [str(word) for word in (op_id, row.get("op_type"), row.get("name")) if word not in (None, "")]
        return f"{self.pipeline(pipeline)} · {' '.join(words)}"


def counters(names: PipelineNames) -> list[Counter]:
    """Every counter."""
    op, owner = ("pipeline_id", "op_id"), ("scope", "name", "pid", "pipeline_id", "op_id")

    def cpu(scope: object, name: object, pid: object, pipeline: object, op_id: object) -> str:
        if scope == "pipeline_op":
            return f"cpu: {names.op(pipeline, op_id)}"
        if scope == "lock_wait":
            return f"threads waiting for the lock: {names.op(pipeline, op_id)}"
        return "cpu: " + " ".join(str(word) for word in (scope, name, pid) if word is not None)

    def memory(device: object, name: object, pid: object) -> str:
        return "memory: " + " ".join(str(word) for word in (device, name, pid) if word is not None)

    held = ("allocated_bytes", "reserved_bytes", "active_bytes", "rss_bytes")
    return [
        Counter("queue", op, "depth", "depth", lambda *key: f"queue: {names.op(*key)}"),
        Counter("fetch", ("side",), "depth", "depth", lambda side: f"batches: {SIDES.get(side, side)}", "start_ns"),
        Counter("op_service", op, "avg_ns", "us per row", lambda *key: f"service: {names.op(*key)}"),
        *(Counter("cpu", owner, f"{kind}_ratio", kind, cpu) for kind in ("user", "sys", "idle")),
        *(Counter("memory", ("device", "name", "pid"), value, value, memory) for value in held),
    ]


def counter_texts(process: Process, files: Sequence[Share], counter: Counter) -> Iterator[tuple[int, memoryview]]:
    """Number and text of a counter's readings."""
    columns = ("t_ns", *counter.keys, counter.value)
    for table in batches(files, (counter.at, *columns[1:]), process.first_ns, process.last_ns):
        rows = _drawn(table.rename_columns(columns), process, counter.value)
        if rows.num_rows:
            kinds, keys = distinct(rows, counter.keys)
            heads = [_head("C", process.pid, 0, counter.name(*key)) for key in keys]
            tail = f',"cat":"counter","args":{{{quoted(counter.series)}:'
            yield rows.num_rows, _readings(process, rows, counter.value, (heads, kinds), [tail] * len(keys))


def source_counter_texts(process: Process, files: Sequence[Share]) -> Iterator[tuple[int, memoryview]]:
    """Number and text of the readings of the source's own counters."""
    for table in batches(files, ("t_ns", "track", "name", "series", "value"), process.first_ns, process.last_ns):
        rows = _drawn(table, process, "value")
        if rows.num_rows:
            kinds, keys = distinct(rows, ("track", "name", "series"))
            heads = [_head("C", process.pid, 0, f"{track}: {name}") for track, name, _ in keys]
            tails = [f',"cat":"counter","args":{{{quoted(series or "value")}:' for *_, series in keys]
            yield rows.num_rows, _readings(process, rows, "value", (heads, kinds), tails)


def busy_texts(process: Process, rows: Sequence[dict[str, Any]]) -> Iterator[tuple[int, memoryview]]:
    """Number and text of how busy each device is, of rows of op/busy_curve; 0 where its operators are not recorded."""
    for device in dict.fromkeys(row["device"] for row in rows):
        here = [row for row in rows if row["device"] == device]
        readings: list[tuple[int, float]] = []
        for row, after in zip(here, [*here[1:], None], strict=True):
            readings.append((row["start_ns"], row["busy_share"]))
            if after is None or after["start_ns"] > row["end_ns"]:
                readings.append((row["end_ns"], 0.0))
        inside = [(at, share) for at, share in readings if process.first_ns <= at <= process.last_ns]
        points = [one for at, one in enumerate(inside) if not at or one[1] != inside[at - 1][1]]
        if points:
            head, tail = _head("C", process.pid, 0, f"busy: {title(device)}"), ',"cat":"counter","args":{"share":'
            at = np.array([at for at, _ in points], np.int64) + process.offset_ns
            shares = pa.array([share for _, share in points], pa.float64())
            yield len(points), counter_text(at, pa.array([head] * len(points)), pa.array([tail] * len(points)), shares)


def flow_texts(process: Process, files: Sequence[Share], tracks: Tracks) -> Iterator[tuple[int, memoryview]]:
    """Number and text of ends of arrows. Ids are made the rank's own, see `_ids`."""
    for table in batches(files, _FLOW_COLUMNS, process.first_ns, process.last_ns):
        rows = _drawn(table, process, "flow_id")
        if rows.num_rows:
            kinds, keys = distinct(rows, ("track", "category", "name", "side"))
            heads, tails = [], []
            for track, category, name, side in keys:
                phase = _FLOW.get(str(side), "t")
                heads.append(
                    _head(phase, process.pid, tracks.number(TRACK, str(track or "(unknown)")), str(name or category))
                )
                tails.append(f',"cat":{quoted(category or "flow")},' + ('"bp":"e",' if phase == "f" else "") + '"id":')
            ids = _ids(rows.column("flow_id"), process.pid)
            at = integers(rows, "t_ns") + process.offset_ns
            yield rows.num_rows, flow_text(at, _by(heads, kinds), _by(tails, kinds), ids)


def _readings(
    process: Process,
    rows: pa.Table,
    value: str,
    named: tuple[Sequence[str], np.typing.NDArray[np.int64]],
    tails: Sequence[str],
) -> memoryview:
    heads, kinds = named
    values = rows.column(value).combine_chunks()
    if value.endswith("_ns"):
        values = microseconds_text(integers(rows, value))
    at = integers(rows, "t_ns") + process.offset_ns
    return counter_text(at, _by(heads, kinds), _by(tails, kinds), values)


def _drawn(table: pa.Table, process: Process, value: str) -> pa.Table:
    """Rows by time that have a time within the process's and a value; infinite numbers are none."""
    at = integers(table, "t_ns", NONE)
    mask = pa.array((at >= process.first_ns) & (at <= process.last_ns))
    column = table.column(value)
    mask = pc.and_(mask, pc.is_valid(column))
    if pa.types.is_floating(column.type):
        mask = pc.and_(mask, pc.fill_null(pc.is_finite(column), fill_value=False))
    rows = table.filter(mask)
    at = integers(rows, "t_ns")
    return rows if bool((np.diff(at) >= 0).all()) else rows.take(pa.array(np.argsort(at, kind="stable")))


def _head(phase: str, pid: int, tid: int, name: str) -> str:
    return f',\n{{"ph":"{phase}","pid":{pid},"tid":{tid},"name":{quoted(name)},"ts":'


def _by(texts: Sequence[str], kinds: np.typing.NDArray[np.int64]) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(kinds))


def _ids(column: pa.ChunkedArray, pid: int) -> pa.Array:
    """Ids as Perfetto reads them: texts of at most 16 hexadecimal digits, whatever the source has.

    Up to 11 decimal digits stay, behind the process number and an `a`; anything else becomes a hash.
    """
    texts = column.combine_chunks()
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    texts = texts.cast(pa.string())
    made = pc.binary_join_element_wise(pa.scalar(f'"{pid}a'), texts, pa.scalar('"'), "")
    short = pc.match_substring_regex(texts, _SHORT)
    if pc.all(short).as_py():
        return made
    long = pc.filter(texts, pc.invert(short)).dictionary_encode()
    hashed = [f'"f{_hash(f"{pid}:{text}")}"' for text in long.dictionary.to_pylist()]
    return pc.replace_with_mask(made, pc.invert(short), pa.array(hashed, made.type).take(long.indices))


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=7).hexdigest()


def _rows(files: Sequence[Share], columns: tuple[str, ...]) -> Iterator[dict[str, object]]:
    return (row for table in batches(files, columns) for row in table.to_pylist())
