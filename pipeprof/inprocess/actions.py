"""Which steps are recorded: wait, warm-up and active steps in cycles. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pipeprof.errors import UsageError, did_you_mean


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


NEVER = 1 << 62


class ProfilerAction(Enum):
    """What is done in a step. The last active step of a cycle is also the one after which the run is handed over."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A function of the step's number (from 0) to its ProfilerAction; made by `schedule`."""

    active: int
    wait: int = 0
    warmup: int = 0
    repeat: int = 0
    skip_first: int = 0

    def __call__(self, step: int) -> ProfilerAction:
        """What is done in step `step`. Raises UsageError for a negative number."""
        if step < 0:
            raise UsageError(f"steps count from 0, found {step}")
        since = step - self.skip_first
        if since < 0 or self.over(step):
            return ProfilerAction.NONE
        position = since % self.cycle
        if position < self.wait:
            return ProfilerAction.NONE
        if position < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if position == self.cycle - 1 else ProfilerAction.RECORD

    @property
    def cycle(self) -> int:
        """Steps of one cycle."""
        return self.wait + self.warmup + self.active

    def wakes(self, step: int) -> int:
        """First step at or after `step` in which something is done; NEVER when there is none."""
        since = max(0, step - self.skip_first)
        idle = max(0, self.wait - since % self.cycle)
        first = self.skip_first + since + idle
        return NEVER if self.over(first) else first

    def over(self, step: int) -> bool:
        """Whether nothing is recorded in this step and in any later one."""
        return self.repeat > 0 and step - self.skip_first >= self.repeat * self.cycle


def action_of(plan: Callable[[int], Any], step: int) -> ProfilerAction:
    """What a schedule says of a step; other profilers' enumerations are taken by name.

    Raises UsageError for anything else.
    """
    planned = plan(step)
    if isinstance(planned, ProfilerAction):
        return planned
    action = ProfilerAction.__members__.get(str(getattr(planned, "name", "")))
    if action is None:
        raise UsageError(f"schedule({step}) is {planned!r}, expected a pipeprof.ProfilerAction")
    return action


def schedule(*, active: int, wait: int = 0, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> Schedule:
    """As torch.profiler.schedule: after `skip_first` steps, cycles of `wait`, `warmup` and `active` steps.

    Nothing is recorded while waiting; what is recorded in warm-up steps is thrown away; active steps make a run, one
    per cycle. `repeat` cycles, 0: until the program ends. Raises UsageError for a negative number, or 0 active steps.
    """
    numbers = {"skip_first": skip_first, "wait": wait, "warmup": warmup, "active": active, "repeat": repeat}
    for name, number in numbers.items():
        least = 1 if name == "active" else 0
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise UsageError(f"schedule: {name} is {number!r}, expected a whole number of at least {least}")
    return Schedule(**numbers)
