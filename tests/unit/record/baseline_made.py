"""Measures to save, and where they went."""

from pipeprof.record import baseline
from pipeprof.record.measures import Measures, Repetition

FINGERPRINT = {
    "cpu_model": "AMD EPYC 7763 64-Core Processor",
    "cpu_cores": 2,
    "memory_bytes": 25_276_502_016,
    "device": "CPU",
    "mindspore": "2.10.0",
    "host": "aaaa",
    "kernel": "6.8.0-41",
    "environment": {"OMP_NUM_THREADS": "1"},
}


def made(job="j1", reps=3, first=10e6, **other):
    values = {
        "step_time_median": {rep: first + rep * 1e5 for rep in range(reps)},
        "peak_memory": dict.fromkeys(range(reps), 5e8),
        "op/MatMul": {rep: 3e6 + rep for rep in range(reps)},
        "count/MatMul": dict.fromkeys(range(reps), 40.0),
    }
    given = {
        "label": "run",
        "workload": "",
        "reps": {rep: Repetition(order=rep, job=job) for rep in range(reps)},
        "values": values,
        "facts": {"op MatMul": "MatMul 64x784, 784x512", "pipeline train": "map > batch"},
        "fingerprint": dict(FINGERPRINT),
        "git": {"revision": "a" * 40, "dirty": False},
        "created_at": "2026-11-21T10:00:00+00:00",
        "notes": [{"code": "one | note"}],
    }
    return Measures(**(given | other))


def save(root, measures=None, workload="demo", **how):
    return baseline.save(measures or made(), str(root), workload, **how)


def only_folder(root):
    (folder,) = [path for path in root.glob("*/*") if not path.name.startswith(".")]
    return folder
