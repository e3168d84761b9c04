"""Whether a command is one of those that the settings of the base revision name: an easier one would pass as faster."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.verdict.gate.policy import Policy

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
