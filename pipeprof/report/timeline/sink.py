"""The trace file: written under a temporary name, packed on the way, renamed when it is whole."""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import IO, TYPE_CHECKING

from pipeprof.errors import UsageError
from pipeprof.report.timeline.text import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from pipeprof.report.timeline.clock import Process

_GZIP = 31  # window of 32 KiB, with gzip's header and checksum
_LEVEL = 1  # level 6 takes three times as long for a file 20 % smaller


class Sink:
    """An object of the Trace Event Format. Use it in a `with`: the file appears when the block ends without an error.

    `pipeprof.ranks` in it says which process is which rank: what reads the trace back needs it.
    Raises UsageError when the file cannot be written.
    """

    def __init__(self, path: Path, base_ns: int, about: dict[str, str], processes: Sequence[Process]) -> None:
        self.path = path
        self.bytes = 0
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}")
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP) if path.suffix == ".gz" else None
        other = ",".join(f"{quoted(key)}:{quoted(value)}" for key, value in about.items())
        ranks = ",".join(_rank(process) for process in processes)
        self._head = (
            f'{{"displayTimeUnit":"ms","baseTimeNanoseconds":"{base_ns}","otherData":{{{other}}},'
            f'"pipeprof":{{"ranks":[{ranks}]}},"traceEvents":[\n'
        )
        self._empty = True
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._file = self._temporary.open("wb")
        except OSError as error:
            raise self._explained(error) from error
        try:
            self._put(self._head.encode())
        except UsageError:
            self._discard()
            raise
        return self

    def write(self, text: bytes | memoryview) -> None:
        """Add events; each begins with a comma and a line break."""
        if not len(text):
            return
        if self._empty:
            text, self._empty = memoryview(text)[2:], False
        self._put(text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._discard()

    def _discard(self) -> None:
        """What is not whole goes, on a full disk too, where closing fails again; after a renaming nothing is left."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        self._temporary.unlink(missing_ok=True)

    def _finish(self) -> None:
        self._put(b"\n]}\n")
        try:
            if self._file is not None:
                self._file.write(self._packer.flush() if self._packer else b"")
                self._file.close()
            self._temporary.replace(self.path)
        except OSError as error:
            raise self._explained(error) from error

    def _put(self, text: bytes | memoryview) -> None:
        self.bytes += len(text)
        try:
            if self._file is not None:
                self._file.write(self._packer.compress(text) if self._packer else text)
        except OSError as error:
            raise self._explained(error) from error

    def _explained(self, error: OSError) -> UsageError:
        return UsageError(f"cannot write `{self.path}`: {error.strerror}", "choose another file with -o")


def _rank(process: Process) -> str:
    return f'{{"pid":{process.pid},"rep":{process.rep},"rank":{process.rank},"host":{quoted(process.host)}}}'
