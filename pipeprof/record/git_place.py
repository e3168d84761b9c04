"""Baselines as a git revision holds them: read from git's objects, whatever the working tree has. Never written."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote, unquote

from pipeprof.errors import UsageError
from pipeprof.record.git import Repository
from pipeprof.record.place import Place

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Mapping

SCHEME = "git-revision://"
_ADDRESS = re.compile(re.escape(SCHEME) + r"([0-9a-f]{40,64})(?:/(.*))?")


def address(revision: str, path: PurePosixPath) -> str:
    """What stands for a folder of a revision where a folder or URL is expected; `revision` is a full hash."""
    return f"{SCHEME}{revision}/{quote(str(path))}"


def open_git_place(root: str) -> GitPlace:
    """The place that an address names, in the repository of the working directory. Raises UsageError for none."""
    parts = _ADDRESS.fullmatch(root)
    repository = Repository.around(Path.cwd())
    if parts is None or repository is None:
        raise UsageError(f"cannot read `{root}`: no such revision here", f"{SCHEME}COMMIT/FOLDER, in its repository")
    return GitPlace(repository, parts[1], PurePosixPath(unquote(parts[2] or "")))


class GitPlace(Place):
    """A folder of a revision."""

    def __init__(self, repository: Repository, revision: str, folder: PurePosixPath) -> None:
        self.repository, self.revision, self.folder = repository, revision, folder
        self.shown = f"{revision[:10]}:{folder}"

    def exists(self) -> bool:
        """See Place."""
        return bool(self.repository.files(self.revision, self.folder))

    def names(self) -> list[tuple[str, str]]:
        """See Place."""
        paths = (path.relative_to(self.folder).parts for path in self.repository.files(self.revision, self.folder))
        return sorted({(parts[0], parts[1]) for parts in paths if len(parts) == 3 and not parts[1].startswith(".")})

    def read(self, workload: str, machine: str, name: str, sha256: str = "") -> bytes | None:  # noqa: ARG002
        """See Place."""
        return self.repository.read(self.revision, self.folder / workload / machine / name)

    def replace(self, workload: str, machine: str, files: Mapping[str, bytes], entry: bytes) -> NoReturn:  # noqa: ARG002
        """Raises UsageError: a revision is never written."""
        self._refuse()

    def remove(self, workload: str, machine: str) -> NoReturn:  # noqa: ARG002
        """Raises UsageError: a revision is never written."""
        self._refuse()

    def turn(self, workload: str) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002
        """Raises UsageError: a revision is never written."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(f"`{self.shown}` is a revision: it cannot be written", "write into the folder and commit it")
