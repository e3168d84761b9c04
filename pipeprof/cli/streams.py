"""Our streams: where they cannot be used, no traceback, and no exit code 1, which means `regressed`."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from pipeprof.errors import PipeprofError, UsageError

if TYPE_CHECKING:
    from typing_extensions import Buffer


class StdoutError(PipeprofError):
    """Stdout cannot be written: its disk is full, for example."""

    exit_code = 74  # as in sysexits.h


class StdoutClosed(BaseException):
    """Nobody reads stdout any more. No OSError, which click turns into exit code 1."""


class _Stdout(io.FileIO):
    """Says why it cannot be written, once; what is written after that is dropped."""

    def write(self, data: Buffer) -> int:
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                raise StdoutClosed from error
            raise StdoutError(f"cannot write to stdout: {error.strerror}") from error


class _Stderr(io.FileIO):
    """Drops what cannot be written: there is nobody to tell."""

    def write(self, data: Buffer) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def guard_streams() -> None:
    """Put both in place of the process's own streams, unless something else did so already."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
    if sys.stdout is sys.__stdout__:
        sys.stdout = _over(cast("TextIO", sys.stdout), _Stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _over(cast("TextIO", sys.stderr), _Stderr)


def read_stdin() -> str:
    """What stdin holds, to its end. Raises UsageError when it is closed, or holds no text."""
    if sys.stdin is None:
        raise UsageError("cannot read stdin: it is closed", "send it something, or leave - out")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read stdin: it is no {error.encoding.upper()}", "send it text") from error


def _over(stream: TextIO, kind: type[io.FileIO]) -> TextIO:
    raw = kind(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors="backslashreplace",  # never a failure for a name
        line_buffering=getattr(stream, "line_buffering", False), write_through=getattr(stream, "write_through", False),
    )  # fmt: skip
