"""Runs of many ranks, one of which is slower."""

from __future__ import annotations

import numpy as np
from run_files import write

from pipeprof.record.run import Manifest, Run

MS = 1_000_000
STEPS, EVENTS, SLOW = 100, 10, 3


def make_run(folder, ranks, steps=STEPS, events=EVENTS):
    """Step traces of `ranks` ranks: steps of about 100 ms with so many collectives each; one rank is 8 % slower."""
    run = Run(folder, Manifest(run_id="x", started_at="2026-01-01T00:00:00Z", pipeprof_version="0", state="complete"))
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(1)
    work = chance.normal(60, 1, (steps, ranks)) * MS
    work[:, SLOW] += 8 * MS
    length = (work.max(axis=1) + 20 * MS).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(length)[:-1]])
    number = np.arange(steps, dtype=np.int64)
    for rank in range(ranks):
        bp = start + work[:, rank].astype(np.int64)
        write(run, "step", rank=rank, step=number, kind_step=number, kind=["train"] * steps, start_ns=start,
              fp_ns=start + MS, bp_ns=bp, end_ns=start + length, in_window=[False] * steps)  # fmt: skip
        if not events:
            continue
        begin = np.linspace(bp, start + length - MS, events, axis=1).astype(np.int64)
        write(run, "collective", rank=rank, step=np.repeat(number, events), track=["stream 3"] * (steps * events),
              name=[f"AllReduce-op{event}" for event in range(events)] * steps,
              kind=["all_reduce"] * (steps * events), start_ns=begin.ravel(),
              dur_ns=np.full(steps * events, MS, np.int64))  # fmt: skip
    return run
