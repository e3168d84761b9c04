"""Who owns a file: by the rules of CODEOWNERS, else who wrote the line."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pipeprof.record.git import git_or_none

if TYPE_CHECKING:
    from pipeprof.record.git import Repository

FILES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")  # the first that is there counts
OWNER = re.compile(r"@[A-Za-z0-9][A-Za-z0-9-]*(/[A-Za-z0-9._-]+)?|[^\s@]+@[^\s@]+")
_PARTS = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def owners_of(repository: Repository, revision: str, path: PurePosixPath) -> list[str]:
    """The owners that CODEOWNERS of a revision names for a file: those of the last rule that fits; empty for none."""
    texts = (repository.read(revision, PurePosixPath(name)) for name in FILES)
    text = next((text for text in texts if text is not None), b"")
    owners: list[str] = []
    for line in text.decode(errors="replace").splitlines():
        words = line.partition("#")[0].split()
        if words and fits(words[0], str(path)):
            owners = [word for word in words[1:] if OWNER.fullmatch(word)]
    return owners


def fits(pattern: str, path: str) -> bool:
    """Whether a rule is of a file. One with a slash before its end begins at the root; a folder's is of all below."""
    anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/")
    regex = "".join(_MEANING.get(part) or re.escape(part) for part in _PARTS.findall(body))
    start = "" if anchored else "(?:.*/)?"
    end = "/.*" if pattern.endswith("/") else "" if body.endswith("/*") else "(?:/.*)?"
    return re.fullmatch(start + regex + end, path) is not None


def writer_of(repository: Repository, revision: str, path: PurePosixPath, line: int) -> str | None:
    """Who wrote a line of a file as a revision has it; None where git does not know."""
    if not re.fullmatch("[0-9a-f]+", revision):  # `blame` has no --end-of-options
        return None
    words = ("blame", "--porcelain", "-L", f"{line},{line}", revision, "--", str(path))
    text = git_or_none(repository.root, *words) or ""
    names = [one.removeprefix("author ") for one in text.splitlines() if one.startswith("author ")]
    return names[0] if names else None


def author_of(repository: Repository, revision: str) -> str | None:
    """Who wrote a commit; None where git does not know it."""
    return git_or_none(repository.root, "log", "-1", "--format=%an", "--end-of-options", revision) or None


def files_of(repository: Repository, revision: str) -> list[str]:
    """The files that a commit changed; none of a merge."""
    words = ("diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "-z", "--end-of-options", revision)
    return sorted(filter(None, (git_or_none(repository.root, *words) or "").split("\0")))
