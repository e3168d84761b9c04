"""Device work, collectives, and every other event that is no call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.kineto.arrow import constant, numbers, optional, strings
from pipeprof.read.kineto.ops import COMMUNICATION, OTHER, PHASES, collective_kind, is_communication
from pipeprof.read.kineto.rows import DEVICE, Info
from pipeprof.read.kineto.spill import NONE

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeprof.read.kineto.tables import FileTables

WORK, COLLECTIVE, HOST_OP, SPAN = range(4)
# Rows without a category (torch_npu, MindSpore): the process tells what they are.
_PROCESSES = {"Ascend Hardware": WORK, "HCCL": COLLECTIVE, "Communication": COLLECTIVE, "CPU OP": HOST_OP}


class DeviceRows:
    """Writes the rows of `other` of one file, after its calls."""

    def __init__(self, file: FileTables) -> None:
        self.file = file
        self.found = file.found
        self.names = self.found.texts.values
        self._communication: dict[int, bool] = {}
        self._ops: dict[tuple[int, int, int, str], int] = {}
        self._roles: dict[tuple[int, int], int] = {}

    def write(self) -> None:
        """Write all batches."""
        for rows in self.found.spill.read("other"):
            roles = np.array(
                [self._role(*pair) for pair in zip(rows["category"].tolist(), rows["track"].tolist(), strict=True)]
            )
            for role in (WORK, COLLECTIVE, HOST_OP, SPAN):
                chosen = roles == role
                if chosen.any():
                    part = {name: values[chosen] for name, values in rows.items()}
                    self._write_spans(part) if role == SPAN else self._write_ops(part, role)

    def _role(self, category: int, track: int) -> int:
        key = (category, track)
        if key not in self._roles:
            text = self.names[category]
            self._roles[key] = WORK if text in DEVICE else SPAN if text else self._by_process(track)
        return self._roles[key]

    def _by_process(self, track: int) -> int:
        return _PROCESSES.get(self.found.tracks.process(track), SPAN)

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
        file, launches = self.file, self.found.launches
        slots = launches.slots(rows["link"] if launches.by_link else rows["correlation"])
        linked = slots != NONE
        parents = np.where(linked, launches.execs[slots], NONE) if len(launches.keys) else slots
        phases = np.where(linked, launches.phases[slots], OTHER) if len(launches.keys) else np.full(len(slots), OTHER)
        steps = self._steps(rows, slots)
        op_ids = [
            self._op(*key, role)
            for key in zip(
                rows["name"].tolist(), rows["category"].tolist(), phases.tolist(), rows["track"].tolist(), strict=True
            )
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
        wait = np.where((launched == NONE) | (launched > rows["start"]), NONE, rows["start"] - launched)
        columns |= {"device_total_ns": rows["dur"], "device_self_ns": rows["dur"], "wait_ns": optional(wait)}
        file.rank.out["op"].add(columns | {"side": constant("device", count)})
        self._write_collectives(rows, steps, role)

    def _steps(self, rows: dict[str, NDArray[np.int64]], slots: NDArray[np.int64]) -> pa.Array:
        """The step of the operator that launched the work; without one, the step that its start lies in."""
        launches, file = self.found.launches, self.file
        begun = np.where(slots == NONE, NONE, launches.starts[slots]) if len(launches.keys) else slots
        return optional(file.rank.steps.of(file.at(np.where(begun == NONE, rows["start"], begun))))

    def _op(self, name: int, category: int, phase: int, track: int, role: int) -> int:
        if role == COLLECTIVE or self._is_communication(name):
            phase = COMMUNICATION
        device = self._device(category, role)
        key = (name, category, phase, device)
        if key not in self._ops:
            info = Info(self.names[category] or self.found.tracks.process(track), self.names[name], b"", b"", b"")
            self._ops[key] = self.file.rank.ops.number(info, phase if phase < len(PHASES) else OTHER, None, device)
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
                "kind": strings([collective_kind(name) for name in names]),
                "group_name": file.named(file.texts, rows["group"][at]),
                "track": file.named(file.tracks, rows["track"][at]),
                "start_ns": file.at(rows["start"][at]), "dur_ns": rows["dur"][at], "bytes": optional(rows["bytes"][at]),
            }
        )  # fmt: skip

    def _write_spans(self, rows: dict[str, NDArray[np.int64]]) -> None:
        file = self.file
        processes = [self.found.tracks.process(track) for track in rows["track"].tolist()]
        categories = [
            self.names[number] or process or None
            for number, process in zip(rows["category"].tolist(), processes, strict=True)
        ]
        file.rank.out["span"].add(
            {
                "track": file.named(file.tracks, rows["track"]), "category": strings(categories),
                "name": file.named(file.texts, rows["name"]), "start_ns": file.at(rows["start"]), "dur_ns": rows["dur"],
            }
        )  # fmt: skip
