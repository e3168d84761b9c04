"""The argument RUN: a run, or the newest one of the current folder when none is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from pipeprof.cli.told import say_named
from pipeprof.errors import PipeprofError, UsageError

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
        hint = f"pipeprof runs {inside[0]}" if inside else "record one with `pipeprof collect -- python train.py`"
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


def run_argument(metavar: str = "RUN") -> Callable[[Any], Any]:
    """The argument `run` of a verb: always a path."""
    return click.argument(
        "run", metavar=f"[{metavar}]", required=False, type=click.Path(path_type=Path), callback=_given_or_newest,
        shell_complete=complete_runs,
    )  # fmt: skip


def _given_or_newest(context: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    return newest_here() if path is None and not context.resilient_parsing else path


RUN = run_argument()
