"""Git, asked without hooks, filters, drivers or replacements: what a revision holds, byte for byte."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pipeprof.errors import UsageError

_OWN = (
    "--no-replace-objects", "--no-optional-locks", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
)  # fmt: skip
# Variables that would lead git to another repository, other objects, or another program, than the folder has.
_ELSEWHERE = frozenset([
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_REPLACE_REF_BASE", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_ATTR_SOURCE",
    "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_ICASE_PATHSPECS",
])  # fmt: skip
_MOST_BYTES = 1 << 26
_SUBMODULES = "--ignore-submodules=dirty"  # says where one was moved, whatever the change's .gitmodules asks for
_LINK = b"120000 "
_FILES = ("100644", "100755")  # modes of plain files: a link in a tree is not followed
_HASH = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_SHORT_HASH = re.compile(r"(?:.*-g)?([0-9a-fA-F]{4,64})")  # alone, or behind what `git describe` says
_PLACES = ("refs/", "refs/tags/", "refs/heads/", "refs/remotes/")  # where git looks for a name, in this order
_STEPS = re.compile(r"[~^]|@\{")  # what leads from a name to another commit
_HERE = ("HEAD", "@", "")


@dataclass(frozen=True)
class Repository:
    """A git repository with a working tree at `root`, an absolute path."""

    root: Path

    @classmethod
    def around(cls, folder: Path) -> Repository | None:
        """The repository that a folder lies in; None outside one, and without git."""
        root = git_or_none(folder, "rev-parse", "--show-toplevel")
        return cls(Path(root).resolve()) if root else None

    def commit(self, ref: str) -> str | None:
        """The full hash of the commit that a name stands for; None when git knows none.

        Raises UsageError for a name of several commits: git would take a tag before a branch, and a branch before a
        short hash, so that whoever may push a tag would choose the commit.
        """
        name = _STEPS.split(ref, maxsplit=1)[0]
        if ref.startswith(("-", ":")) or (name.startswith("refs/") and name not in self._refs([name])):
            return None
        if name not in _HERE and not _HASH.fullmatch(name) and not name.startswith("refs/"):
            self._check_single(name)
        return self._parsed(ref)

    def _check_single(self, name: str) -> None:
        """Raises UsageError when a name stands for more than one commit."""
        places = [*(place + name for place in _PLACES), f"refs/remotes/{name}/HEAD"]
        meanings = {place: self._parsed(place) for place in self._refs(places)}
        if f"refs/tags/{name}" in meanings:  # a clone of CI may have the branch as a remote one only
            meanings |= {place: self._parsed(place) for place in self._matching(f"refs/remotes/*/{name}")}
        short = _SHORT_HASH.fullmatch(name)
        if short:
            listed = git_or_none(self.root, "rev-parse", f"--disambiguate={short[1]}") or ""
            meanings |= {f"commit {one[:10]}": self._parsed(one) for one in listed.split()}
        commits = {commit for commit in (*meanings.values(), self._parsed(name)) if commit}
        if len(commits) > 1:
            known = [f"{place} ({commit[:10]})" for place, commit in meanings.items() if commit]
            remote = [one for one in meanings if one.startswith("refs/remotes/")]
            likely = (f"refs/remotes/{name}", f"refs/heads/{name}", f"refs/{name}", *remote)
            full = next((one for one in likely if one in meanings), None)
            raise UsageError(
                f"`{name}` is ambiguous: it is {' and '.join(known)}",
                "give all digits of the commit that you mean"
                + (f", or its full name, as `{full}`" if full and not short else ""),
            )

    def _refs(self, names: list[str]) -> list[str]:
        """Those of the full names that are there, in the same order."""
        listed = self._matching(*names)
        return [name for name in names if name in listed]

    def _matching(self, *patterns: str) -> list[str]:
        return git_text(self.root, "for-each-ref", "--format=%(refname)", *patterns).splitlines()

    def _parsed(self, ref: str) -> str | None:
        return git_or_none(self.root, "rev-parse", "--verify", "--quiet", ref + "^{commit}")

    def inside(self, path: Path) -> PurePosixPath | None:
        """Where a path lies below the root; None when it lies elsewhere.

        Links within the working tree are not followed: they are part of what is checked out.
        """
        absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
        for parent in (absolute, *absolute.parents):
            if _real(parent) == self.root:
                return PurePosixPath(absolute.relative_to(parent).as_posix())
        resolved = _real(absolute)
        return PurePosixPath(resolved.relative_to(self.root).as_posix()) if self.root in resolved.parents else None

    def read(self, revision: str, path: PurePosixPath) -> bytes | None:
        """The content of a file at a revision; None when there is no plain file of that name.

        Raises UsageError for one of more than 64 MiB.
        """
        words = ("ls-tree", "-z", "-l", "--full-tree", revision, "--", str(path))
        listed = git_bytes(self.root, "--literal-pathspecs", *words)
        for entry in filter(None, listed.split(b"\0")):
            about, _, name = entry.partition(b"\t")
            mode, _, hashed, size = about.decode().split()
            if os.fsdecode(name) == str(path) and mode in _FILES:
                if int(size) > _MOST_BYTES:
                    raise UsageError(
                        f"`{path}` of `{revision}` has {int(size):,} bytes, at most {_MOST_BYTES:,} are read"
                    )
                return git_bytes(self.root, "cat-file", "blob", hashed)
        return None

    def is_link(self, revision: str, path: PurePosixPath) -> bool:
        """Whether a symbolic link has that name at a revision."""
        words = ("ls-tree", "--full-tree", revision, "--", str(path))
        return git_bytes(self.root, "--literal-pathspecs", *words).startswith(_LINK)

    def files(self, revision: str, folder: PurePosixPath) -> list[PurePosixPath]:
        """Every file below a folder at a revision, named from the root, sorted."""
        words = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", revision)
        within = () if folder == PurePosixPath() else ("--", str(folder))
        listed = git_bytes(self.root, "--literal-pathspecs", *words, *within)
        return sorted(PurePosixPath(os.fsdecode(name)) for name in filter(None, listed.split(b"\0")))

    def changed(self, base: str, new: str | None) -> dict[PurePosixPath, str]:
        """Files that differ between a revision and another (None: the working tree), as A(dded), M(odified), D(eleted).

        Counted from where `new` left the history of `base`, so that what others changed on `base` since is left out.
        Untracked files of the working tree are not seen.
        """
        start = git_or_none(self.root, "merge-base", base, new or "HEAD") or base
        words = ("diff", "--name-status", "--no-renames", "--no-ext-diff", "--no-textconv", "-z", _SUBMODULES, start)
        parts = git_bytes(self.root, *words, *([new] if new else []), "--").split(b"\0")
        pairs = zip(parts[::2], parts[1::2], strict=False)
        return {PurePosixPath(os.fsdecode(name)): status.decode()[:1] for status, name in pairs}


def _real(path: Path) -> Path:
    """As `resolve`, which raises RuntimeError for a link to itself."""
    return Path(os.path.realpath(path))


def git_text(folder: Path, *words: str) -> str:
    """What git says. Raises UsageError with its last words."""
    return git_bytes(folder, *words).decode(errors="replace").strip()


def git_or_none(folder: Path, *words: str, most_s: float | None = None) -> str | None:
    """What git says; None when it refuses, or takes longer than `most_s` seconds."""
    try:
        return git_bytes(folder, *words, most_s=most_s).decode(errors="replace").strip()
    except (UsageError, subprocess.TimeoutExpired):
        return None


def git_bytes(folder: Path, *words: str, most_s: float | None = None) -> bytes:
    """What git writes. Raises UsageError with its last words when it refuses or cannot be run, and TimeoutExpired."""
    command = ["git", "-C", str(folder), *_OWN, *words]
    try:
        env = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
        done = subprocess.run(command, capture_output=True, check=False, timeout=most_s, env=env)
    except OSError as error:
        raise UsageError(f"cannot run git: {error.strerror}", "install git") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        verb = next(word for word in words if not word.startswith("-"))
        hint = "see what `git worktree list` says" if verb == "worktree" else f"try `git {verb}` in `{folder}`"
        raise UsageError(f"git {verb} failed: {lines[-1]}", hint)
    return done.stdout
