"""What click refuses, in our words: one line that says what is wrong, and near names or the help as the hint."""

from __future__ import annotations

import errno
import os
import re

import click

from pipeprof.errors import did_you_mean, near_names
from pipeprof.record.text import printable, shortened

_PLAIN = (
    (r" is not in the range x>=(\S+)$", r", expected \1 or more"),
    (r" is not in the range x>(\S+)$", r", expected more than \1"),
    (r" is not in the range (\S+?)<=x<=(\S+)$", r", expected \1 to \2"),
    (r" is not in the range (\S+?)<x<=(\S+)$", r", expected more than \1, up to \2"),
    (r" is not a valid integer(?: range)?$", " is not a whole number"),
    (r" is not a valid float(?: range)?$", " is not a number"),
)  # what click says, and what we say


def words_of(error: click.ClickException) -> tuple[str, str]:
    """Message and hint of a command line that click refuses."""
    context = getattr(error, "ctx", None)
    help_text = f"see `{context.command_path} --help`" if context else ""
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        hint = did_you_mean(error.option_name, _options(context), help_text)
        return f"no such option: `{error.option_name}`", hint
    wrong = _unknown_command(message)
    if wrong and context is not None and isinstance(context.command, click.Group):
        verbs = context.command.list_commands(context)
        return f"no such command: `{context.command_path} {wrong}`", did_you_mean(wrong, verbs, help_text)
    plain = _plain(message[:1].lower() + message[1:])
    chosen = re.search(r": `(.*)` is not one of ", plain)
    choices = getattr(getattr(getattr(error, "param", None), "type", None), "choices", ())
    hint = did_you_mean(chosen[1], near_names(chosen[1], choices), help_text) if chosen else help_text
    return plain, hint


def words_of_name(error: Exception) -> tuple[str, str] | None:
    """Message and hint when a name that was given cannot be used, or is no text where only text will do; else None."""
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"a name is too long: `{shortened(str(error.filename))}`", "give a shorter one"
    if isinstance(error, PermissionError) and isinstance(error.filename, (str, bytes)):
        name = shortened(printable(os.fsdecode(error.filename)))
        return f"no permission for `{name}`", "give a path that you may use, or have its permissions changed"
    if isinstance(error, FileNotFoundError) and error.filename is None and not _is_somewhere():
        return "the working directory is gone", "change to a folder that is there"
    if isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason:
        return f"a name is not UTF-8: `{shortened(printable(error.object))}`", "rename it, or give another one"
    return None


def _is_somewhere() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - nothing is made of it
    except OSError:
        return False
    return True


def _plain(message: str) -> str:
    """A range or a kind of number as one says it, not as a program writes it, and names in our quotes."""
    for pattern, words in _PLAIN:
        message = re.sub(pattern, words, message)
    return re.sub(r"'([^']+)'", r"`\1`", message)


def _options(context: click.Context | None) -> list[str]:
    """The options of a verb that begin with two dashes."""
    if context is None:
        return []
    names = (name for param in context.command.get_params(context) for name in (*param.opts, *param.secondary_opts))
    return [name for name in names if name.startswith("--")]


def _unknown_command(message: str) -> str:
    """The word that is no command; "" when the message is about something else."""
    _, begin, rest = message.partition("No such command '")
    return rest.partition("'")[0] if begin else ""
