"""Traces of rocprofv3 in its own JSON (`rocprofv3 --output-format json`): kernels, copies, calls of HIP, ranges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.read.chrome import reader
from pipeprof.read.chrome.dialect import rocprof
from pipeprof.read.source.content import Content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

KIND = "rocprof"
WHAT = "JSON of rocprofv3 (*_results.json)"
_HEAD = 1 << 12
_BEGIN = re.compile(rb'\A\s*\{\s*"rocprofiler-sdk-tool"\s*:\s*\[')


def recognise(path: Path) -> bool:
    """Whether a file is such a trace, by its beginning. Raises SourceError when it cannot be read."""
    with Content(path) as file:
        return _BEGIN.match(file.read(_HEAD)) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """As of `reader`, in this dialect."""
    reader.add_files(paths, run, progress, rocprof)
