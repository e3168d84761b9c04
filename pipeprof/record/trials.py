"""What `whatif` and `tune` measured of a workload before, from their results beside a run."""

from __future__ import annotations

import contextlib
import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import PipeprofError
from pipeprof.record.plain_file import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeprof.record.run import Run

RESULTS = {"whatif.json": "whatif", "tune.json": "tune"}
MOST_ENTRIES = 500  # beside the run that are looked at
MOST_BYTES = 1 << 24
UNDECIDED = ("undecided", "failed")  # words of a tuning for what its pairs do not answer
_UNREADABLE = (PipeprofError, OSError, msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError)

Trials = list[dict[str, Any]]


def trials_of(run: Run) -> Trials:
    """Changes of one operator that were measured: by `whatif` on this run, by either verb on its command.

    One row for each, in the fields of verdict/cause.Trial. A run in object storage has no folder beside it.
    """
    manifest = run.manifest
    return trials_beside(Path(run.path).absolute().parent, manifest.command, manifest.run_id, manifest.workdir)


def trials_beside(
    folder: Path,
    command: Sequence[str],
    run_id: str | None = None,
    workdir: str | Path | None = None,
    but: Path | None = None,
) -> Trials:
    """As `trials_of`, of the results in the folders of `folder`. Files that cannot be read say nothing.

    Without the run's identity, a result that is older than a file that the command names says nothing, either; nor do
    those of the folder `but`.
    """
    found: Trials = []
    changed = _changed_at(command, Path(workdir or folder))
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        folders = [entry.path for entry in islice(entries, MOST_ENTRIES) if entry.is_dir(follow_symlinks=False)]
        for path in (Path(one) / name for one in sorted(folders) if Path(one) != but for name in RESULTS):
            with contextlib.suppress(*_UNREADABLE):
                content = msgspec.json.decode(read_file(path, MOST_BYTES))
                same = bool(command) and content["command"] == list(command) and path.stat().st_mtime >= changed
                if same or (run_id and content.get("run", {}).get("run_id") == run_id):
                    found += (_of_whatif if path.name == "whatif.json" else _of_tune)(content)
    return found


def _changed_at(command: Sequence[str], workdir: Path) -> float:
    """When the newest of the files that a command names was changed, in seconds since the epoch; 0 for none."""
    times = [0.0]
    for word in command[1:]:
        with contextlib.suppress(OSError, ValueError):
            if (workdir / word).is_file():
                times.append((workdir / word).stat().st_mtime)
    return max(times)


def _of_whatif(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if content["measured"]["decided"] is not None:
        op = content["op"]
        yield _trial("whatif", op["op_type"], op["name"], content["change"], content["measured"])


def _of_tune(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Of its first step alone: what it tried later was on top of what it had accepted."""
    for trial in content["trials"]:
        if len(trial["what"]) == 1 and trial["ratio"] is not None and trial["verdict"] not in UNDECIDED:
            (row,) = trial["what"]
            yield _trial("tune", row["op"].split(" ")[0], row["name"], row["change"], trial)
        if trial["verdict"] == "accepted":
            return


def _trial(
    verb: str, op_type: str, name: str | None, change: Mapping[str, Any], measured: Mapping[str, Any]
) -> dict[str, Any]:
    low, high = measured["interval"] or (None, None)
    old, new = ({setting: values[side] for setting, values in change.items()} for side in (0, 1))
    return {
        "verb": verb, "op_type": op_type, "name": name, "old": old, "new": new, "times": float(measured["ratio"]),
        "low": low, "high": high,
    }  # fmt: skip
