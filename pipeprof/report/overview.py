"""What a list of runs says about each: its verdict and its step time. Remembered, for finding them takes queries."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeprof import __version__
from pipeprof.errors import PipeprofError
from pipeprof.query.engine import Engine
from pipeprof.record import checksums
from pipeprof.record.cache import cache_folder
from pipeprof.record.plain_file import read_file
from pipeprof.report.diagnosis import data_verdict
from pipeprof.report.summary import median_step_ns

if TYPE_CHECKING:
    from pipeprof.record.run import Run


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
    place = None
    with contextlib.suppress(OSError, RuntimeError, msgspec.DecodeError):  # RuntimeError: nobody's home is known
        place = _place(run)
        return msgspec.json.decode(read_file(place, 1 << 16), type=Overview)
    try:
        found = _asked(run)
    except PipeprofError as error:
        return Overview(problem=error.message)
    if place is not None:
        _keep(found, place)
    return found


def _keep(found: Overview, place: Path) -> None:
    """Write it whole or not at all; where that fails it will be asked again."""
    temporary = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
            temporary = file.name
            file.write(msgspec.json.encode(found))
        Path(temporary).replace(place)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _asked(run: Run) -> Overview:
    with Engine.open(run, lazily=True) as engine:
        summary = engine.rows("step/summary")
        found = data_verdict(engine, run, engine.rows("step/data_wait"), engine.rows("queue/pipelines"))
    return Overview(found["verdict"], found["op_name"] or found["op_type"], median_step_ns(summary))


def _place(run: Run) -> Path:
    """A file of the cache, named for the run's content and the version that judges: a moved run is known again."""
    known = hashlib.sha256(__version__.encode() + msgspec.json.encode(run.manifest))
    for name, path in sorted(checksums.stored(run).items()):
        about = path.stat()
        text = f"{name} {about.st_size} {about.st_mtime_ns}\n"
        known.update(text.encode("utf-8", "surrogateescape"))
    return cache_folder("overviews") / f"{known.hexdigest()[:32]}.json"
