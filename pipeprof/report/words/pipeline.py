"""What limits a stage of the data pipeline, and the side of sink mode that is late: all names of these codes."""

KINDS = {
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
