"""One status line on stderr for work that takes a while; nothing when stderr is no terminal."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from pipeprof.escape import line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def status_line(title: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that shows what is being done. The line is gone afterwards."""
    if quiet or not sys.stderr.isatty():
        yield lambda _text: None
        return
    shown = False

    def show(text: str) -> None:
        nonlocal shown
        shown = True
        sys.stderr.write(f"\r\x1b[K{line(title)}: {line(text)}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
