"""What SQL that is not ours may take from the system: DuckDB counts what it keeps, not what one value grows to."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def at_most(more: int) -> Iterator[None]:
    """Let this process allocate so many bytes more than it has now; then allocating fails. Nothing without /proc."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        now = int(Path("/proc/self/status").read_text(encoding="ascii").partition("VmData:")[2].split()[0]) << 10
    except (OSError, ValueError, IndexError):
        yield
        return
    ways = [limit for limit in (now + more, soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(ways), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
