"""Second pass: what was gathered of one rank, to the record's tables."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeprof.read.chrome.dialect import DEVICE, MEMORY, Info, Marks
from pipeprof.read.chrome.ops import COMMUNICATION, DATA, OTHER, Ops, Stacks, collective_by_pattern, is_communication
from pipeprof.read.chrome.rows import MOST_PERCENT
from pipeprof.read.chrome.spill import NONE, Columns
from pipeprof.read.chrome.tree import Tree
from pipeprof.read.source.numbers import UNKNOWN, Ints
from pipeprof.read.tables.writer import TableWriter, constant, doubles, numbers, optional, strings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.read.chrome.gather import Gathered
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

    def at(self, times: Ints) -> Ints:
        """Times of the file as ns since the repetition's zero."""
        return times + self.offset

    @staticmethod
    def named(names: pa.Array, values: Ints) -> pa.Array:
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


WORK, COLLECTIVE, HOST_OP, SPAN = range(4)
# Rows without a category (torch_npu, MindSpore): the process tells what they are.
# Parts of a collective, beside the row that it has as a whole.
_TASKS = ("Notify", "Memcpy", "Reduce_Inline", "Inline_Reduce", "RDMA", "SDMA", "Write", "Read", "Event")
_PROCESSES = {"Ascend Hardware": WORK, "HCCL": COLLECTIVE, "Communication": COLLECTIVE, "CPU OP": HOST_OP}


class DeviceRows:
    """Writes the rows of `other` of one file, after its calls."""

    def __init__(self, file: FileTables) -> None:
        self.file = file
        self.gathered = file.gathered
        self.names = self.gathered.texts.values
        self._communication: dict[int, bool] = {}
        self._ops: dict[tuple[int, int, int, str, int | None], int] = {}

    def write(self) -> None:
        """Write all batches."""
        for rows in self.gathered.spill.read("other"):
            roles = self._roles_of(rows)
            for role in (WORK, COLLECTIVE, HOST_OP, SPAN):
                chosen = roles == role
                if chosen.any():
                    part = {name: values[chosen] for name, values in rows.items()}
                    self._write_spans(part) if role == SPAN else self._write_ops(part, role)

    def _roles_of(self, rows: Columns) -> Ints:
        pairs, which = _pairs(rows["category"], rows["track"])
        roles = np.array([self._role(*pair) for pair in pairs])[which]
        for at in np.flatnonzero(roles == COLLECTIVE).tolist():
            if self.names[int(rows["name"][at])].startswith(_TASKS):
                roles[at] = SPAN
        return roles

    def _role(self, category: int, track: int) -> int:
        text = self.names[category]
        return WORK if text in DEVICE else SPAN if text else _PROCESSES.get(self.gathered.tracks.process(track), SPAN)

    def _device(self, category: int, role: int) -> str:
        if role == HOST_OP:
            return "CPU"
        text = self.names[category]
        if text.startswith("mtia"):
            return "MTIA"
        return ("HPU" if text.startswith("hpu") else "GPU") if text else "NPU"

    def _is_communication(self, name: int) -> bool:
        if name not in self._communication:
            self._communication[name] = is_communication(self.names[name])
        return self._communication[name]

    def _write_ops(self, rows: dict[str, Ints], role: int) -> None:
        file, launches = self.file, self.gathered.launches
        slots = launches.slots(rows["link"] if launches.by_link else self.gathered.flow_links.operators(rows))
        parents, phases, launchers = self._launchers(slots)
        steps = self._steps(rows, slots)
        keys = (rows["name"], rows["category"], phases, rows["track"], launchers)
        op_ids = [
            self._op(name, category, phase, track, launcher, role)
            for name, category, phase, track, launcher in zip(*(column.tolist() for column in keys), strict=True)
        ]
        count, start, lasted, percents = len(op_ids), rows["start"], rows["dur"], rows["occupancy"]
        columns = {
            "op_id": numbers(op_ids), "step": steps, "start_ns": file.at(start),
            "dur_ns": lasted, "self_ns": lasted, "track": file.named(file.tracks, rows["track"]),
            "exec_id": np.arange(count) + file.rank.next_execs(count), "parent_id": optional(parents),
        }  # fmt: skip
        if role == HOST_OP:
            file.rank.out["op"].add(columns | {"side": constant(file.rank.side, count)})
            return
        launched = launches.launched_at(rows["correlation"])
        launched = np.where(launched == NONE, self.gathered.flow_links.queued_at(rows), launched)
        wait = np.where((launched == NONE) | (launched > start), NONE, start - launched)
        columns |= {"device_total_ns": lasted, "device_self_ns": lasted, "wait_ns": optional(wait)}
        if (percents != NONE).any():
            columns |= {"occupancy_ratio": pa.array(percents / MOST_PERCENT, mask=percents == NONE)}
        file.rank.out["op"].add(columns | {"side": constant("device", count)})
        self._write_collectives(rows, steps, role)

    def _launchers(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        """Execution, phase and operator of what launched each row; NONE, OTHER, NONE for nothing."""
        launches = self.gathered.launches
        if not len(launches.keys):
            return slots, np.full(len(slots), OTHER), slots
        linked = slots != NONE
        return (
            np.where(linked, launches.execs[slots], NONE),
            np.where(linked, launches.phases[slots], OTHER),
            np.where(linked, launches.op_ids[slots], NONE),
        )

    def _steps(self, rows: dict[str, Ints], slots: Ints) -> pa.Array:
        """The step of the operator that launched the work; without one, the step that its start lies in."""
        launches, file = self.gathered.launches, self.file
        begun = np.where(slots == NONE, NONE, launches.starts[slots]) if len(launches.keys) else slots
        return optional(file.rank.steps.of(file.at(np.where(begun == NONE, rows["start"], begun))))

    def _op(self, name: int, category: int, phase: int, track: int, launcher: int, role: int) -> int:
        """The operator of a row. Its source location is that of the operator that launched it."""
        if role == COLLECTIVE or self._is_communication(name):
            phase = COMMUNICATION
        phase = phase if phase < DATA else OTHER  # a batch that is moved or made on the device is work of it
        device = self._device(category, role)
        stack = None if launcher == NONE else self.file.rank.ops.stack_of(launcher)
        key = (name, category, phase, device, stack)
        if key not in self._ops:
            info = Info(self.names[category] or self.gathered.tracks.process(track), self.names[name], b"", b"", b"")
            self._ops[key] = self.file.rank.ops.number(info, phase, stack, device)
        return self._ops[key]

    def _write_collectives(self, rows: dict[str, Ints], steps: pa.Array, role: int) -> None:
        chosen = [role == COLLECTIVE or self._is_communication(name) for name in rows["name"].tolist()]
        if not any(chosen):
            return
        at, file = np.flatnonzero(chosen), self.file
        names = [self.names[name] for name in rows["name"][at].tolist()]
        file.rank.out["collective"].add(
            {
                "step": steps.take(numbers(at)), "name": strings(names),
                "kind": strings([collective_by_pattern(name) for name in names]),
                "group_name": file.named(file.texts, rows["group"][at]),
                "track": file.named(file.tracks, rows["track"][at]),
                "start_ns": file.at(rows["start"][at]), "dur_ns": rows["dur"][at], "bytes": optional(rows["bytes"][at]),
            }
        )  # fmt: skip

    def _write_spans(self, rows: dict[str, Ints]) -> None:
        file = self.file
        pairs, which = _pairs(rows["category"], rows["track"])
        texts = [self.names[number] or self.gathered.tracks.process(track) or None for number, track in pairs]
        file.rank.out["span"].add(
            {
                "track": file.named(file.tracks, rows["track"]), "category": strings(texts).take(numbers(which)),
                "name": file.named(file.texts, rows["name"]), "start_ns": file.at(rows["start"]), "dur_ns": rows["dur"],
            }
        )  # fmt: skip


def _pairs(one: Ints, two: Ints) -> tuple[list[tuple[int, int]], Ints]:
    """Different pairs of numbers below 2**31, and which of them each row has."""
    keys, which = np.unique(one << 32 | two, return_inverse=True)
    return [(key >> 32, key % (1 << 32)) for key in keys.tolist()], which
