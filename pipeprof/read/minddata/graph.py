"""Operators of a dataset graph and the fill of their queues: pipeline_profiling JSON and minddata_pipeline_raw CSV."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.minddata.files import JSON_BYTES, LARGEST_MS, integer, read_json, whole_number
from pipeprof.read.source.content import lines, listed
from pipeprof.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeprof.read.tables.share import Notes

_LARGEST_ID = 1 << 31
_MOST_OPS = 1 << 16  # no graph is written with as many
_CSV_COLUMNS = ("op_id", "op_type", "num_workers", "output_queue_size", "output_queue_length", "children_id")
_USAGE = "output_queue_usage_rate"  # mean fill; the JSON file has the samples alone
_HINT = "the file was damaged or edited: restore it, or remove it"


@dataclass
class PipelineOp:
    """One operator: `capacity` and `depths` are None and empty for one that runs inside its consumer.

    A depth is None where the file has no possible value. `stated_ratio` is the mean fill as the file states it.
    """

    op_id: int
    op_type: str
    workers: int | None
    children: list[int]
    capacity: int | None = None
    depths: list[int | None] = field(default_factory=list)
    cpu: list[tuple[float | None, float | None]] = field(default_factory=list)
    has_queue: bool = False
    stated_ratio: float | None = None

    def keep(self, samples: Sequence[int]) -> None:
        """Leave the samples at these positions, as far as there are any."""
        self.cpu = [self.cpu[index] for index in samples if index < len(self.cpu)]
        self.depths = [self.depths[index] for index in samples if index < len(self.depths)]


@dataclass
class Graph:
    """Operators by id, and the nominal sampling interval (None when the file does not say)."""

    ops: list[PipelineOp]
    interval_ns: int | None


def read_pipeline(path: Path, notes: Notes) -> Graph:
    """Read a pipeline_profiling file.

    Impossible depths, capacities and worker numbers become None and are counted in `notes`. Raises SourceError when
    the file cannot be parsed, or its operators are no tree: an id twice, a child that is not there, an operator with
    two consumers, a cycle.
    """
    content = read_json(path)
    entries = content.get("op_info")
    if not isinstance(entries, list):
        raise SourceError(f"damaged `{path}`: no operators, expected op_info with op_id and op_type", _HINT)
    ops = [_operator(path, entry, notes) for entry in entries]
    _tell_unsampled(path, ops, notes)
    return Graph(_tree(path, ops), _interval(content.get("sampling_interval")))


def read_raw_csv(path: Path, notes: Notes) -> Graph:
    """As `read_pipeline`, from a minddata_pipeline_raw file: operators without a queue are mostly not in it."""
    rows = csv.reader(lines(path, most=JSON_BYTES))
    try:
        table = [row for row in rows if row]
    except csv.Error as error:
        raise SourceError(f"damaged `{path}`: {error}", _HINT) from error
    header = [cell.strip().lstrip("\ufeff") for cell in table[0]] if table else []
    missing = [name for name in _CSV_COLUMNS if name not in header]
    if missing or len(table) < 2:
        what = f"no column {', '.join(missing)}" if missing else "no operators"
        raise SourceError(f"damaged `{path}`: {what}, expected a header and one row for each operator", _HINT)
    ops = []
    interval = None
    for number, row in enumerate(table[1:], start=2):
        if len(row) != len(header):
            raise SourceError(
                f"damaged `{path}`: row {number} has {len(row)} cells, expected {len(header)}",
                "the process may have been killed while writing it",
            )
        cells = dict(zip(header, row, strict=True))
        interval = interval or _interval(integer(cells.get("sample_interval", "")))
        ops.append(_operator(path, _csv_entry(path, cells), notes))
    _tell_unsampled(path, ops, notes)
    return Graph(_tree(path, ops), interval)


def unmatched(path: Path, ops: Sequence[PipelineOp], times: int) -> list[str]:
    """Says which operators have more than one size too many or too few for that many sample times."""
    return [
        f"queue sizes and sample times differ in length for operator {op.op_id}: "
        f"{len(op.depths)} sizes, {times} times; the surplus was left out (`{path.name}`)"
        for op in ops
        if op.depths and abs(len(op.depths) - times) > 1
    ]


def structure_key(ops: Sequence[PipelineOp]) -> str:
    """Hash of the operators' types and of who hands on to whom: equal for the same graph in another run."""
    facts = [[op.op_id, op.op_type, op.children] for op in ops]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def _operator(path: Path, entry: Any, notes: Notes) -> PipelineOp:
    if not isinstance(entry, dict):
        raise SourceError(f"damaged `{path}`: an operator is {type(entry).__name__}, expected an object", _HINT)
    number, kind = whole_number(entry.get("op_id"), _LARGEST_ID), entry.get("op_type")
    children = [whole_number(child, _LARGEST_ID) for child in listed(entry.get("children"))]
    if number is None or not isinstance(kind, str) or not kind or None in children:
        fields = {name: entry.get(name) for name in ("op_id", "op_type", "children")}
        raise SourceError(f"damaged `{path}`: {str(fields)[:200]}, expected op_info with op_id and op_type", _HINT)
    metrics = entry.get("metrics")
    queue = metrics.get("output_queue") if isinstance(metrics, dict) else None
    workers = whole_number(entry.get("num_workers"), _LARGEST_ID)
    if workers is None and entry.get("num_workers") is not None:
        notes.count(path, f"operator {number}: impossible number of workers")
    kind = kind.encode("utf-8", "replace").decode()
    op = PipelineOp(number, kind, workers, [child for child in children if child is not None])
    if isinstance(queue, dict):
        _add_queue(path, op, queue, notes)
    return op


def _add_queue(path: Path, op: PipelineOp, queue: Mapping[str, Any], notes: Notes) -> None:
    op.has_queue = True
    op.capacity = whole_number(queue.get("length"))
    if op.capacity is None:
        notes.count(path, f"operator {op.op_id}: impossible capacity")
    op.stated_ratio = _share(queue.get("usage_rate"))
    if op.stated_ratio is None and queue.get("usage_rate") is not None:
        notes.count(path, f"operator {op.op_id}: impossible usage rate")
    sizes = listed(queue.get("size"))
    op.depths = [whole_number(size) for size in sizes]
    notes.count(path, f"operator {op.op_id}: depth is not a whole number of 0 or more", op.depths.count(None))
    if op.capacity is not None:
        above = sum(depth is not None and depth > op.capacity for depth in op.depths)
        notes.count(path, f"operator {op.op_id}: depth above the capacity of {op.capacity}", above)
        op.depths = [depth if depth is not None and depth <= op.capacity else None for depth in op.depths]


def _tell_unsampled(path: Path, ops: Sequence[PipelineOp], notes: Notes) -> None:
    """Say which queues have no samples where others have; without any the run ended before the first."""
    if any(op.depths for op in ops):
        for op in ops:
            if op.has_queue and not op.depths:
                notes.add("no_samples", f"`{path.name}`: operator {op.op_id} has a queue and no samples")


def _csv_entry(path: Path, cells: Mapping[str, str]) -> dict[str, Any]:
    sizes, children = (_csv_list(path, cells[name]) for name in ("output_queue_size", "children_id"))
    length = cells["output_queue_length"].strip()
    queue = None
    if sizes or length:
        queue = {
            "size": sizes,
            "length": integer(length) if length.isdigit() else _number(length),
            "usage_rate": cells.get(_USAGE, "").strip() or None,
        }
    return {
        "op_id": integer(cells["op_id"].strip()),
        "op_type": cells["op_type"].strip(),
        "num_workers": integer(cells["num_workers"].strip()),
        "children": children,
        "metrics": {"output_queue": queue} if queue else None,
    }


def _share(text: Any) -> float | None:
    share = _number(text) if isinstance(text, str) else None
    return share if share is not None and 0 <= share <= 1 else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _csv_list(path: Path, text: str) -> list[Any]:
    if not text.strip():
        return []
    try:
        content = json.loads(text, parse_constant=lambda _name: None)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, list):
        raise SourceError(f"damaged `{path}`: {text[:60]!r}, expected a list in brackets", _HINT)
    return content


def _interval(value: object) -> int | None:
    interval_ms = whole_number(value, LARGEST_MS)
    return interval_ms * NS_PER_MS if interval_ms else None


def _tree(path: Path, ops: Sequence[PipelineOp]) -> list[PipelineOp]:
    """The operators by id. Raises SourceError unless each is the child of at most one other and none of itself."""
    if len(ops) > _MOST_OPS:
        raise SourceError(f"damaged `{path}`: {len(ops):,} operators, expected at most {_MOST_OPS:,}", _HINT)
    by_id = {op.op_id: op for op in ops}
    consumer: dict[int, int] = {}
    if len(by_id) != len(ops):
        twice = Counter(op.op_id for op in ops).most_common(1)[0][0]
        raise SourceError(f"damaged `{path}`: op_id {twice} more than once, expected one operator for each id", _HINT)
    for op in ops:
        for child in op.children:
            if child not in by_id:
                raise SourceError(
                    f"damaged `{path}`: operator {op.op_id} has the child {child}, which is not in the file", _HINT
                )
            if child in consumer:
                raise SourceError(
                    f"damaged `{path}`: operator {child} is the child of {consumer[child]} and of {op.op_id}, "
                    "expected one consumer",
                    _HINT,
                )
            consumer[child] = op.op_id
    checked: set[int] = set()  # to lead to the end
    for number in by_id:
        way: dict[int, None] = {}
        at: int | None = number
        while at is not None and at not in checked:
            if at in way:
                raise SourceError(f"damaged `{path}`: operator {at} is its own producer, expected a tree", _HINT)
            way[at] = None
            at = consumer.get(at)
        checked.update(way)
    return [by_id[number] for number in sorted(by_id)]
