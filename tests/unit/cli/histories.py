"""Measurements of one commit after another, as `pipeprof history` reads them."""

from pipeprof.record.measures import Measures, Repetition

MS = 1e6
FINGERPRINT = {"cpu_model": "Test CPU", "cpu_cores": 2, "memory_bytes": 8 << 30, "device": "CPU"}


def of_commit(number, revision, values, month=11, **more):
    """Three repetitions made on that day of the month; `values`: {metric: one for each}."""
    given = {
        "fingerprint": FINGERPRINT | {"mindspore": "2.9"},
        "facts": {"stage decode": "Map, workers 1, feeds the training"},
    }
    return Measures(
        label=f"run{number}", reps={rep: Repetition(order=rep, job=f"job{number}") for rep in range(3)},
        values={name: dict(enumerate(series)) for name, series in values.items()},
        git={"revision": revision, "dirty": False}, created_at=f"2026-{month}-{number + 1:02d}T10:00:00+00:00",
        **given | more,
    )  # fmt: skip
