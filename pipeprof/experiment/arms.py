"""The two arms of `pipeprof ab`: which command each runs, with which variables, in which revision of the code."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipeprof.collect.probe.redact import without_secrets
from pipeprof.errors import MeasureError, UsageError
from pipeprof.record.git import Repository, git_bytes, git_or_none, git_text
from pipeprof.record.plain_file import read_file
from pipeprof.record.text import printable_all
from pipeprof.verdict.gate.result import note
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeprof.verdict.gate.result import Note

Name = Literal["base", "new"]
NAMES: tuple[Name, Name] = ("base", "new")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ArmWish:
    """What the user said about one arm: a git revision, a command of its own, and `NAME=VALUE` variables."""

    ref: str | None = None
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arm:
    """One arm. `ref` None: the working tree as it is, whose content `tree` stands for.

    `revision` is the full hash that `ref` (or HEAD) stands for. Both are None outside git and before the first commit,
    and `tree` where there is a `ref`. `dirty`: the working tree differs.
    """

    name: Name
    command: tuple[str, ...]
    env: Mapping[str, str]
    ref: str | None = None
    revision: str | None = None
    tree: str | None = None
    dirty: bool = False

    @property
    def label(self) -> str:
        """Label for people, such as `base (v1.2, 3f2a91c)`."""
        at = self.revision[:10] if self.revision else ""
        parts = [self.ref or ("working tree" if at else ""), at + (" and changes" if self.dirty else "")]
        shown = ", ".join(dict.fromkeys(part for part in parts if part))
        return f"{self.name} ({shown})" if shown else self.name

    def facts(self) -> dict[str, object]:
        """What session.json says about it; secrets are left out."""
        return {
            "ref": self.ref,
            "revision": self.revision,
            "tree": self.tree,
            "dirty": self.dirty,
            "command": printable_all(without_secrets(self.command)),
            "env": printable_all(without_secrets([f"{name}={value}" for name, value in sorted(self.env.items())])),
        }


@dataclass(frozen=True)
class Workspace:
    """Where the user stands: the working directory, and the root of its git repository (None outside one)."""

    cwd: Path
    root: Path | None

    @classmethod
    def here(cls) -> Workspace:
        """The present working directory."""
        cwd = Path.cwd().resolve()
        repository = Repository.around(cwd)
        return cls(cwd, repository.root if repository else None)

    @property
    def inside(self) -> Path:
        """The working directory below the repository's root."""
        return self.cwd.relative_to(self.root) if self.root else Path()


def resolve_arms(
    workspace: Workspace, base: ArmWish, new: ArmWish, command: Sequence[str], *, planted: bool = False
) -> tuple[Arm, Arm]:
    """Both arms as they will be run.

    `planted`: the new one will be slowed down, and may be the same code. Raises UsageError when nothing tells them
    apart, a command is missing or given twice, a variable is no NAME=VALUE,
    or a revision is not known.
    """
    if base == new and not planted:
        raise UsageError(
            "both sides are the same code", "give --base-ref REV, --new CMD or --new-env NAME=VALUE; see also `qualify`"
        )
    if command and base.command and new.command:
        raise UsageError("--base and --new name a command each, and there is a third one after `--`", "leave one out")
    return _resolve("base", workspace, base, command), _resolve("new", workspace, new, command)


def revision_of(workspace: Workspace, ref: str) -> str:
    """The full hash of the commit that a name stands for.

    Raises UsageError outside a repository, for no commit, and for a name of several.
    """
    if workspace.root is None:
        raise UsageError(
            f"`{workspace.cwd}` is not in a git repository, so there is no revision `{ref}`",
            "go into the repository first",
        )
    revision = Repository(workspace.root).commit(ref)
    if revision is None:
        raise UsageError(
            f"git knows no revision `{ref}`", "fetch it first; on CI fetch more than one commit (fetch-depth: 0)"
        )
    return revision


def pair_hash(workspace: Workspace, arms: Sequence[Arm], policy_hash: str) -> str:
    """What makes two calls the same comparison: revisions, commands, variables, folder, policy, version of pipeprof."""
    said = [[arm.name, arm.revision, arm.tree, list(arm.command), sorted(arm.env.items())] for arm in arms]
    text = json.dumps([said, str(workspace.cwd), policy_hash, __version__])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def arm_notes(workspace: Workspace, arms: Sequence[Arm]) -> list[Note]:
    """What the reader should know about the arms, as codes."""
    notes = [note("uncommitted", arm=arm.name) for arm in arms if arm.dirty]
    if workspace.root is not None and any(arm.ref for arm in arms):
        for word in dict.fromkeys(word for arm in arms for word in arm.command):
            path = Path(word)
            if path.is_absolute() and path.suffix == ".py" and workspace.root in path.parents:
                notes.append(note("same_file", path=word))
    return notes


def check_unchanged(workspace: Workspace, arm: Arm) -> None:
    """Raises MeasureError when the working tree is not any more what the session started with."""
    if arm.tree is not None and workspace.root is not None and tree_state(workspace.root)[1] != arm.tree:
        raise MeasureError(
            f"the working tree was changed while `{arm.name}` was being measured",
            "undo the change to go on, or start again: the changed tree makes another comparison",
        )


@contextlib.contextmanager
def checked_out(workspace: Workspace, arms: Sequence[Arm], folder: Path) -> Iterator[dict[Name, Path]]:
    """The working directory of each arm; worktrees below `folder` live until the end.

    Raises UsageError when git refuses, or the revision has no such sub-folder.
    """
    trees = {arm.name: folder / f"tree-{arm.name}" for arm in arms if arm.ref is not None}
    try:
        places: dict[Name, Path] = {}
        for arm in arms:
            places[arm.name] = workspace.cwd
            if arm.name in trees and workspace.root is not None and arm.revision is not None:
                _remove_tree(workspace.root, trees[arm.name])  # of a session that was killed
                git_text(workspace.root, "worktree", "add", "--quiet", "--detach", str(trees[arm.name]), arm.revision)
                places[arm.name] = trees[arm.name] / workspace.inside
                if not places[arm.name].is_dir():
                    raise UsageError(f"`{workspace.inside}` does not exist in {arm.label}", "start in another folder")
        yield places
    finally:
        for tree in trees.values():
            if workspace.root is not None:
                _remove_tree(workspace.root, tree)


def variables(workspace: Workspace, arm: Arm, workdir: Path) -> dict[str, str]:
    """The variables that an arm runs with, beyond those of the caller.

    PYTHONHASHSEED is the same for both; entries of PYTHONPATH inside the repository are those of the arm's worktree.
    """
    env = {"PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
    if env["PYTHONHASHSEED"] == "random":
        env["PYTHONHASHSEED"] = "0"
    paths = os.environ.get("PYTHONPATH")
    if paths and arm.ref is not None and workspace.root is not None:
        tree = workdir.parents[len(workspace.inside.parts) - 1] if workspace.inside.parts else workdir
        moved = [_moved(Path(part), workspace.root, tree) if part else part for part in paths.split(os.pathsep)]
        env["PYTHONPATH"] = os.pathsep.join(moved)
    return env | dict(arm.env)


def tree_state(root: Path) -> tuple[bool, str]:
    """Whether a working tree differs from its commit, and a hash of how: changes, and Python files not known to git."""
    changes = git_bytes(root, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv")
    digest = hashlib.sha256(changes)
    listed = git_bytes(root, "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py")
    names = sorted(name for name in listed.split(b"\0") if name)
    for name in names:
        with contextlib.suppress(OSError):
            digest.update(name + b"\0" + read_file(root / os.fsdecode(name), 1 << 30))
    return bool(changes or names), digest.hexdigest()[:16]


def _resolve(name: Name, workspace: Workspace, wish: ArmWish, command: Sequence[str]) -> Arm:
    words = wish.command or tuple(command)
    if not words:
        raise UsageError(f"no command to run for `{name}`", "pipeprof ab --base-ref main -- python train.py")
    env = dict(_variable(text) for text in wish.env)
    if wish.ref is None:
        if workspace.root is None or (head := git_or_none(workspace.root, "rev-parse", "HEAD")) is None:
            return Arm(name, words, env)
        dirty, tree = tree_state(workspace.root)
        return Arm(name, words, env, None, head, tree, dirty)
    return Arm(name, words, env, wish.ref, revision_of(workspace, wish.ref))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not _VARIABLE.fullmatch(name):
        raise UsageError(f"cannot read the variable `{text}`, expected NAME=VALUE", "for example OMP_NUM_THREADS=2")
    return name, value


def _moved(path: Path, root: Path, tree: Path) -> str:
    resolved = path.resolve() if path.is_absolute() else path
    return str(tree / resolved.relative_to(root)) if path.is_absolute() and resolved.is_relative_to(root) else str(path)


def _remove_tree(root: Path, tree: Path) -> None:
    if tree.exists():
        with contextlib.suppress(UsageError):
            git_text(root, "worktree", "remove", "--force", "--force", str(tree))
        shutil.rmtree(tree, ignore_errors=True)
    with contextlib.suppress(UsageError):
        git_text(root, "worktree", "prune")
