"""Whether a command is one of those that the settings of the base revision name: an easier one would pass as faster."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.verdict.gate.policy import Policy

_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin")


def check_command(policy: Policy, command: Sequence[str]) -> None:
    """Raises UsageError for a command that is not among the settings' `commands`, where they name any.

    All words have to be the same. A program that they name without a folder may be given with one, that of pipeprof's
    environment or of the system: wherever else PATH finds it, it may be another program.
    """
    allowed = [shlex.split(text) for text in policy.commands]
    same = [words for words in allowed if _same_words(words, command)]
    if any("/" in words[0] or _is_known(command[0]) for words in same) or not allowed:
        return
    if same:
        raise UsageError(
            f"`{command[0]}` of the command is `{shutil.which(command[0])}`, which is neither of pipeprof's "
            "environment nor of the system",
            f"measure `{shlex.join(same[0])}` with the one there, or name its path in `commands` of the base revision",
        )
    raise UsageError(
        f"the command `{shlex.join(command)}` is not among the `commands` of the base revision",
        f"measure {' or '.join(f'`{text}`' for text in policy.commands)}, or add it to the policy there",
    )


def _same_words(allowed: Sequence[str], given: Sequence[str]) -> bool:
    programs = given[:1] if "/" in allowed[0] else [Path(word).name for word in given[:1]]
    return [*programs, *given[1:]] == list(allowed)


def _is_known(program: str) -> bool:
    """Whether a program is of pipeprof's environment or of the system; also one that is nowhere, and cannot start."""
    found = shutil.which(program)
    folders = [Path(sys.executable).parent, Path(sys.prefix, "bin"), Path(sys.base_prefix, "bin"), *map(Path, _SYSTEM)]
    return found is None or os.path.realpath(Path(found).parent) in {os.path.realpath(folder) for folder in folders}
