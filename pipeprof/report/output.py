"""Where a report's text goes: stdout, or a file that is whole or not there. Colours and status lines of a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from pipeprof.errors import UsageError
from pipeprof.escape import line
from pipeprof.record.plain_file import replacing

PLAIN_WIDTH = 120  # columns of what no terminal shows
_CHOSEN = {"colours": True}


def choose_colours(*, wanted: bool) -> None:
    """For the rest of this process; no variable, which a command that is run would inherit."""
    _CHOSEN["colours"] = wanted


def has_colours() -> bool:
    """Whether a terminal gets colours: unless they are not wanted, or NO_COLOR is set."""
    return _CHOSEN["colours"] and not os.environ.get("NO_COLOR")


def write_text(text: str, output: Path | None) -> None:
    """Print the text, or write it to a temporary name and rename it. Raises UsageError when it cannot be written."""
    if output is None:
        click.echo(text, nl=bool(text) and not text.endswith("\n"))
        return
    with written_whole(output) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextlib.contextmanager
def written_whole(output: Path) -> Iterator[Path]:
    """A name beside the file to write to, which becomes the file at the end. Raises UsageError when that cannot be."""
    try:
        with replacing(output) as temporary:
            yield temporary
    except OSError as error:
        raise UsageError(f"cannot write `{output}`: {error.strerror}", "choose another file with -o") from error


def check_free(output: Path, *, force: bool) -> None:
    """Raise UsageError when a file is there that `force` does not allow to replace, or something that is no file."""
    device = output.absolute().parts[1:2] in (("dev",), ("proc",))  # `/dev/stdout` is a link, perhaps to a file
    if device or output.is_dir() or (output.exists() and not output.is_file()):
        what = "a folder" if output.is_dir() else "not a file"
        raise UsageError(f"cannot write `{output}`: it is {what}", "give the name of a file")
    if not force and (output.exists() or output.is_symlink()):
        raise UsageError(f"`{output}` exists", "give another name, or --force to replace it")


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
