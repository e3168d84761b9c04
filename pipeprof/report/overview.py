"""What a list of runs says about each: its verdict and its step time. Remembered, for finding them takes queries."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

import msgspec

from pipeprof.errors import PipeprofError
from pipeprof.query.engine import Engine
from pipeprof.record import checksums
from pipeprof.record.cache import cache_folder, recall, remember
from pipeprof.report.diagnosis import data_verdict
from pipeprof.report.rollup import stored
from pipeprof.report.summary import median_step_ns
from pipeprof.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from pipeprof.record.run import Run

MOST_BYTES = 1 << 16


class Overview(msgspec.Struct):
    """`verdict` and `op_name` are those of the report's diagnosis; `step_ns` is the median training step.

    `problem`: why the run could not be asked.
    """

    verdict: str | None = None
    op_name: str | None = None
    step_ns: float | None = None
    problem: str = ""


def overview(run: Run) -> Overview:
    """The overview of a run whose tables are written. A damaged table is its `problem`, not an error."""
    try:
        rollup = stored(run)
    except PipeprofError as error:
        return Overview(problem=error.message)
    if rollup is not None:
        return _of_rollup(rollup)
    path = None
    with contextlib.suppress(OSError):
        path = _cache_path(run)
        remembered = recall(path, Overview, MOST_BYTES)
        if remembered is not None:
            return remembered
    try:
        answer = _asked(run)
    except PipeprofError as error:
        return Overview(problem=error.message)
    if path is not None:
        remember(path, answer)
    return answer


def _asked(run: Run) -> Overview:
    with Engine.open(run, lazily=True) as engine:
        summary = engine.rows("step/summary")
        diagnosis = data_verdict(engine, run, engine.rows("step/data_wait"), engine.rows("queue/pipelines"))
    return Overview(diagnosis["verdict"], diagnosis["op_name"] or diagnosis["op_type"], median_step_ns(summary))


def _of_rollup(rollup: pa.Table) -> Overview:
    ranks = rollup.select(["rep", "verdict", "op_name", "op_type", "kind", "median_ns"]).to_pylist()
    said = ranks[0]
    return Overview(
        said["verdict"], said["op_name"] or said["op_type"],
        median_step_ns([row for row in ranks if row["median_ns"] is not None]),
    )  # fmt: skip


def _cache_path(run: Run) -> Path:
    """A file of the cache, named for the run's content and the version that judges: a moved run is known again."""
    digest = hashlib.sha256(__version__.encode() + msgspec.json.encode(run.manifest))
    for name, path in sorted(checksums.stored(run).items()):
        about = path.stat()
        text = f"{name} {about.st_size} {about.st_mtime_ns}\n"
        digest.update(text.encode("utf-8", "surrogateescape"))
    return cache_folder("overviews") / f"{digest.hexdigest()[:32]}.json"
