"""Operators: the rows of op_info, one per name, arguments, phase and source location."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.read.chrome.flops import flops_of
from pipeprof.read.chrome.kinds import COMPUTING, LOADER, LOADING, shapes_shown, shown
from pipeprof.read.chrome.texts import MOST

if TYPE_CHECKING:
    from pipeprof.read.chrome.kinds import Info
    from pipeprof.read.chrome.stacks import Stacks

OTHER, FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION, DATA, UNKNOWN = range(7)
PHASES = ("other", "forward", "backward", "optimizer", "communication", "data", None)
HANDED_DOWN = frozenset({BACKWARD, OPTIMIZER, COMMUNICATION, DATA})
_COMMUNICATION = re.compile(r"(?:^|[^a-z])(?:nccl|rccl|hccl|gloo|c10d|oneccl)|record_param_comms|^hcom_", re.IGNORECASE)
COLLECTIVE_KINDS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"all_?reduce", "all_reduce"), (r"reduce_?scatter", "reduce_scatter"), (r"all_?gather", "all_gather"),
        (r"all_?to_?all", "all_to_all"), (r"broadcast", "broadcast"), (r"send_?recv", "all_to_all"),
        (r"send", "send"), (r"rece?i?ve?", "receive"), (r"barrier", "barrier"), (r"reduce", "reduce"),
        (r"gather", "gather"), (r"scatter", "scatter"),
    )
)  # fmt: skip


def is_communication(name: str) -> bool:
    """Whether a name is that of a communication library's operator or kernel."""
    return _COMMUNICATION.search(name) is not None


def collective_by_pattern(name: str) -> str | None:
    """all_reduce, send, ... by the name; None when it does not say."""
    return next((kind for pattern, kind in COLLECTIVE_KINDS if pattern.search(name)), None)


def own_phase(info: Info) -> int | None:
    """The phase that an operator's name tells; None when it tells none."""
    name = info.name
    if name.startswith(LOADER) or LOADING.match(name):
        return DATA
    if info.category != "cpu_op" and COMPUTING.fullmatch(name):
        return OTHER
    if info.category != "python_function" and is_communication(name):
        return COMMUNICATION
    if name.startswith("Optimizer."):
        return OPTIMIZER
    if name.startswith(("autograd::engine::", "torch::autograd::AccumulateGrad")):
        return BACKWARD
    return None


class Ops:
    """Operators of a rank, numbered from 0."""

    def __init__(self, stacks: Stacks) -> None:
        self.rows: list[tuple[object, ...]] = []
        self.stacks = stacks
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, info: Info, phase: int, stack_id: int | None, device: str = "CPU") -> int:
        """The number of an operator; its row is made the first time."""
        key: tuple[object, ...] = (info, PHASES[phase], stack_id, device)
        op_id = self._numbers.get(key)
        if op_id is None:
            if len(self.rows) >= 2 * MOST:
                key = (info.category, "(other)", PHASES[phase], device)
                if key in self._numbers:
                    return self._numbers[key]
                info, stack_id = info._replace(name="(other)", dims=b"", types=b"", extra=b""), None
            op_id = self._numbers[key] = len(self.rows)
            self.rows.append((
                op_id, info.name, info.name, PHASES[phase], device, shapes_shown(info.dims), shown(info.types),
                stack_id, info.category or None, flops_of(info),
            ))  # fmt: skip
        return op_id

    def stack_of(self, op_id: int) -> int | None:
        """The source location of an operator; None where it is not known."""
        return self.rows[op_id][self.COLUMNS.index("stack_id")]  # type: ignore[return-value]

    COLUMNS = ("op_id", "name", "type", "phase", "device", "in_shapes", "in_types", "stack_id", "category", "flops")
