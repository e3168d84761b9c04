"""By what a change is judged: the settings, the baseline, and what to say of both.

With a base revision they are that revision's, read from git: what the judged change brings is told and counts for
nothing. Without one, as at a desk, they are those of the working tree.

Whether a command is one of those that the settings of the base revision name: an easier one would pass as faster.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.experiment.arms import Workspace, revision_of
from pipeprof.experiment.policy_file import find_policy
from pipeprof.experiment.trust import Change, trust_of
from pipeprof.record.place import address
from pipeprof.record.run import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.experiment.ab import AbWish
    from pipeprof.verdict.gate.policy import Policy


@dataclass(frozen=True)
class Judged:
    """`trust` is the result's member of that name; `base` is what to open as the base side, empty for `ab`."""

    policy: Policy
    trust: dict[str, Any]
    base: str = ""


def judged_sides(base: str, base_ref: str | None, policy_file: Path | None, command: Sequence[str]) -> Judged:
    """For `pipeprof compare`: a `base` inside the repository is read as `base_ref` has it.

    `command` is that of the new run. Raises UsageError for settings that cannot be, a revision that is not known, a
    command that the settings do not allow, and a run where a baseline of the revision is needed.
    """
    if base_ref is None:
        settings = find_policy(policy_file)
        return Judged(settings.policy, trust_of(settings), base)
    revision = revision_of(Workspace.here(), base_ref)
    settings = find_policy(policy_file, revision)
    check_command(settings.policy, command)
    change = Change.here(revision, None, command, policy_file, base)
    if change.baseline_path is None:
        return Judged(settings.policy, trust_of(settings, change), base)
    if Path(base, MANIFEST).is_file():
        raise UsageError(
            f"`{base}` is a run of the working tree: with --base-ref the base is a baseline of that revision",
            "commit a baseline of it, or leave --base-ref out",
        )
    return Judged(settings.policy, trust_of(settings, change), address(revision, change.baseline_path))


def judged_arms(wish: AbWish, policy_file: Path | None) -> Judged:
    """For `pipeprof ab`: the settings of the base arm's revision, where it has one.

    Raises UsageError for settings that cannot be, a revision that is not known, and a command that they do not allow.
    """
    workspace = Workspace.here()
    base, new = (revision_of(workspace, arm.ref) if arm.ref is not None else None for arm in (wish.base, wish.new))
    settings = find_policy(policy_file, base)
    if base is None:
        return Judged(settings.policy, trust_of(settings))
    for arm in (wish.base, wish.new):
        check_command(settings.policy, arm.command or wish.command, arm.env)
    change = Change.here(base, new, wish.new.command or wish.command, policy_file)
    return Judged(settings.policy, trust_of(settings, change))


def started(command: Sequence[str]) -> str:
    """A command as a shell would take it; of the program that it starts only the name (`/venv/bin/python`: python)."""
    return shlex.join([*(PurePath(word).name for word in command[:1]), *command[1:]])


_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin")


def check_command(policy: Policy, command: Sequence[str], env: Sequence[str] = ()) -> None:
    """Raises UsageError for a command that is not among the settings' `commands`, where they name any.

    All words have to be the same, with the variables of its side (`env`, `NAME=VALUE`) in front of it. A program that
    they name without a folder may be given with one, that of pipeprof's environment or of the system: wherever else
    PATH finds it, it may be another program.
    """
    listed = [shlex.split(text) for text in policy.commands]
    allowed = [words[len(env) :] for words in listed if words[: len(env)] == list(env)]
    same = [words for words in allowed if words and _same_words(words, command)]
    if any("/" in words[0] or _is_known(command[0]) for words in same) or not listed:
        return
    if same:
        raise UsageError(
            f"`{command[0]}` of the command is `{shutil.which(command[0])}`, which is neither of pipeprof's "
            "environment nor of the system, or is looked for in a relative folder",
            f"measure `{shlex.join(same[0])}` with the one there, or name its path in `commands` of the base revision",
        )
    raise UsageError(
        f"the command `{shlex.join([*env, *command])}` is not among the `commands` of the base revision",
        f"measure {' or '.join(f'`{text}`' for text in policy.commands)}, or add it to the policy there",
    )


def _same_words(allowed: Sequence[str], given: Sequence[str]) -> bool:
    programs = given[:1] if "/" in allowed[0] else [Path(word).name for word in given[:1]]
    return [*programs, *given[1:]] == list(allowed)


def _is_known(program: str) -> bool:
    """Whether a program is of pipeprof's environment or of the system; also one that is nowhere, and cannot start.

    By a relative path none is: the command starts in another folder than this one.
    """
    found = shutil.which(program)
    last = Path(found).parent if found else None
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    searched = [Path(program).parent] if "/" in program else takewhile(lambda folder: folder != last, map(Path, path))
    if not all(folder.is_absolute() for folder in searched):
        return False
    folders = [Path(sys.executable).parent, Path(sys.prefix, "bin"), Path(sys.base_prefix, "bin"), *map(Path, _SYSTEM)]
    return last is None or os.path.realpath(last) in {os.path.realpath(folder) for folder in folders}
