"""Where a report's text goes: stdout, or a file that is whole or not there. Colours and status lines of a terminal.

Who may ask a server of this machine: requests for its own names, with the token that it printed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from pipeprof.errors import UsageError
from pipeprof.escape import line

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
    temporary = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(output)
    except OSError as error:
        with contextlib.suppress(OSError):  # where there is no such folder there is nothing to remove
            temporary.unlink()
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


HOST = "127.0.0.1"
NAMES = (HOST, "localhost")  # a page elsewhere that points its own name at this machine is refused
TOKEN = "PIPEPROF_TOKEN"  # noqa: S105 - the name of a variable
LEAST = 16  # characters of a token
WRONG_HOST = "This server answers as 127.0.0.1 or localhost alone."
WRONG_TOKEN = "The address lacks the token: open the one that pipeprof printed."  # noqa: S105 - a sentence


def new_token() -> str:
    """A token that nobody else knows, or the one in the variable. Raises UsageError for a short one."""
    given = os.environ.get(TOKEN)
    if given is None:
        return secrets.token_urlsafe(24)
    if len(given) < LEAST or not given.isascii() or not given.replace("-", "").replace("_", "").isalnum():
        raise UsageError(
            f"{TOKEN} has to be {LEAST} or more letters, digits, `-` and `_`", f"unset {TOKEN}: a new token is drawn"
        )
    return given


def is_here(host: str) -> bool:
    """Whether the header `Host` names this machine."""
    return host.partition(":")[0].lower() in NAMES


def is_token(given: str, token: str) -> bool:
    """Whether a request has the token; how long that takes says nothing."""
    return secrets.compare_digest(given.encode(errors="replace"), token.encode())
