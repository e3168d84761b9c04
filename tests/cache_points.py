"""Caches as verdict/storage says them, of which a test names what matters."""

from __future__ import annotations

from pipeprof.verdict.storage import CachePoint

KNOWN = {
    "op_id": 1, "op_type": "MapOp", "name": "decode", "site": "a.py:1", "rows": None, "row_bytes": None, "bytes": 1000, "rate": 1.0,
    "ratio": 1.0, "trial": None, "low": None, "high": None, "untimed": False, "disk_ratio": None, "changes": None, "python": True,
}  # fmt: skip


def cache_point(**known) -> CachePoint:
    return CachePoint(**KNOWN | known)
