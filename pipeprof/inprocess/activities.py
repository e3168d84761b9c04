"""What can be recorded, and how the names of other profilers translate."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable


class ProfilerActivity(str, Enum):
    """Parts of a recording. CPU stands for OPS, PIPELINE and HOST; devices are accepted, and noted as not recorded."""

    CPU = "cpu"
    OPS = "ops"  # operator executions
    PIPELINE = "pipeline"  # the dataset: queues, service times, fetches
    HOST = "host"  # CPU and memory of the machine and of this process
    NPU = "npu"
    GPU = "gpu"
    CUDA = "cuda"
    XPU = "xpu"


ALL = frozenset([ProfilerActivity.OPS, ProfilerActivity.PIPELINE, ProfilerActivity.HOST])
DEVICES = ("NPU", "GPU", "CUDA", "XPU")


def chosen(activities: Iterable[Any] | None) -> tuple[frozenset[ProfilerActivity], list[str]]:
    """The parts that are meant, and a note for each that this machine cannot record.

    None means all. Texts and other profilers' enumerations are taken by name (`CPU`, `NPU`, ...). Raises UsageError
    for any other name, and when nothing is left.
    """
    if activities is None:
        return ALL, []
    parts: set[ProfilerActivity] = set()
    notes = []
    for item in [activities] if isinstance(activities, str) else activities:
        name = str(getattr(item, "name", item)).upper()
        if name in DEVICES:
            notes.append(f"activity {name}: device kernels are not recorded in the program itself, only on the host")
        elif name in ProfilerActivity.__members__:
            parts |= ALL if name == "CPU" else {ProfilerActivity[name]}
        else:
            raise UsageError(
                f"unknown activity `{item}`",
                did_you_mean(str(item), (name.lower() for name in ProfilerActivity.__members__)),
            )
    if not parts and not notes:
        raise UsageError("no activity is left to record", "leave out activities= to record all")
    return frozenset(parts or ALL), notes
