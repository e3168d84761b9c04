"""From what the tables `rollup` and `kept_answer` were made: where that is another now, they are made anew."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from pipeprof.query.catalog import queries_root
from pipeprof.record.checksums import ANSWERS, ROLLUP
from pipeprof.version import __version__

if TYPE_CHECKING:
    from pipeprof.record.run import Run

VERSION = 3  # of what the columns of the rollup mean; the version of pipeprof stands for the rules


def of_rollup(run: Run) -> str | None:
    """32 digits that differ when the tables, what the verdict asks of the manifest, or the rules do.

    None for a run without checksums, which an older pipeprof wrote.
    """
    manifest = run.manifest
    if manifest.parts is None:
        return None
    parts = {name: part for name, part in manifest.parts.items() if name.partition("/")[0] not in (ROLLUP, ANSWERS)}
    asked = [VERSION, __version__, manifest.source, manifest.fingerprint.get("cpu_cores"), parts]
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()[:32]


def of_answers(run: Run) -> str | None:
    """As `of_rollup`, and with the texts of all queries."""
    rollup = of_rollup(run)
    return None if rollup is None else hashlib.sha256((rollup + _query_texts()).encode()).hexdigest()[:32]


@cache
def _query_texts() -> str:
    digest = hashlib.sha256()
    for path in sorted(queries_root().rglob("*.sql")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
