"""A run that is being recorded, as far as it has come: a run of its own in a temporary folder, which goes again."""

from __future__ import annotations

import contextlib
import copy
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pipeprof.read.spool.convert import convert_rep
from pipeprof.record.note import note
from pipeprof.record.run import SPOOL, Run

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def snapshot(run: Run) -> Iterator[Run]:
    """The newest repetition's tables up to now; the run is only read. Raises RunError when they cannot be made."""
    with tempfile.TemporaryDirectory(prefix="pipeprof-") as folder:
        copied = Run(Path(folder), copy.deepcopy(run.manifest))
        (copied.path / SPOOL).symlink_to(run.spool.resolve(), target_is_directory=True)
        if reps := run.spooled_reps():
            result = convert_rep(copied, reps[-1])
            copied.manifest.tables = dict(result.rows)
        copied.manifest.decide("partial", note("being_recorded"))
        yield copied
