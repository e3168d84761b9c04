"""Finds the gate's settings: those of the base revision, where there is one, else those of the working tree.

In each folder `pipeprof.toml` (table `[gate]`, or the keys themselves) goes before the table `[tool.pipeprof.gate]` of
`pyproject.toml`; the nearest folder that has one counts, up to the git root.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from pipeprof.errors import UsageError
from pipeprof.record import document
from pipeprof.record.document import BAD_JSON
from pipeprof.record.git import Repository, git_or_none
from pipeprof.record.plain_file import read_file
from pipeprof.verdict.gate.policy import Policy, read_policy

if TYPE_CHECKING:
    from collections.abc import Callable

OWN, PROJECT = "pipeprof.toml", "pyproject.toml"
SECTION = "gate"
MOST_BYTES = 1 << 20  # of a file that the judged change brings
Origin = Literal["revision", "working_tree", "file", "defaults", "given"]


@dataclass(frozen=True)
class FoundPolicy:
    """Settings, and where they are from.

    `origin`: a git revision, the working tree, a file outside of git, no file at all, or the program that asks.
    `path`: the file, named from the repository's root where there is one. `revision`: the full hash that was looked
    into, or that the working tree is of. `changed`: the file differs from that revision, or is not in it.
    """

    policy: Policy = field(default_factory=Policy)
    origin: Origin = "defaults"
    path: str | None = None
    revision: str | None = None
    changed: bool = False


def find_policy(path: Path | None, revision: str | None = None) -> FoundPolicy:
    """The settings in `path`; without one, those of the working directory or its nearest parent, else the defaults.

    With a `revision` (a full hash), what lies in the repository is read as that revision has it. A file that only the
    judged change brings counts for nothing there; one that is not in git at all is refused.

    Raises UsageError that names the file, and the key where there is one, for a named file that cannot be read or is
    without settings, for wrong TOML, and for unknown keys and wrong values.
    """
    repository = Repository.around(Path.cwd())
    inner = repository.inside(path) if repository is not None and path is not None else None
    if repository is None or revision is None or (path is not None and inner is None):
        return _on_disk(repository, path)
    settings = policy_at(repository, revision, inner)
    if inner is not None and settings.path is None and not is_tracked(repository, inner):
        raise UsageError(
            f"`{inner}` is not in revision {revision[:10]}, nor in git at all",
            "commit it there, or name a file outside of the repository",
        )
    return settings


def policy_at(repository: Repository, revision: str, path: PurePosixPath | None) -> FoundPolicy:
    """As `find_policy`, of a revision; `path` is named from the root, and the defaults hold where it is not there.

    A link in its place is refused: what it leads to holds the settings that were meant.
    """
    where = f"revision {revision[:10]}"

    def read(name: PurePosixPath) -> bytes | None:
        if (path is not None or name.name == OWN) and repository.is_link(revision, name):
            raise UsageError(f"`{name}` of {where} is a link, which is not followed", "commit the file itself there")
        return repository.read(revision, name)

    nearest = _nearest(repository, path, read, where)
    if nearest is None:
        return FoundPolicy(revision=revision)
    name, table = nearest
    return FoundPolicy(read_policy(table, f"`{name}` of {where}"), "revision", str(name), revision)


def policy_after(repository: Repository, revision: str | None, path: PurePosixPath | None) -> FoundPolicy:
    """The settings that the change would bring; `revision` None: in the working tree. Raises as `find_policy`."""
    if revision is not None:
        return policy_at(repository, revision, path)
    nearest = _nearest(repository, path, lambda name: _small_file(repository.root / name), "the working tree")
    if nearest is None:
        return FoundPolicy()
    name, table = nearest
    return FoundPolicy(read_policy(table, f"`{name}` of the working tree"), "working_tree", str(name))


def candidates(repository: Repository, path: PurePosixPath | None) -> list[PurePosixPath]:
    """The files that may hold the settings, the first one first; only the named one when there is a name."""
    if path is not None:
        return [path]
    inside = repository.inside(Path.cwd()) or PurePosixPath()
    return [folder / name for folder in (inside, *inside.parents) for name in (OWN, PROJECT)]


def _nearest(
    repository: Repository, path: PurePosixPath | None, read: Callable[[PurePosixPath], bytes | None], where: str
) -> tuple[PurePosixPath, dict[str, Any]] | None:
    """The first file that has settings, and their table."""
    for name in candidates(repository, path):
        data = read(name)
        table = _table(data, name.name, f"`{name}` of {where}") if data is not None else None
        if table is not None:
            return name, table
    return None


def is_tracked(repository: Repository, path: PurePosixPath) -> bool:
    """Whether git has the file, at least to be committed."""
    words = ("--literal-pathspecs", "ls-files", "--error-unmatch", "--", str(path))
    return git_or_none(repository.root, *words) is not None


def _on_disk(repository: Repository | None, path: Path | None) -> FoundPolicy:
    """The settings of a named file, or of the nearest one that has any."""
    if path is not None:
        table = _table(_read(path), path.name, f"`{path}`")
        if table is None:
            raise UsageError(f"no table `[tool.pipeprof.gate]` in `{path}`", "see docs/policy.md for its keys")
        return _of_disk(repository, path, read_policy(table, f"`{path}`"))
    for nearest in (folder / name for folder in _folders(Path.cwd()) for name in (OWN, PROJECT)):
        table = _table(_read(nearest), nearest.name, f"`{nearest}`") if os.path.lexists(nearest) else None
        if table is not None:
            return _of_disk(repository, nearest, read_policy(table, f"`{nearest}`"))
    return FoundPolicy()


def _of_disk(repository: Repository | None, path: Path, policy: Policy) -> FoundPolicy:
    """A file as it lies there; in a repository, whether that is what its last commit holds."""
    inner = repository.inside(path) if repository else None
    if repository is None or inner is None:
        return FoundPolicy(policy, "file", str(path))
    head = repository.commit("HEAD")
    changed = head is None or repository.read(head, inner) != read_file(path, MOST_BYTES)
    return FoundPolicy(policy, "working_tree", str(inner), head, changed)


def _small_file(path: Path) -> bytes | None:
    """The content of a file that the judged change brings; None where there is none.

    Raises UsageError for a link, a device and a large file: nothing of these is opened.
    """
    if not path.is_symlink() and not path.exists():
        return None
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise UsageError(f"`{path}` is not a plain file of at most {MOST_BYTES:,} bytes", "give a TOML file")
    return _read(path)


def _folders(start: Path) -> list[Path]:
    """The folder and its parents up to the one that holds `.git`; only the folder itself outside a repository."""
    folders = [start, *start.parents]
    root = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[: root + 1]


def _table(data: bytes, name: str, where: str) -> dict[str, Any] | None:
    """The gate's table of a file; None when the file is a pyproject.toml without one."""
    content = _parsed(data, where)
    if name != PROJECT and "tool" not in content:
        return _section(content, where, "") if SECTION in content else content
    own = _as_table(content.get("tool", {}), where, "tool").get("pipeprof")
    if own is None:
        return None
    return _section(_as_table(own, where, "tool.pipeprof"), where, "tool.pipeprof.")


def _section(table: dict[str, Any], where: str, prefix: str) -> dict[str, Any]:
    for key in table:
        if key != SECTION:
            raise UsageError(f"unknown key `{prefix}{key}` in {where}", f"the gate's table is `[{prefix}{SECTION}]`")
    return _as_table(table.get(SECTION, {}), where, prefix + SECTION)


def _as_table(value: object, where: str, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"`{name}` in {where} is not a table", "see docs/policy.md for its keys")
    return value


def _read(path: Path) -> bytes:
    try:
        return read_file(path, MOST_BYTES)
    except OSError as error:
        hint = "write its content into a file and name that" if path.is_fifo() else "give a TOML file"
        raise UsageError(f"cannot read the policy `{path}`: {error.strerror}", hint) from error


def _parsed(data: bytes, where: str) -> dict[str, Any]:
    try:
        content = document.decode(data)
    except BAD_JSON as error:
        raise UsageError(f"{where} is not TOML: {error}", "see docs/policy.md for an example") from error
    return _as_table(content, where, "the content")
