"""Device work, collectives, and every other event that is no call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.chrome.dialect import DEVICE, Info
from pipeprof.read.chrome.ops import COMMUNICATION, DATA, OTHER, collective_by_pattern, is_communication
from pipeprof.read.chrome.spill import NONE
from pipeprof.read.tables.writer import constant, numbers, optional, strings

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeprof.read.chrome.spill import Columns
    from pipeprof.read.chrome.tables import FileTables

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

    def _roles_of(self, rows: Columns) -> NDArray[np.int64]:
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

    def _write_ops(self, rows: dict[str, NDArray[np.int64]], role: int) -> None:
        file, launches = self.file, self.gathered.launches
        slots = launches.slots(rows["link"] if launches.by_link else self.gathered.flow_links.operators(rows))
        parents, phases, launchers = self._launchers(slots)
        steps = self._steps(rows, slots)
        keys = (rows["name"], rows["category"], phases, rows["track"], launchers)
        op_ids = [
            self._op(name, category, phase, track, launcher, role)
            for name, category, phase, track, launcher in zip(*(column.tolist() for column in keys), strict=True)
        ]
        count = len(op_ids)
        columns = {
            "op_id": numbers(op_ids), "step": steps, "start_ns": file.at(rows["start"]),
            "dur_ns": rows["dur"], "self_ns": rows["dur"], "track": file.named(file.tracks, rows["track"]),
            "exec_id": np.arange(count) + file.rank.next_execs(count), "parent_id": optional(parents),
        }  # fmt: skip
        if role == HOST_OP:
            file.rank.out["op"].add(columns | {"side": constant(file.rank.side, count)})
            return
        launched = launches.launched_at(rows["correlation"])
        launched = np.where(launched == NONE, self.gathered.flow_links.queued_at(rows), launched)
        wait = np.where((launched == NONE) | (launched > rows["start"]), NONE, rows["start"] - launched)
        columns |= {"device_total_ns": rows["dur"], "device_self_ns": rows["dur"], "wait_ns": optional(wait)}
        file.rank.out["op"].add(columns | {"side": constant("device", count)})
        self._write_collectives(rows, steps, role)

    def _launchers(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
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

    def _steps(self, rows: dict[str, NDArray[np.int64]], slots: NDArray[np.int64]) -> pa.Array:
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

    def _write_collectives(self, rows: dict[str, NDArray[np.int64]], steps: pa.Array, role: int) -> None:
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

    def _write_spans(self, rows: dict[str, NDArray[np.int64]]) -> None:
        file = self.file
        pairs, which = _pairs(rows["category"], rows["track"])
        texts = [self.names[number] or self.gathered.tracks.process(track) or None for number, track in pairs]
        file.rank.out["span"].add(
            {
                "track": file.named(file.tracks, rows["track"]), "category": strings(texts).take(numbers(which)),
                "name": file.named(file.texts, rows["name"]), "start_ns": file.at(rows["start"]), "dur_ns": rows["dur"],
            }
        )  # fmt: skip


def _pairs(one: NDArray[np.int64], two: NDArray[np.int64]) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
    """Different pairs of numbers below 2**31, and which of them each row has."""
    keys, which = np.unique(one << 32 | two, return_inverse=True)
    return [(key >> 32, key % (1 << 32)) for key in keys.tolist()], which
