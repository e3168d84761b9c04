"""`kernel_details.csv` (and msprof's op_summary), however large: a few MB at a time, by column.

Column sets differ by level and version, so columns are found by name. Start times have 16 digits in front of the point
and end in a TAB: they are converted from their text. Rows of communication (`hcom_...`) are collectives, not operators.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pacsv

from pipeprof.read.mindspore_ops import collective_kind
from pipeprof.read.source.content import BROKEN, cannot_read
from pipeprof.read.source.numbers import Ints, integer, nanoseconds
from pipeprof.read.source.sheet import Sheet, line_blocks
from pipeprof.read.tables.rows import LONGEST
from pipeprof.read.tables.writer import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

Totals = dict[tuple[str, str], list[int]]
CLOCK = "epoch"
BLOCK_BYTES = 1 << 20
SHORT_ROWS = 10_000  # with fewer fields than the header, that are used
_COLUMNS = {
    "step": ("Step Id", "Step ID"), "name": ("Name", "Op Name"), "type": ("Type", "OP Type"),
    "core": ("Accelerator Core", "Task Type"), "start": ("Start Time(us)", "Task Start Time(us)"),
    "dur": ("Duration(us)", "Task Duration(us)"), "wait": ("Wait Time(us)", "Task Wait Time(us)"),
    "stream": ("Stream ID", "Stream Id"), "device": ("Device_id",), "inputs": ("Input Shapes",),
    "outputs": ("Output Shapes",),
}  # fmt: skip
_KEY = ("name", "type", "core", "inputs", "outputs")
_SEPARATOR = b"\x1f"
REMEMBERED = 50_000  # operators with shapes, whose text need not be looked at again
MOST_TYPES = 20_000  # whose totals are kept for the check


def read_kernels(path: Path, out: Out, totals: Totals) -> bool:
    """Executions to `op`, communication to `collective`; True at the end. Adds to the totals, for op_statistic's check.

    These are (count, total in ns) of what is no communication, by (type, core): of the first `MOST_TYPES`.
    """
    kernels = _Kernels(out, totals)
    rows, devices = 0, set[bytes]()
    for batch in _batches(path, out):
        rows += batch.num_rows
        devices |= set(batch["device"].unique().to_pylist()) if "device" in batch.schema.names else set()
        out.progress(f"rank {out.rank}: {path.name}, {rows} rows")
        _add_batch(path, batch, out, kernels)
    if not rows:
        out.notes.add("no_rows", f"`{path.name}` has a header and no rows")
    if len(devices) > 1:
        out.notes.add("devices", f"`{path.name}` holds operators of {len(devices)} devices, which are one rank here")
    return True


def _batches(path: Path, out: Out) -> Iterator[pa.RecordBatch]:
    """The wanted columns as text, some thousands of rows at a time; short rows come last."""
    sheet = Sheet(path)
    at = {name: sheet.index(*names) for name, names in _COLUMNS.items()}
    for name in ("name", "start", "dur"):
        sheet.need(*_COLUMNS[name])
    width = len(sheet.names)
    sheet.close()
    names = [f"c{index}" for index in range(width)]
    wanted = {name: f"c{index}" for name, index in at.items() if index is not None}
    short = _Short(path, {name: index for name, index in at.items() if index is not None}, out)
    try:
        for number, block in enumerate(line_blocks(path, BLOCK_BYTES)):
            table = _parsed(block, names, list(wanted.values()), short, header=number == 0)
            yield from table.rename_columns(list(wanted)).to_batches()
    except (*BROKEN, pa.ArrowException) as error:
        raise cannot_read(path, error) from error
    if short.rows:
        yield short.batch()


def _parsed(block: bytes, names: list[str], wanted: list[str], short: _Short, *, header: bool) -> pa.Table:
    """The wanted columns of a block of lines, as text.

    Arrow's own reader of a stream leaves a thread behind that now and then asks Python for more while the interpreter
    ends, and so ends the process with a signal.
    """
    options = pacsv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names, skip_rows=int(header))
    types = dict.fromkeys(names, pa.binary())
    try:
        return pacsv.read_csv(
            pa.BufferReader(block), options, pacsv.ParseOptions(invalid_row_handler=short.take),
            pacsv.ConvertOptions(column_types=types, include_columns=wanted),
        )  # fmt: skip
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            raise
        return pa.table({name: pa.array([], pa.binary()) for name in wanted})


class _Short:
    """Rows with fewer fields than the header: used where what they lack stands behind everything that is read."""

    def __init__(self, path: Path, at: dict[str, int], out: Out) -> None:
        self.rows: list[list[str]] = []
        self._path, self._at, self._out = path, at, out
        self._needed = max(index for name, index in at.items() if name in ("name", "start", "dur")) + 1

    def take(self, row: pacsv.InvalidRow) -> str:
        """Keep a row for later. The last field of a short row may have been cut off, so it must not be needed."""
        fields = [] if row.actual_columns > row.expected_columns else next(csv.reader([row.text or ""]), [])
        if len(fields) > self._needed and len(self.rows) < SHORT_ROWS:
            self.rows.append([fields[index] if index < len(fields) - 1 else "" for index in self._at.values()])
        else:
            what = f"row with another number of fields than the header, which has {row.expected_columns}"
            self._out.odd(self._path, what, f"{row.actual_columns} fields")
        return "skip"

    def batch(self) -> pa.RecordBatch:
        """All that were kept."""
        columns = [pa.array([text.encode() for text in column], pa.binary()) for column in zip(*self.rows, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names=list(self._at))


class _Kernel(NamedTuple):
    """An operator with its shapes: `key` as in `_KEY`, its id (-1 for communication), and its entry in the totals."""

    key: tuple[str, ...]
    op_id: int
    total: list[int] | None


class _Kernels:
    """Operators of a file by the text of their columns, so that each is looked at once."""

    def __init__(self, out: Out, totals: Totals) -> None:
        self._out, self._totals = out, totals
        self._kernels: dict[bytes, _Kernel] = {}

    def of(self, batch: pa.RecordBatch) -> tuple[list[_Kernel], Ints]:
        """Different operators of a batch, and which one each row is."""
        there = [name for name in _KEY if name in batch.schema.names]
        joined = pc.binary_join_element_wise(*(batch[name] for name in there), pa.scalar(_SEPARATOR, pa.binary()))
        encoded = joined.dictionary_encode()
        places = [_KEY.index(name) for name in there]
        if len(self._kernels) > REMEMBERED:
            self._kernels.clear()
        kernel_of = self._kernels
        kernels = [kernel_of.get(text) or self._new(text, places) for text in encoded.dictionary.to_pylist()]
        return kernels, np.asarray(encoded.indices).astype(np.int64)

    def _new(self, text: bytes, places: list[int]) -> _Kernel:
        fields = [""] * len(_KEY)
        for position, part in zip(places, text.decode("utf-8", "replace").split("\x1f"), strict=False):
            fields[position] = part.strip().strip('"')
        name, kind, core, inputs, outputs = (None if part in ("", "N/A") else part for part in fields)
        if fields[0].startswith("hcom_") or fields[2] in ("HCCL", "COMMUNICATION"):
            made = _Kernel(tuple(fields), -1, None)
        else:
            op_id = self._out.operator(name, kind, core, inputs, out_shapes=outputs)
            where = (fields[1], fields[2])
            counted = len(self._totals) < MOST_TYPES or where in self._totals
            made = _Kernel(tuple(fields), op_id, self._totals.setdefault(where, [0, 0]) if counted else None)
        self._kernels[text] = made
        return made


def _add_batch(path: Path, batch: pa.RecordBatch, out: Out, kernels: _Kernels) -> None:
    start, has_start = nanoseconds(batch["start"])
    dur, has_dur = nanoseconds(batch["dur"])
    good = has_start & has_dur & (dur >= 0) & (start >= 0)
    if not good.all():
        out.notes.count(path, "row without a start and a duration", int((~good).sum()))
        batch = batch.filter(pa.array(good))
        start, dur = start[good], dur[good]
    if not len(start):
        return
    for edge in (start.min(), (start + dur).max()):
        out.at(int(edge), CLOCK)
    operators, codes = kernels.of(batch)
    _sum_up(operators, codes, dur)
    ids = np.array([kernel.op_id for kernel in operators], np.int64)[codes]
    lengths = pa.array(dur)
    common = {
        "step": _steps(path, batch, start, out), "track": _tracks(batch),
        "start_ns": pa.array(start - out.zeros.get(CLOCK, 0)), "dur_ns": lengths,
    }  # fmt: skip
    own = {"op_id": pa.array(ids), "self_ns": lengths}
    if "wait" in batch.schema.names:
        wait, has_wait = nanoseconds(batch["wait"])
        own["wait_ns"] = numbers(wait, has_wait & (wait >= 0))
    is_op = ids >= 0
    out.add_columns("op", {**common, **own}, is_op)
    if not is_op.all():
        out.add_columns("collective", {**common, **_collective(operators, codes)}, ~is_op)


def _collective(operators: list[_Kernel], codes: Ints) -> dict[str, pa.Array]:
    """Columns of `collective` alone."""
    names = [kernel.key[0] for kernel in operators]
    facts = {
        "name": [name[:LONGEST] for name in names], "kind": [collective_kind(name) for name in names],
        "group_name": [name.partition("__")[2].partition("_")[0] or None for name in names],  # hcom_allReduce__586_0_1
    }  # fmt: skip
    return {name: pa.array(values, pa.string()).take(pa.array(codes)) for name, values in facts.items()}


def _steps(path: Path, batch: pa.RecordBatch, start: Ints, out: Out) -> pa.Array:
    """The step that a row names; where rows name none, the one that it starts in."""
    if "step" not in batch.schema.names:
        if out.steps.clock not in (None, CLOCK):
            out.notes.add("steps", f"`{path.name}` names no steps, and theirs is another clock: its rows have no step")
        return out.steps.all_at(start, CLOCK)
    return _by_number(batch["step"], out.step_of, pa.int64())


def _tracks(batch: pa.RecordBatch) -> pa.Array:
    if "stream" not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.string())
    return _by_number(batch["stream"], lambda one: None if one is None else f"stream {one}", pa.string())


def _by_number(column: pa.Array, value_of: Callable[[int | None], Any], kind: pa.DataType) -> pa.Array:
    """What the whole numbers in a column of text stand for."""
    encoded = column.dictionary_encode()
    shown = [integer(text.decode("utf-8", "replace")) for text in encoded.dictionary.to_pylist()]
    return pa.array(list(map(value_of, shown)), kind).take(encoded.indices)


def _sum_up(operators: list[_Kernel], codes: Ints, dur: Ints) -> None:
    counts = np.bincount(codes, minlength=len(operators))
    sums = np.zeros(len(operators), np.int64)
    np.add.at(sums, codes, dur)
    for kernel, count, total in zip(operators, counts.tolist(), sums.tolist(), strict=True):
        if kernel.total is not None:
            kernel.total[0] += count
            kernel.total[1] += total
