"""Tables of one rank while they are being written: rows leave memory as they come.

Times go in as ns of their own clock. Files of one rank may be on several: `counter` (the device's, from files of
10 ns ticks), `epoch`, `raw` (CLOCK_MONOTONIC_RAW). Each clock has its own zero; nothing relates them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.errors import RunError
from pipeprof.read.ascend.steps import Steps
from pipeprof.read.ascend.values import phase_of
from pipeprof.read.minddata.files import Notes
from pipeprof.record import limits, store
from pipeprof.record.schema import BY_NAME
from pipeprof.record.text import reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeprof.record.run import Run

ROWS = 1 << 14  # that wait in memory as rows, of a table
GROUP_ROWS = 1 << 16  # that wait as columns, and are then written at once
OPERATORS = 200_000  # that are told apart by name; of more, only the types
OPERATOR_TEXT = 64 << 20  # characters of their names, types and shapes together
TEXT = 4_000  # characters of a name or of shapes
_TYPE = 100  # characters of a type that counts beyond that
_NAMES = {name: table.column_names for name, table in BY_NAME.items()}


class Out:
    """One rank's tables. `notes` gathers what was odd, `steps` what is known of the rank's steps."""

    def __init__(self, run: Run, rank: int, zeros: Mapping[str, int], progress: Callable[[str], None]) -> None:
        self.run = run
        self.rank = rank
        self.zeros = zeros
        self.progress = progress
        self.notes = Notes()
        self.steps = Steps()
        self.sources: str | None = None
        self.counts: dict[str, int] = {}
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        self._rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._columns: dict[str, list[pa.Table]] = defaultdict(list)
        self._writers: dict[str, tuple[pq.ParquetWriter, Any, Any]] = {}
        self._most = limits.most_imported_rows()
        self._ops: dict[tuple[str | None, str | None, str | None, str | None], int] = {}
        self._op_text = 0
        self._odd: dict[tuple[str, str], str] = {}
        self._before: dict[str, int] = {}
        self.info: dict[str, dict[str, Any]] = {}

    def odd(self, path: Path, what: str, where: str) -> None:
        """One more value of a file that was left out for this reason; of all these, the place of the first is said."""
        first = self._odd.setdefault((path.name, what), where)
        self.notes.count(path, f"{what} (first: {first})")

    def at(self, time_ns: int, clock: str) -> int:
        """A time of a clock as ns since that clock's zero; remembers the first and the last."""
        value = time_ns - self.zeros.get(clock, 0)
        self.first[clock] = min(self.first.get(clock, value), value)
        self.last[clock] = max(self.last.get(clock, value), value)
        return value

    def add(self, table: str, **values: Any) -> None:
        """Append a row; columns that are not given are null."""
        rows = self._rows[table]
        rows.append(tuple(values.pop(name, None) for name in _NAMES[table]))
        if values:
            raise KeyError(f"{table}: {sorted(values)}")
        if len(rows) >= ROWS:
            self._gather(table)

    def add_columns(self, table: str, columns: Mapping[str, pa.Array], chosen: NDArray[np.bool_]) -> None:
        """Append the chosen rows by column; columns that are not given are null."""
        count = int(np.count_nonzero(chosen))
        if not count:
            return
        self._gather(table)
        schema = BY_NAME[table].arrow()
        given = columns
        if count < len(chosen):
            mask = pa.array(chosen)
            given = {name: column.filter(mask) for name, column in columns.items()}
        arrays = [given[field.name] if field.name in given else pa.nulls(count, field.type) for field in schema]
        self._keep(table, pa.Table.from_arrays(arrays, schema=schema))

    def has(self, table: str) -> bool:
        """Whether a row of this capture was added to a table."""
        return self.total(table) > self._before.get(table, 0)

    def total(self, table: str) -> int:
        """Rows that were added to a table."""
        waiting = len(self._rows.get(table, ())) + sum(map(len, self._columns.get(table, ())))
        return self.counts.get(table, 0) + waiting

    def next_capture(self) -> None:
        """What comes now is another capture of the rank, later in time: its steps follow those that are known."""
        self._before = {table: self.total(table) for table in BY_NAME}
        source, more = self.steps.source, self.steps.more
        self.steps = Steps(self.steps.base + max(len(self.steps), self.steps.added))
        self.steps.more = more
        self.sources = self.sources or source

    def op_id(
        self, name: str | None, kind: str | None, device: str | None, shapes: str | None = None, **more: Any
    ) -> int:
        """Identity of an operator; its row in op_info is made the first time."""
        key = (name, kind, device, shapes)
        found = self._ops.get(key)
        if found is not None:
            return found
        length = sum(map(len, filter(None, key)))
        if len(self._ops) >= OPERATORS or self._op_text + length > OPERATOR_TEXT:
            if name is not None:
                self.notes.add("operators", f"more than {OPERATORS:,} operators: of the others only the type is known")
                return self.op_id(None, kind, device)
            if any(key) and (len(self._ops) >= 2 * OPERATORS or length > _TYPE):
                return self.op_id(None, None, None)
        self._op_text += length
        number = self._ops[key] = len(self._ops)
        known = dict(self.info.get(name, {})) if name else {}
        known.update({key: value for key, value in more.items() if value is not None})
        scope = name.rpartition("/")[0] if name else ""
        self.add(
            "op_info", op_id=number, name=_short(name), type=_short(kind or known.pop("type", None)), device=device,
            scope=_short(scope or None), phase=phase_of(name or "", kind),
            in_shapes=_short(shapes or known.pop("in_shapes", None)),
            **{key: _short(value) for key, value in known.items() if key in ("out_shapes", "flops")},
        )  # fmt: skip
        return number

    def close(self) -> dict[str, int]:
        """Write what is left and give the files their names; returns the rows of each table."""
        for table in [*self._rows, *self._columns]:
            self._gather(table)
            self._flush(table)
        for writer, temporary, final in self._writers.values():
            writer.close()
            temporary.replace(final)
        self._writers.clear()
        return self.counts

    def abort(self) -> None:
        """Close what is open."""
        for writer, temporary, _ in self._writers.values():
            writer.close()
            temporary.unlink(missing_ok=True)
        self._writers.clear()

    def _gather(self, table: str) -> None:
        """Rows of a table to columns."""
        rows = self._rows.pop(table, None)
        if not rows:
            return
        schema = BY_NAME[table].arrow()
        arrays = [_array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
        self._keep(table, pa.Table.from_arrays(arrays, schema=schema))

    def _keep(self, table: str, data: pa.Table) -> None:
        waiting = self._columns[table]
        waiting.append(data)
        if sum(map(len, waiting)) >= GROUP_ROWS:
            self._flush(table)

    def _flush(self, table: str) -> None:
        waiting = self._columns.pop(table, None)
        if waiting:
            self._write(table, pa.concat_tables(waiting))

    def _write(self, table: str, data: pa.Table) -> None:
        limits.refuse_rows(table, self.counts.get(table, 0) + data.num_rows, self._most)
        try:
            if table not in self._writers:
                folder = store.partition(self.run, table, 0, self.rank)
                folder.mkdir(parents=True, exist_ok=True)
                temporary = folder / f".part-00000.{os.getpid()}.tmp"
                writer = pq.ParquetWriter(
                    reachable(temporary), data.schema, compression="zstd", **_encoding(data.schema)
                )
                self._writers[table] = (writer, temporary, folder / "part-00000.parquet")
            self._writers[table][0].write_table(data)
            pa.default_memory_pool().release_unused()  # or the peak creeps up with the length of a file
        except OSError as error:
            raise RunError(f"cannot write `{self.run.path}`: {error.strerror or error}", "free some space") from error
        self.counts[table] = self.counts.get(table, 0) + data.num_rows


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type=kind)
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON allows
        return pa.array(
            [value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in values],
            type=kind,
        )


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    """Times grow and hardly repeat, so their differences are stored; other values come again and again."""
    times = [field.name for field in schema if field.name.endswith("_ns") and field.type == pa.int64()]
    return {
        "use_dictionary": [field.name for field in schema if not field.name.endswith("_ns")],
        "column_encoding": dict.fromkeys(times, "DELTA_BINARY_PACKED"),
    }


def _short(value: Any) -> Any:
    return value[:TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else value
