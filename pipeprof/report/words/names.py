"""What parts of a step, users of the CPU and limits of a stage are called: the only place that words their codes."""

from __future__ import annotations

# By what happens in them, as in a sentence.
PHASES = {
    "data_wait": "waiting for data", "launch": "the time until the first operator", "forward": "the forward pass",
    "backward": "the backward pass", "forward_backward": "the forward and backward pass",
    "gradients": "work on the gradients", "optimizer": "the optimizer", "after": "what follows the optimizer",
    "tail": "the tail", "before_forward": "the time before the forward pass", "work": "what follows the fetch",
    "compute": "computing", "computing": "computing on the device", "communication": "communication",
    "host_gap": "Python and framework code on the host", "free": "time in which the device is idle",
    "device_idle": "time in which the device is idle", "imbalance": "waiting for the slowest rank",
    "step": "the length of the step", "until_bp": "the time up to the end of the backward pass",
    "own": "own time (without communication)", "other": "other operators",
    "other_loader": "what comes before the network is called",
}  # fmt: skip
# From one mark of a step to the next, whatever happens there: what `step_phase` holds.
INTERVALS = {
    "data_wait": "time before the forward pass", "compute": "everything after the fetch",
    "forward_backward": "forward and backward pass", "tail": "tail", "whole": "whole step",
}  # fmt: skip
# Communication by what runs beside it.
COMMUNICATION = {
    "communication_exposed": "exposed communication",
    "communication_tail": "exposed communication behind the backward pass",
    "communication_overlapped": "communication beside other operators",
    "communication": "communication; what runs beside it is not known",
}


def title(code: str) -> str:
    """A part's name as it stands in a table, without its article."""
    return PHASES[code].removeprefix("the ")


# Parts of a step whose operators were recorded, in their order.
_RECORDED = (
    "data_wait", "launch", "forward", "backward", "forward_backward", "gradients", "optimizer", "after", "tail",
    "before_forward",
)  # fmt: skip
TRACE = {code: title(code) for code in _RECORDED}


CPU_USERS = {
    "main": "main thread of the training",
    "mindspore_thread": "MindSpore's threads",
    "dataset_thread": "dataset threads",
    "python_thread": "other Python threads",
    "other_thread": "threads of other libraries",
    "trainer": "training process, all threads",
    "worker": "dataset worker processes",
    "child": "other process",
    "launcher": "launcher",
    "other_rank": "other ranks",
    "profiler": "pipeprof itself",
    "neighbour": "other programs of the machine",
}


STAGE_LIMITS = {
    "cpu": "computing",
    "wait": "waiting (storage, network, sleep)",
    "gil": "computing in Python under the interpreter's lock (GIL)",
    "lock_wait": "waiting for the interpreter's lock (GIL)",
    "burst": "stalling now and then",
    "poll": "limited by the 100 ms polls of a source with several workers",
    "cpu_contention": "short of CPU: another process of the job takes it",
    "host_saturated": "short of CPU: other programs keep the machine busy",
}
SINK_STAGES = {
    "data_processing": "the data pipeline on the host",
    "data_transmission": "the transfer from the host to the device",
}
