"""Names in stored documents that become paths, as types that are checked while the document is read.

A document may come from anybody. A name of one of these types is one file or folder, and never leads out of the folder
that it is looked for in.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from pipeprof.errors import UsageError

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"
_PART = r"rep=[0-9]{1,9}/rank=[0-9]{1,9}/part-[0-9]{1,9}\.parquet"
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
COMPACT = "rows.parquet"  # of a table: the rows of all its ranks, with the columns `rep` and `rank`

FileName = Annotated[str, msgspec.Meta(pattern=rf"\A{_NAME}\Z")]
PartName = Annotated[str, msgspec.Meta(pattern=rf"\A[a-z_]{{1,40}}/({re.escape(COMPACT)}|{_PART})\Z")]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Revision = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40}([0-9a-f]{24})?\Z")]

_of_a_rank = re.compile(_PART)
_one_name = re.compile(_NAME)


def checked_name(name: str, what: str) -> str:
    """The name of a workload or machine class, if it is one folder name on every system.

    Raises UsageError for path parts, other characters than letters, digits, `.`, `_` and `-`, and names Windows keeps.
    """
    if not _one_name.fullmatch(name) or name.endswith(".") or name.lower().partition(".")[0] in _DEVICES:
        raise UsageError(
            f"`{name}` cannot be the name of a {what}",
            "use up to 80 letters, digits, `-`, `_` and `.`, and begin with a letter or digit",
        )
    return name


def is_table_file(name: str) -> bool:
    """Whether a file of a table has such a name within its folder."""
    return name == COMPACT or is_rank_part(name)


def is_rank_part(name: str) -> bool:
    """Whether a file of one rank has such a name within its table: `rep=0/rank=3/part-00000.parquet`."""
    return _of_a_rank.fullmatch(name) is not None
