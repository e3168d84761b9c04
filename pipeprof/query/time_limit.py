"""How long a question may take: DuckDB is interrupted when its time is up."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import duckdb

from pipeprof.errors import QueryError
from pipeprof.record import limits

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def in_time(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let DuckDB work for so long as a question may take.

    Raises QueryError when it was interrupted for that; what is interrupted by a key is told as before.
    """
    over = threading.Event()

    def end() -> None:
        over.set()
        connection.interrupt()

    timer = threading.Timer(limits.most_query_seconds(), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (duckdb.Error, OSError, ValueError, RuntimeError) as error:  # Arrow hands errors of a stream on as its own
        if over.is_set() and "interrupt" in str(error).lower():
            raise taken_too_long() from error
        raise
    finally:
        timer.cancel()


def taken_too_long() -> QueryError:
    """What is said of a query whose time is up."""
    return QueryError(
        f"the query took longer than {limits.most_query_seconds():,} s",
        f"ask for fewer rows at once, or set {limits.QUERY_SECONDS} to allow more",
    )
