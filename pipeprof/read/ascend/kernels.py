"""`kernel_details.csv` (and msprof's op_summary), however large: a few MB at a time, by column.

Column sets differ by level and version, so columns are found by name. Start times have 16 digits in front of the point
and end in a TAB: they are converted from their text. Rows of communication (`hcom_...`) are collectives, not operators.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pacsv

from pipeprof.read.ascend.columns import nanoseconds, nullable
from pipeprof.read.ascend.files import BROKEN, Sheet, cannot_read
from pipeprof.read.ascend.values import collective_kind, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeprof.read.ascend.out import Out

CLOCK = "epoch"
BLOCK_BYTES = 1 << 20
_COLUMNS = {
    "step": ("Step Id", "Step ID"), "name": ("Name", "Op Name"), "type": ("Type", "OP Type"),
    "core": ("Accelerator Core", "Task Type"), "start": ("Start Time(us)",),
    "dur": ("Duration(us)", "Task Duration(us)"), "wait": ("Wait Time(us)", "Task Wait Time(us)"),
    "stream": ("Stream ID", "Stream Id"), "inputs": ("Input Shapes",), "outputs": ("Output Shapes",),
}  # fmt: skip
_KEY = ("name", "type", "core", "inputs", "outputs")
_SEPARATOR = b"\x1f"


class Totals(NamedTuple):
    """(count, total in ns) of what is no communication, by (type, core)."""

    of: dict[tuple[str, str], list[int]]


def read_kernels(path: Path, out: Out) -> Totals:
    """Executions to `op`, communication to `collective`; returns the totals, for the check against op_statistic."""
    totals = Totals(defaultdict(lambda: [0, 0]))
    rows = 0
    for batch in _batches(path, out):
        rows += batch.num_rows
        out.progress(f"rank {out.rank}: {path.name}, {rows} rows")
        _add_batch(path, batch, out, totals)
    if not rows:
        out.notes.add("no_rows", f"`{path.name}` has a header and no rows")
    return totals


def _batches(path: Path, out: Out) -> Iterator[pa.RecordBatch]:
    sheet = Sheet(path)
    at = {name: sheet.index(*names) for name, names in _COLUMNS.items()}
    for name in ("name", "start", "dur"):
        sheet.need(*_COLUMNS[name])
    width = len(sheet.names)
    sheet.close()
    names = [f"c{index}" for index in range(width)]
    wanted = {name: f"c{index}" for name, index in at.items() if index is not None}

    def ragged(row: pacsv.InvalidRow) -> str:
        out.notes.count(path, f"row of {row.actual_columns} fields (the header has {row.expected_columns})")
        return "skip"

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            reader = pacsv.open_csv(
                stream,
                pacsv.ReadOptions(
                    use_threads=False, block_size=BLOCK_BYTES, column_names=names, skip_rows=1, encoding="latin-1"
                ),
                pacsv.ParseOptions(invalid_row_handler=ragged),
                pacsv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.binary()), include_columns=list(wanted.values())
                ),
            )
            for batch in reader:
                yield batch.rename_columns(list(wanted))
    except (*BROKEN, pa.ArrowException) as error:
        if "Empty CSV" not in str(error):
            raise cannot_read(path, error) from error


def _add_batch(path: Path, batch: pa.RecordBatch, out: Out, totals: Totals) -> None:
    start, has_start = nanoseconds(batch["start"])
    dur, has_dur = nanoseconds(batch["dur"])
    good = has_start & has_dur & (dur >= 0) & (start >= 0)
    if not good.all():
        out.notes.count(path, "row without a start and a duration", int((~good).sum()))
        batch = batch.filter(pa.array(good))
        start, dur = start[good], dur[good]
    if not len(start):
        return
    keys, codes = _keys(batch)
    steps = _steps(batch, out)
    ids = np.array([-1 if _is_communication(key) else _operator(key, out) for key in keys], np.int64)[codes]
    is_op = ids >= 0
    _sum_up(keys, codes, dur, totals)
    zero = out.zeros.get(CLOCK, 0)
    for edge in (start.min(), (start + dur).max()):
        out.at(int(edge), CLOCK)
    wait, has_wait = nanoseconds(batch["wait"]) if "wait" in batch.schema.names else (dur, np.zeros(len(dur), bool))
    track = _tracks(batch)
    columns = {
        "op_id": pa.array(ids), "step": steps, "start_ns": pa.array(start - zero), "dur_ns": pa.array(dur),
        "self_ns": pa.array(dur), "wait_ns": nullable(wait, has_wait & (wait >= 0)), "track": track,
    }  # fmt: skip
    mask = pa.array(is_op)
    out.add_columns("op", {name: column.filter(mask) for name, column in columns.items()}, int(is_op.sum()))
    for index in np.flatnonzero(~is_op):
        key = keys[codes[index]]
        out.add(
            "collective", step=steps[index].as_py(), name=key[0], kind=collective_kind(key[0]),
            group_name=_group(key[0]),
            track=track[index].as_py(), start_ns=int(start[index]) - zero, dur_ns=int(dur[index]),
        )  # fmt: skip


def _keys(batch: pa.RecordBatch) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
    """Different operators of a batch (name, type, core, input and output shapes), and which one each row is."""
    empty = pa.array([b""] * batch.num_rows, pa.binary())
    parts = [batch[name] if name in batch.schema.names else empty for name in _KEY]
    joined = pc.binary_join_element_wise(*parts, pa.scalar(_SEPARATOR, pa.binary()))
    encoded = joined.dictionary_encode()
    keys = [_key(key) for key in encoded.dictionary.to_pylist()]
    return keys, np.asarray(encoded.indices).astype(np.int64)


@lru_cache(maxsize=1 << 14)
def _key(joined: bytes) -> tuple[str, ...]:
    text = joined.decode().encode("latin-1").decode("utf-8", "replace")  # every byte was read as a character
    fields = (text.split("\x1f") + [""] * len(_KEY))[: len(_KEY)]
    return tuple(field.strip().strip('"') for field in fields)


def _operator(key: tuple[str, ...], out: Out) -> int:
    name, kind, core, inputs, outputs = (None if part in ("", "N/A") else part for part in key)
    return out.op_id(name, kind, core, inputs, out_shapes=outputs)


def _is_communication(key: tuple[str, ...]) -> bool:
    return key[0].startswith("hcom_") or key[2] in ("HCCL", "COMMUNICATION")


def _group(name: str) -> str | None:
    """Group in a name such as `hcom_allReduce__586_0_1`."""
    middle = name.partition("__")[2].partition("_")[0]
    return middle or None


def _steps(batch: pa.RecordBatch, out: Out) -> pa.Array:
    if "step" not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.int64())
    encoded = batch["step"].dictionary_encode()
    numbers = [whole(text.decode("utf-8", "replace")) for text in encoded.dictionary.to_pylist()]
    known = out.steps.source is not None
    found = [
        None if number is None else out.steps.position(number) if known else out.steps.know(number)
        for number in numbers
    ]
    return pa.array(found, pa.int64()).take(encoded.indices)


def _tracks(batch: pa.RecordBatch) -> pa.Array:
    if "stream" not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.string())
    encoded = batch["stream"].dictionary_encode()
    shown = [whole(text.decode("utf-8", "replace")) for text in encoded.dictionary.to_pylist()]
    return pa.array([None if one is None else f"stream {one}" for one in shown], pa.string()).take(encoded.indices)


def _sum_up(keys: list[tuple[str, ...]], codes: NDArray[np.int64], dur: NDArray[np.int64], totals: Totals) -> None:
    counts = np.bincount(codes, minlength=len(keys))
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, codes, dur)
    for key, count, total in zip(keys, counts.tolist(), sums.tolist(), strict=True):
        if not _is_communication(key):
            entry = totals.of[key[1], key[2]]
            entry[0] += count
            entry[1] += total
