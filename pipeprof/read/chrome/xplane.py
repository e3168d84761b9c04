"""Profiles of JAX, TensorFlow and PyTorch/XLA as their profiler keeps them (`*.xplane.pb`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.read.chrome import reader
from pipeprof.read.chrome.dialect import xplane
from pipeprof.read.chrome.xplane_wire import is_space
from pipeprof.read.source.content import Content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

KIND = "xplane"
WHAT = "a profile of JAX or TensorFlow (*.xplane.pb)"
_HEAD = 1 << 10


def recognise(path: Path) -> bool:
    """Whether a file is such a profile, by its beginning. Raises SourceError when it cannot be read."""
    with Content(path) as file:
        return is_space(file.read(_HEAD))


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """As of `reader`, in this dialect. What XLA runs was compiled as a whole."""
    reader.add_files(paths, run, progress, xplane)
    run.manifest.fingerprint["mode"] = "xla"
