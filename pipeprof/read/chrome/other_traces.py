"""Chrome traces of any other program: begin and end events, asynchronous ones, with or without categories.

Every interval of a thread is an operator, in a tree of calls; asynchronous ones are spans. Which are steps, the
user says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.read.chrome import reader
from pipeprof.read.chrome.dialect import generic
from pipeprof.read.source.content import Content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

KIND = "chrome"
WHAT = "a Chrome trace of another program (VizTracer, Perfetto's JSON)"
_HEAD = 1 << 16
_EVENTS = re.compile(rb'\s*(?:\[|\{.*?"traceEvents"\s*:\s*\[)\s*\{.*?"ph"\s*:\s*"[A-Za-z]"', re.DOTALL)


def recognise(path: Path) -> bool:
    """Whether a file is a list of Chrome events, by its beginning. Raises SourceError when it cannot be read."""
    with Content(path) as file:
        return _EVENTS.match(file.read(_HEAD)) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """As of `reader`, in the generic dialect."""
    reader.add_files(paths, run, progress, generic)
