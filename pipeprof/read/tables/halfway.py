"""What was read of a file when others must be looked at before its tables can be written.

In a process that shares the work it waits in a file, since another process may go on with it.
"""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof import processes
from pipeprof.record.store import not_written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeprof.record.run import Run


@contextlib.contextmanager
def halfway(run: Run) -> Iterator[Path]:
    """A folder for what waits, which is gone afterwards."""
    where = run.path.resolve()
    with tempfile.TemporaryDirectory(prefix=".half-", suffix=".tmp", dir=where, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


class Waiting:
    """Content that waits for the second pass. Raises RunError when it cannot be written."""

    def __init__(self, content: Any, folder: Path) -> None:
        self._content = content
        self._path: Path | None = None
        if processes.is_one_of_several():
            try:
                with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                    pickle.dump(content, file, pickle.HIGHEST_PROTOCOL)
            except OSError as error:
                raise not_written(folder, error) from error
            self._content, self._path = None, Path(file.name)

    def take(self) -> Any:
        """The content."""
        if self._path is None:
            return self._content
        with self._path.open("rb") as file:
            return pickle.load(file)  # noqa: S301 - this import wrote it
