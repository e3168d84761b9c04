"""What parts of a step are called."""

LIMITS = {
    "compute": "operators of the forward and backward pass",
    "communication": "exposed communication",
    "gradients": "operators between backward pass and optimizer (clipping, scaling, adding up)",
    "optimizer": "operators of the optimizer",
    "after": "operators behind the optimizer (averages of the weights, metrics, another forward pass)",
    "host_gap": "time in which no operator runs, only Python and framework code on the host",
    "other_loader": "time before the network is called, of steps of which no loader was recorded",
    "device_idle": "time in which the device is idle",
    "imbalance": "waiting for the slowest rank",
}
PHASES = {
    "data_wait": "waiting for data", "forward": "the forward pass", "backward": "the backward pass",
    "gradients": "work on the gradients", "after": "what follows the optimizer",
    "optimizer": "the optimizer", "host_gap": "Python and framework code on the host", "other": "other operators",
    "other_loader": "what comes before the network is called",
    "computing": "computing on the device", "free": "time in which the device is idle",
    "forward_backward": "the forward and backward pass", "tail": "the tail", "compute": "computing",
    "step": "the whole step", "until_bp": "the step up to the end of the backward pass",
    "own": "own time (without communication)", "communication": "communication",
    "imbalance": "waiting for the slowest rank",
}  # fmt: skip
COMPARED = {
    "data_wait": "time before the forward pass", "forward_backward": "forward and backward pass",
    "tail": "tail (optimizer, all-reduce)", "compute": "computing", "whole": "whole step",
}  # fmt: skip
MEASURES = {
    "own": "own time (the step without communication)", "until_bp": "time up to the end of the backward pass",
    "data_wait": "wait for data", "step": "length of the step",
}  # fmt: skip
