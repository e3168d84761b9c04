"""Second pass: what was gathered of one rank, to the record's tables."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeprof.read.chrome.device import DeviceRows
from pipeprof.read.chrome.dialect import MEMORY, Info, Marks
from pipeprof.read.chrome.ops import OTHER, Ops, Stacks
from pipeprof.read.chrome.spill import NONE
from pipeprof.read.chrome.tree import Tree
from pipeprof.read.source.number_columns import UNKNOWN
from pipeprof.read.tables.writer import TableWriter, constant, doubles, numbers, optional, strings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeprof.read.chrome.gather import Gathered
    from pipeprof.read.chrome.spill import Columns
    from pipeprof.read.chrome.steps import Steps
    from pipeprof.record.run import Run

STREAMED = ("op", "span", "collective", "flow", "counter", "memory", "allocation")
_SIDES = strings(("start", "step", "end"))


class RankTables(ExitStack):
    """The tables of one rank. Add its files by time, then finish."""

    def __init__(self, run: Run, rep: int, rank: int, steps: Steps, *, device_rows: bool) -> None:
        super().__init__()
        self.run = run
        self.rep = rep
        self.rank = rank
        self.steps = steps
        self.stacks = Stacks()
        self.ops = Ops(self.stacks)
        self.counts: dict[str, int] = {}
        self.side = "host" if device_rows else None  # of host rows: null when there is nothing but the host
        self._exec = 0
        self.out = {table: self.enter_context(TableWriter(run, table, rep, rank)) for table in STREAMED}

    def add(self, gathered: Gathered, offset: int) -> None:
        """Write one file; `offset` is added to its times."""
        FileTables(self, gathered, offset).write()

    def next_execs(self, count: int) -> int:
        """The first of so many new execution numbers."""
        first, self._exec = self._exec, self._exec + count
        return first

    def finish(self) -> None:
        """Write what was collected, and count the rows."""
        named = [dict(zip(Ops.COLUMNS, row, strict=True)) for row in self.ops.rows]
        self._write("op_info", named)
        self._write(
            "stack", [dict(zip(("stack_id", "parent_id", "frame"), row, strict=True)) for row in self.stacks.rows]
        )
        self._write("step", self.steps.step_rows())
        self._write("run_part", self.steps.part_rows())
        self._write("pipeline", self.steps.pipeline_rows())
        self._write("fetch", self.steps.fetch_rows())
        self.counts |= {table: writer.rows for table, writer in self.out.items()}

    def _write(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        with TableWriter(self.run, table, self.rep, self.rank) as out:
            if rows:
                out.add({name: _few([row[name] for row in rows]) for name in rows[0]})
        self.counts[table] = out.rows


class FileTables:
    """Writes one file of a rank."""

    def __init__(self, rank: RankTables, gathered: Gathered, offset: int) -> None:
        self.rank = rank
        self.gathered = gathered
        self.offset = offset
        self.tracks = strings(gathered.tracks.names())
        self.texts = strings(gathered.texts.values)
        self.tree = Tree(gathered, rank.ops, rank.next_execs(0), self._write_calls, self._write_allocations)

    def write(self) -> None:
        """Write all tables."""
        for block in self.gathered.spill.calls_by_start():
            self.tree.add(block)
        self.tree.finish()
        self.rank.next_execs(self.tree.next_exec - self.rank.next_execs(0))
        self._write_unowned_memory()
        DeviceRows(self).write()
        self._write_flows()
        self._write_counters()
        self._write_memory()

    def _write_calls(self, column: Columns) -> None:
        top = column["parent_id"] == NONE
        self.tree.memory.cover(column["start"][top], column["end"][top])
        starts = self.at(column["start"])
        names = ["self_ns", "exec_id", "op_id"]
        names += ["device_total_ns", "device_self_ns"] if self.gathered.launches.count else []
        names += ["memory_bytes", "self_memory_bytes"] if len(self.tree.memory.times) else []
        names += ["device_memory_bytes", "self_device_memory_bytes"] if self.tree.memory.on_devices else []
        self.rank.out["op"].add(
            {
                "step": optional(self.rank.steps.of(starts)), "start_ns": starts,
                "dur_ns": column["end"] - column["start"], "parent_id": optional(column["parent_id"]),
                "track": self.named(self.tracks, column["track"]), "side": constant(self.rank.side, len(starts)),
                **{name: column[name] for name in names},
            }
        )  # fmt: skip

    def _write_unowned_memory(self) -> None:
        """What was allocated while no event was open is an operator of its own, as in the framework's table."""
        memory = self.tree.memory
        times, host, device = memory.outside()
        if not len(times):
            return
        op_id = self.rank.ops.number(Info("cpu_instant_event", MEMORY, b"", b"", b""), OTHER, None)
        starts, nothing = self.at(times), np.zeros(len(times), np.int64)
        columns = {"memory_bytes": host, "self_memory_bytes": host}
        if memory.on_devices:
            columns |= {"device_memory_bytes": device, "self_device_memory_bytes": device}
        self.rank.out["op"].add(
            {
                "op_id": nothing + op_id, "step": optional(self.rank.steps.of(starts)), "start_ns": starts,
                "dur_ns": nothing, "self_ns": nothing, "side": constant(self.rank.side, len(times)),
                **columns,
            }
        )  # fmt: skip

    def _write_flows(self) -> None:
        for rows in self.gathered.spill.read("flow"):
            ids = pa.compute.coalesce(
                self.named(self.texts, rows["id_text"]), numbers(rows["id"]).cast(pa.large_string())
            )
            self.rank.out["flow"].add(
                {
                    "flow_id": ids, "category": self.named(self.texts, rows["category"]),
                    "name": self.named(self.texts, rows["name"]), "side": _SIDES.take(numbers(rows["side"])),
                    "t_ns": self.at(rows["t"]), "track": self.named(self.tracks, rows["track"]),
                }
            )  # fmt: skip

    def _write_counters(self) -> None:
        for rows in self.gathered.spill.read("counter"):
            self.rank.out["counter"].add(
                {
                    "t_ns": self.at(rows["t"]), "track": self.named(self.tracks, rows["track"]),
                    "name": self.named(self.texts, rows["name"]), "series": self.named(self.texts, rows["series"]),
                    "value": doubles(rows["value"]),
                }
            )  # fmt: skip

    def _write_memory(self) -> None:
        for rows in self.gathered.spill.read("reading"):
            self.rank.out["memory"].add(
                {
                    "t_ns": self.at(rows["t"]), "device": self.named(self.texts, rows["device"]),
                    "allocated_bytes": rows["allocated"], "reserved_bytes": optional(rows["reserved"]),
                }
            )  # fmt: skip

    def _write_allocations(self, rows: Sequence[tuple[int, ...]]) -> None:
        address, size, produced, released, op_id, device = np.array(rows, np.int64).T
        times = [optional(np.where(at == UNKNOWN, UNKNOWN, self.at(at)), UNKNOWN) for at in (produced, released)]
        self.rank.out["allocation"].add(
            {
                "address": address, "bytes": size, "produced_ns": times[0], "released_ns": times[1],
                "op_id": optional(op_id), "device": self.named(self.texts, device),
            }
        )  # fmt: skip

    def at(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of the file as ns since the repetition's zero."""
        return times + self.offset

    @staticmethod
    def named(names: pa.Array, values: NDArray[np.int64]) -> pa.Array:
        """Texts by their numbers; NONE is null."""
        return names.take(optional(values))


def _few(values: Sequence[Any]) -> pa.Array:
    """A column of a short table: texts, truth values or integers."""
    example = next((value for value in values if value is not None), None)
    if isinstance(example, str):
        return strings(values)
    if isinstance(example, bool):
        return numbers([int(value) for value in values]).cast(pa.bool_())
    return optional([UNKNOWN if value is None else value for value in values], UNKNOWN)


def shifted(marks: Sequence[Marks], offset: int) -> list[Marks]:
    """Marks on the repetition's clock."""
    return [mark._replace(start=mark.start + offset, end=mark.end + offset) for mark in marks]
