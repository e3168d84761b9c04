"""The argument RUN: a run, also one in object storage, or the newest one of the current folder when none is named."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from pipeprof.cli.messages import progress_line, say_named
from pipeprof.cli.options import refuse_empty
from pipeprof.errors import PipeprofError, UsageError
from pipeprof.escape import as_argument, shell_word

if TYPE_CHECKING:
    from collections.abc import Callable


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
