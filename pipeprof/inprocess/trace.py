"""A run as a timeline for Perfetto or chrome://tracing."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.read.spool.finish import open_run
from pipeprof.report.output import check_free

if TYPE_CHECKING:
    import os


def write_trace(run: Path, path: str | os.PathLike[str]) -> None:
    """Write the timeline of a run to a file, packed when its name ends in `.gz`.

    Raises UsageError when nothing can be drawn, the file cannot be written, or this pipeprof draws no timelines.
    """
    try:
        timeline: Any = importlib.import_module("pipeprof.report.timeline.trace")
    except ImportError as error:
        raise UsageError("this pipeprof cannot write timelines: install one that has `pipeprof timeline`") from error
    try:
        check_free(Path(path), force=True)
        timeline.write(open_run(run), Path(path), timeline.Choice())
    except UsageError as error:
        raise UsageError(error.message, error.hint.replace("with -o", "as the path")) from error
