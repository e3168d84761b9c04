"""Traces of DFTracer (`*.pfw`, `*.pfw.gz`): Python functions, and calls of the file system.

Names follow two conventions: those of DLIO (`TorchFramework.compute`, `NPZReader.open`), and those of DFTracer's own
`ai` decorators (`compute.step`, `dataloader.fetch.iter`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.read.chrome import reader
from pipeprof.read.chrome.dialect import dftracer
from pipeprof.read.source.content import Content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

KIND = "dftracer"
WHAT = "a trace of DFTracer (*.pfw, *.pfw.gz)"
_HEAD = 1 << 16
_EVENT = re.compile(rb'\A\s*(?:\[\s*)?\{(?=[^\n]*"(?:hostname|hhash)"\s*:)[^\n]*"ph"\s*:\s*(?:"[XMC]"|\d)[^\n]*\}')


def recognise(path: Path) -> bool:
    """Whether a file is such a trace, by its first event. Raises SourceError when it cannot be read."""
    with Content(path) as file:
        return _EVENT.match(file.read(_HEAD)) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """As of `reader`, in this dialect."""
    reader.add_files(paths, run, progress, dftracer)
