"""What several verbs have in common: opening a run, and what is said on stderr.

What click refuses, in our words: one line that says what is wrong, and near names or the help as the hint.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from pipeprof import escape
from pipeprof.errors import RunError, did_you_mean, near_names
from pipeprof.record.text import printable, shortened
from pipeprof.report.output import has_colours

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.record.run import Run


def opened(path: Path) -> Run:
    """The run in a folder, recovered first when its recording was cut off.

    Raises RunError; of a folder with another profiler's files the hint is the import.
    """
    from pipeprof.record.checksums import refuse_changed
    from pipeprof.record.run import load

    try:
        run = load(path)
        if run.is_settled():
            refuse_changed(run)
            return run  # nothing to recover; what could recover it is slow to import
        from pipeprof.read.spool.finish import open_run

        with progress_line("pipeprof: recovering the run", quiet=False) as progress:
            return open_run(path, progress=progress)
    except RunError as error:
        from pipeprof.read.foreign import import_hint

        raise import_hint(error, path) from error


def progress_line(title: str, *, quiet: bool) -> Any:
    """A status line on stderr while something takes long; as a context it gives the callable that updates it."""
    from pipeprof.report.output import status_line

    return status_line(title, quiet=quiet)


def sum_up(run: Run, *, quiet: bool) -> None:
    """Write what the report of a new run asks, and its rollup, into it; tell three lines about it.

    `pipeprof runs` and `fleet` will know it without asking its tables.
    """
    from pipeprof.report.build import keep_answers
    from pipeprof.report.overview import overview
    from pipeprof.report.rollup import keep
    from pipeprof.report.summary import three_lines

    for line in () if quiet else three_lines(run):
        say(line)
    keep_answers(run)
    if not keep(run) and not quiet:
        overview(run)


def say(line: str) -> None:
    """A line on stderr."""
    click.echo(escape.line(line), err=True)


def tell_error(message: str, hint: str) -> None:
    """`error:` and `hint:` on stderr."""
    styled = click.style("error:", fg="red", bold=True) if sys.stderr.isatty() and has_colours() else "error:"
    click.echo(f"{styled} {escape.terminal(message)}", err=True)
    if hint:
        click.echo(f"hint: {escape.terminal(hint)}", err=True)


def say_named(line: str) -> None:
    """A line on stderr, with our name in front: the command's own output is around it."""
    say(f"pipeprof: {line}")


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
