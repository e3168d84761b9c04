"""What `whatif` and `tune` measured of a workload before, from their results beside the run."""

from __future__ import annotations

import contextlib
import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import PipeprofError
from pipeprof.record.plain_file import read_file
from pipeprof.verdict.cause import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeprof.record.run import Run

RESULTS = {"whatif.json": "whatif", "tune.json": "tune"}
MOST_ENTRIES = 500  # beside the run that are looked at
MOST_BYTES = 1 << 24
_UNREADABLE = (PipeprofError, OSError, msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError)


def trials_of(run: Run) -> list[Trial]:
    """Changes of one operator that were measured: by `whatif` on this run, by `tune` on its command.

    Files that cannot be read say nothing. A run in object storage has no folder beside it.
    """
    found: list[Trial] = []
    with contextlib.suppress(OSError), os.scandir(Path(run.path).absolute().parent) as entries:
        folders = [entry.path for entry in islice(entries, MOST_ENTRIES) if entry.is_dir(follow_symlinks=False)]
        for folder in sorted(folders):
            for name, verb in RESULTS.items():
                path = Path(folder) / name
                if path.is_file():
                    with contextlib.suppress(*_UNREADABLE):
                        content = msgspec.json.decode(read_file(path, MOST_BYTES))
                        found += _of_whatif(content, run) if verb == "whatif" else _of_tune(content, run)
    return found


def _of_whatif(content: Mapping[str, Any], run: Run) -> Iterator[Trial]:
    if content["run"]["run_id"] == run.manifest.run_id:
        op, measured = content["op"], content["measured"]
        yield _trial("whatif", op["op_type"], op["name"], content["change"], measured)


def _of_tune(content: Mapping[str, Any], run: Run) -> Iterator[Trial]:
    """Of its first step alone: what it tried later was on top of what it had accepted."""
    if content["command"] != run.manifest.command:
        return
    for trial in content["trials"]:
        if len(trial["what"]) == 1 and trial["ratio"] is not None:
            (row,) = trial["what"]
            yield _trial("tune", row["op"].split(" ")[0], row["name"], row["change"], trial)
        if trial["verdict"] == "accepted":
            return


def _trial(verb: str, op_type: str, name: str | None, change: Mapping[str, Any], measured: Mapping[str, Any]) -> Trial:
    low, high = measured["interval"] or (None, None)
    new = {setting: values[1] for setting, values in change.items()}
    return Trial(verb, op_type, name, new, float(measured["ratio"]), low, high)
