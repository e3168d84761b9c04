"""What the page of a very long run on many ranks costs: CPU seconds and peak memory to make it, its size, and to load it.

python lab/benchmarks/page_cost.py --steps 100000 --ranks 64

The page is made in a process of its own, from the tables and from the answers that are kept with a long run (`pipeprof compact` writes
them here), and loaded in Chromium. `--compacted` leaves the first out, `--keep FOLDER` keeps the run and its page there.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
from run_files import cost, sealed, write

from pipeprof.record.run import Manifest, Run

MS = 1_000_000
SLOW_RANK, LONG_STEP, LONG_NS = 3, 0.37, 900 * MS  # the rank that is late, where its one long step is, and how long
DEEP = 0.61  # where the memory has its one peak
CAPACITY, LEVEL, PEAK = 16, 1 << 30, 3 << 30


def make_run(folder, steps, ranks, chance=None):
    """A recording of so many steps of about 50 ms on each rank, with one long step and one peak of memory among them."""
    run = Run(folder, Manifest(run_id="x", started_at="2026-01-01T00:00:00Z", pipeprof_version="0", state="complete"))
    folder.mkdir(parents=True, exist_ok=True)
    chance = chance or np.random.default_rng(1)
    for rank in range(ranks):
        _write_rank(run, rank, steps, chance)
    return sealed(run)


def _write_rank(run, rank, steps, chance):
    number = np.arange(steps, dtype=np.int64)
    length = chance.normal(52 if rank == SLOW_RANK else 50, 1, steps) * MS
    if rank == SLOW_RANK:
        length[int(steps * LONG_STEP)] = LONG_NS
    end = np.cumsum(length).astype(np.int64)
    start = np.concatenate([[0], end[:-1]])
    wait = np.full(steps, 4 * MS)
    kind = np.where(number < 2, "warmup", "train")
    write(run, "step", rank=rank, step=number, kind_step=number, kind=kind, epoch=number * 10 // steps,
          pipeline_id=np.zeros(steps, np.int64), start_ns=start, fp_ns=start + wait, end_ns=end, data_wait_ns=wait,
          fetch_wait_ns=wait, input_ns=wait, fp_source=["fetch"] * steps, in_window=[False] * steps)  # fmt: skip
    write(run, "fetch", rank=rank, pipeline_id=np.zeros(steps, np.int64), fetch=number, step=number, start_ns=start,
          wait_ns=wait, side=["iterator"] * steps)  # fmt: skip
    _write_pipeline(run, rank, end[-1], steps // 2, chance)
    _write_samples(run, rank, end[-1], max(steps // 20, 2))
    write(run, "run_part", rank=rank, part=["start", "import", "training"], count=[1, 1, steps],
          start_ns=[0, 400 * MS, 3400 * MS], dur_ns=[400 * MS, 3000 * MS, int(end[-1])])  # fmt: skip


def _write_pipeline(run, rank, end, samples, chance):
    ops = ("BatchOp", "MapOp", "GeneratorOp")
    write(run, "pipeline", rank=rank, pipeline_id=[0], pipeline_key=["abc"], role=["train"], site=["train.py:7"],
          created_ns=[0], ready_ns=[1], batch_size=[32], queues=["recorded"])  # fmt: skip
    write(run, "pipeline_op", rank=rank, pipeline_id=[0] * 3, op_id=[0, 1, 2], op_type=ops, name=["", "decode", "Source"],
          workers=[1, 4, 1], capacity=[CAPACITY] * 3, inlined=[False] * 3)  # fmt: skip
    write(run, "pipeline_edge", rank=rank, pipeline_id=[0, 0], producer_id=[1, 2], consumer_id=[0, 1])
    at = np.tile(np.linspace(1, end, samples, dtype=np.int64), 3)
    write(run, "queue", rank=rank, pipeline_id=np.zeros(3 * samples, np.int64), op_id=np.repeat([0, 1, 2], samples), t_ns=at,
          depth=chance.integers(0, CAPACITY + 1, 3 * samples), capacity=np.full(3 * samples, CAPACITY))  # fmt: skip


def _write_samples(run, rank, end, samples):
    at = np.linspace(0, end, samples + 1, dtype=np.int64)
    level = np.full(samples, LEVEL)
    level[int(samples * DEEP)] = PEAK
    write(run, "memory", rank=rank, t_ns=at[1:], device=["process"] * samples, pid=np.full(samples, 100 + rank),
          name=["trainer"] * samples, rss_bytes=level, rss_peak_bytes=np.maximum.accumulate(level))  # fmt: skip
    parts = ("main", "dataset_thread", "neighbour")
    write(run, "cpu_use", rank=rank, start_ns=np.repeat(at[:-1], 3), end_ns=np.repeat(at[1:], 3), part=parts * samples,
          members=np.ones(3 * samples, np.int64), cpu_ns=np.repeat(np.diff(at), 3) // 2)  # fmt: skip


def load(page, times=5):
    """CPU seconds of Chromium's main thread until the first chart and until all of a page are drawn: each the least of several."""
    from playwright.sync_api import sync_playwright

    first = "() => document.querySelector('.chart[data-drawn]')"
    every = "() => [...document.querySelectorAll('.chart')].every((one) => one.dataset.drawn)"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        found = [[_used(browser, page, drawn) for drawn in (first, every)] for _ in range(times)]
        browser.close()
    return tuple(map(min, zip(*found, strict=True)))


def _used(browser, page, drawn):
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    asked = tab.context.new_cdp_session(tab)
    asked.send(
        "Performance.enable", {"timeDomain": "threadTicks"}
    )  # what another process takes of a core is not counted
    tab.goto(page.as_uri())
    tab.wait_for_function(drawn, polling=20)
    used = {one["name"]: one["value"] for one in asked.send("Performance.getMetrics")["metrics"]}["ThreadTime"]
    tab.close()
    return used


def main():
    """Make the run, its page in a process, and load it."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--steps", type=int, default=100_000)
    asked.add_argument("--ranks", type=int, default=64)
    asked.add_argument("--compacted", action="store_true")
    asked.add_argument("--keep", type=Path)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        run, page = folder / "run", folder / "page.html"
        if not run.exists():
            make_run(run, given.steps, given.ranks)
        made = ("report", run, "--format", "html", "--force", "-o", page)
        for what, words in (
            *(() if given.compacted else (("page from the tables", made),)),
            ("compaction", ("compact", run)),
            ("report, compacted", ("report", run)),
            ("page, compacted", made),
        ):
            seconds, mib = cost(*words)
            print(f"{what}: {seconds:.1f} CPU s, {mib:.0f} MiB at most", flush=True)
        first, every = load(page)
        size = page.stat().st_size / 1e6
        print(f"{size:.2f} MB; the browser's main thread: first chart {first:.2f} CPU s, all charts {every:.2f} CPU s")


if __name__ == "__main__":
    main()
