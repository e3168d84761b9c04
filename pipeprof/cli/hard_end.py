"""The end of a process that cannot be interrupted: some functions of SQL do not look up before one value is made."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING

from pipeprof.cli.messages import tell_error
from pipeprof.query import spill
from pipeprof.query.time_limit import taken_too_long
from pipeprof.record import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeprof.errors import QueryError

GRACE_S = 10  # for an end by interruption


@contextlib.contextmanager
def process_ends_late() -> Iterator[None]:
    """End this process with the error of a query that took too long, when even interrupting it did not help."""
    timer = threading.Timer(limits.most_query_seconds() + GRACE_S, _end, [taken_too_long()])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(error: QueryError) -> None:
    tell_error(error.message, error.hint)
    sys.stderr.flush()
    spill.remove_all()
    os._exit(error.exit_code)
