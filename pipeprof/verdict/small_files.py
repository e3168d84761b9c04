"""A source that waits for a small file, or more of them, for each row: worth one large file. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.verdict.capacity import SOURCE
from pipeprof.verdict.storage import WORTH, reading_shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.rows import JudgedStage, StorageUse

SMALL_FILE = 1 << 20  # bytes of a row up to which finding its file may take as long as reading it
FOLDERS = frozenset(["AlbumOp", "CelebAOp", "CocoOp", "DIV2KOp", "Food101Op", "ImageFolderOp", "ManifestOp", "VOCOp"])


def small_files(
    advice: Mapping[str, Any], load: Sequence[JudgedStage], facts: Sequence[StorageUse]
) -> dict[str, Any] | None:
    """The source of a pipeline, where it does; None where that costs the loop next to nothing.

    `most`: times that the loop would be as fast if no row had to be waited for. One file that is read from its
    beginning to its end can come near that, where finding and opening files is what takes time.
    """
    most = advice["curve"][-1]["ratio"]
    shares = reading_shares(facts)
    for row in facts:
        read = row.read_bytes
        by_file = row.op_type in FOLDERS or (row.op_type == SOURCE and bool(read))  # else it waits for no file
        if row.producers or row.op_id not in shares or not by_file or most < WORTH or (read or 0) > SMALL_FILE:
            continue
        made = next((one for one in load if one.op_id == row.op_id), None)
        return {
            "op_id": row.op_id, "op_type": row.op_type, "name": made.name if made else None,
            "site": made.site if made else None,
            "share": shares[row.op_id], "read_bytes": read, "most": most,
        }  # fmt: skip
    return None
