"""What a folder with a run holds that is no part of the run: nothing that replaces a run removes it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pipeprof.errors import UsageError
from pipeprof.record.document import is_table_file
from pipeprof.record.lock import LOCK
from pipeprof.record.run import MANIFEST, SPOOL
from pipeprof.record.schema import BY_NAME

_NAMED = 3  # foreign files in an error
_SPOOLS = (SPOOL, f".{SPOOL}")  # the second one while it is removed; what MindSpore writes there has any name
_OWN = re.compile(rf"{re.escape(MANIFEST)}|{LOCK}|\.{re.escape(MANIFEST)}\.\d+\.tmp|\.claim-[0-9a-f-]+")
_LEFT = re.compile(r"\..*\.tmp")  # of a table that was being written


def refuse_foreign(folder: Path, hint: str) -> None:
    """Raises UsageError that names what is no part of the run in a folder. Raises OSError as listing it does."""
    names = sorted(_foreign(str(folder)))
    if names:
        named = ", ".join(f"`{name}`" for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        raise UsageError(
            f"`{folder}` holds what is no part of the run, and would be removed with it: {named}{more}",
            f"move it to another folder, or {hint}",
        )


def _foreign(folder: str, table: str = "", inside: str = "") -> Iterator[str]:
    """The files, links, and folders that are no tables, by their path in the run."""
    with os.scandir(folder) as entries:
        for entry in entries:
            place = f"{inside}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if not inside and entry.name in _SPOOLS:
                    continue
                if not inside and entry.name not in BY_NAME:
                    yield place
                else:
                    yield from _foreign(entry.path, table or entry.name, f"{place}/")
            elif (not table and not _OWN.fullmatch(entry.name)) or (
                table and not (_LEFT.fullmatch(entry.name) or is_table_file(place.partition("/")[2]))
            ):
                yield place
