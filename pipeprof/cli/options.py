"""Options and arguments that several verbs have."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from pipeprof.cli.messages import progress_line, say_named
from pipeprof.errors import BAD_PATTERN, PipeprofError, UsageError
from pipeprof.escape import as_argument, shell_word
from pipeprof.units import seconds_from_text


class FiniteRange(click.FloatRange):
    """A range of finite numbers."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Raises BadParameter."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a valid float", param, ctx)
        return number


engine_option = click.option(
    "--engine", metavar="URL", help="Work on this Dask cluster, such as tcp://HOST:8786.  [default: this machine]"
)


def complete_files(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell's own files."""
    return [CompletionItem(incomplete, type="file")]


COMMAND = click.argument("command", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_files)


def refuse_empty(path: object) -> None:
    """Raises UsageError for a path without a letter, which would be the current folder."""
    if path == "":
        raise UsageError("a path is empty", "is a variable of the shell not set? `.` is the current folder")


class LocalPath(click.Path):
    """A path that is no URL: one taken for the name of a folder would lose its second slash, and the run in it.

    With `urls` a URL is taken too, and stays text.
    """

    def __init__(self, *, urls: bool = False) -> None:
        super().__init__(path_type=Path)
        self.urls = urls

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises UsageError for a URL, and for an empty path."""
        refuse_empty(value)
        if isinstance(value, str) and "://" in value:
            if self.urls:
                return value
            from pipeprof.record.objects import without_secrets

            raise UsageError(
                f"`{without_secrets(value)}` is a URL: expected a path on this machine",
                "verbs that take RUN read URLs; `pipeprof push RUN URL` and `pipeprof collect -o URL` upload a run",
            )
        return super().convert(value, param, ctx)


def folder_option(
    name: str, help_text: str, default: Path | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:  # fmt: skip
    """`-o FOLDER`, the folder that a verb writes into, passed as `name`."""
    return click.option(
        "-o", "--output", name, metavar="FOLDER", type=LocalPath(), default=default, show_default=default is not None,
        help=help_text,
    )  # fmt: skip


def budget_option(limits: str, without: str = "no limit") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--budget TIME`, passed as seconds: what it limits, and what holds without it: words, or a time."""
    is_time = without[:1].isdigit()
    end = "" if is_time else f"  [default: {without}]"
    return click.option(
        "--budget", metavar="TIME", callback=budget_seconds, default=without if is_time else None, show_default=is_time,
        help=f"{limits}: in seconds, or with a unit, such as 10m or 1h30m.{end}",
    )  # fmt: skip


def budget_seconds(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    """Seconds, above 0, from `90`, `90s`, `10m`, `1h30m`; None for none. Raises BadParameter."""
    if text is None:
        return None
    total = seconds_from_text(text)
    if total is None:
        raise click.BadParameter(f"`{text}` is not a time: expected seconds, or for example 10m or 1h30m")
    return total


TERMINAL, TABLE = "terminal", "table"
POLICY = click.option(
    "--policy",
    "policy_file",
    metavar="FILE",
    type=LocalPath(),
    help="Settings of the gate.  [default: pipeprof.toml or pyproject.toml here or above]",
)
ROOT = click.option(
    "--root", metavar="FOLDER|URL", default="baselines", show_default=True, envvar="PIPEPROF_BASELINES",
    show_envvar=True, help="Where baselines are kept: a folder, or s3://, gs://, az:// or file:// URL.",
)  # fmt: skip
TARGET = click.option(  # of `collect` and `import`
    "-o", "--output", "target", metavar="FOLDER|URL", type=LocalPath(urls=True),
    help="Folder of the run, or a URL to upload it to when it is done.  [default: pipeprof-run-TIME]",
)  # fmt: skip

FORMS = ("html", "markdown", "json")  # that every report has beside it


class Form(click.Choice[str]):
    """One of the formats of a verb."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The format, `terminal` for its other name. Raises BadParameter."""
        return super().convert(TERMINAL if value == TABLE else value, param, ctx)


def format_option(*others: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--format`, passed as `form`: `terminal`, which is the default, or one of the others."""
    return click.option(
        "--format", "form", type=Form((TERMINAL, *others)), default=TERMINAL, show_default=True,
        help="Format of the output.",
    )  # fmt: skip


def _add_redactions(ctx: click.Context, _param: click.Parameter, patterns: tuple[str, ...]) -> None:
    """Put the patterns into the environment, where every process of the job finds them. Raises BadParameter."""
    from pipeprof.collect.probe.redact import VARIABLE

    for pattern in patterns:
        if "\n" in pattern:
            shown = pattern.replace("\n", "\\n")
            raise click.BadParameter(f"`{shown}` has several lines: give a --redact for each pattern")
        try:
            empty = re.compile(pattern).match("") is not None
        except BAD_PATTERN as error:
            raise click.BadParameter(f"`{pattern}` is not a regular expression: {error}") from error
        if empty:
            raise click.BadParameter(
                f"`{pattern}` matches the empty text: expected a pattern of at least one character"
            )
    if patterns and not ctx.resilient_parsing:
        os.environ[VARIABLE] = "\n".join(filter(None, [os.environ.get(VARIABLE), *patterns]))


redact_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--redact",
    metavar="PATTERN",
    multiple=True,
    callback=_add_redactions,
    expose_value=False,
    help="Also mask what this regular expression matches (as ***); may be repeated (or variable PIPEPROF_REDACT).",
)


STDOUT = Path("-")


def keeps_files(*options: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Refuse, before any work, to replace the files that these parameters of a verb name; adds `--force`."""

    def around(verb: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(verb)
        def checked(*, force: bool, **given: Any) -> None:
            from pipeprof.report.output import check_free

            for option in options:
                if given[option] is not None:
                    check_free(given[option], force=force)
            verb(**given)

        return click.option("--force", is_flag=True, help="Replace the output file if it exists.")(checked)

    return around


def report_file(*others: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`-o FILE`, passed as `output`, None for stdout, with `--force` for it and for the files of the `others`."""
    option = click.option(
        "-o", "--output", metavar="FILE", type=LocalPath(), callback=none_for_stdout,
        help="Write to this file; - is standard output.",
    )  # fmt: skip
    return lambda verb: option(keeps_files("output", *others)(verb))


def none_for_stdout(_context: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """`-` is standard output, which is no file."""
    return None if path == STDOUT else path


def newest_here() -> Path:
    """The newest run of the current folder, which is said on stderr. Raises UsageError when there is none.

    A damaged manifest does not say when its run began: such runs are left out, and that is said, too.
    """
    from pipeprof.record.listing import folders_of_runs, runs_in

    listed = runs_in(Path())
    usable = [one.path for one in listed if one.run is not None]
    if not usable:
        inside = folders_of_runs(Path())
        record = "record one with `pipeprof collect -- python train.py`"
        hint = f"pipeprof runs {shell_word(as_argument(str(inside[0])))}" if inside else record
        raise UsageError("no RUN was given, and the current folder holds none", hint)
    damaged = len(listed) - len(usable)
    left_out = f" ({damaged} damaged left out)" if damaged else ""
    say_named(f"using the newest run, `{usable[0]}`{left_out}")
    return usable[0]


def complete_runs(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Runs of the current folder that begin with what was typed; without any, the shell's own files."""
    from pipeprof.record.listing import runs_in

    try:
        names = [str(one.path) for one in runs_in(Path()) if str(one.path).startswith(incomplete)]
    except PipeprofError:
        names = []
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


class RunPath(click.Path):
    """The path of a run, or its URL as text. A verb that changes a run takes no URL."""

    def __init__(self, *, changed: bool = False) -> None:
        super().__init__(path_type=Path)
        self._changed = changed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises UsageError for a URL that is not taken, and for an empty path."""
        refuse_empty(value)
        if not isinstance(value, str) or "://" not in value:
            return super().convert(value, param, ctx)
        if self._changed:
            from pipeprof.record.objects import without_secrets

            raise UsageError(
                f"`{without_secrets(value)}` is a URL, and runs in object storage are not changed",
                "give a run on this machine; `pipeprof push RUN URL` uploads it",
            )
        return value


def run_place(run: str | Path) -> Path:
    """The folder of a run; of one in object storage, its copy in the cache.

    Raises RunError when none is there, UsageError for an empty path.
    """
    refuse_empty(run)
    if isinstance(run, Path) or "://" not in run:
        return Path(run)
    from pipeprof.record.run_objects import fetch

    with progress_line("pipeprof: reading from object storage", quiet=False) as progress:
        return fetch(run, progress)


def run_argument(metavar: str = "RUN", *, changed: bool = False) -> Callable[[Any], Any]:
    """The argument `run` of a verb: always the path of a folder or file. `changed`: the verb writes into the run."""
    argument = click.argument(
        "run", metavar=f"[{metavar}]", required=False, type=RunPath(changed=changed), callback=_given_or_newest,
        shell_complete=complete_runs,
    )  # fmt: skip

    def added(verb: Callable[..., Any]) -> Any:
        @functools.wraps(verb)
        def asked(*args: Any, run: str | Path, **given: Any) -> Any:
            return verb(*args, run=run_place(run), **given)  # all that was typed has been understood by now

        return argument(asked)

    return added


def _given_or_newest(context: click.Context, _param: click.Parameter, path: Path | str | None) -> Path | str | None:
    return newest_here() if path is None and not context.resilient_parsing else path


RUN = run_argument()
