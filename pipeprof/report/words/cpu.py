"""Whose CPU time it is: all names of these codes."""

PARTS = {
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
