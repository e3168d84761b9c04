"""The argument COMMAND of verbs that run the user's command, behind `--`; the shell completes it with files."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def complete_files(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell's own files."""
    return [CompletionItem(incomplete, type="file")]


COMMAND = click.argument("command", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_files)
