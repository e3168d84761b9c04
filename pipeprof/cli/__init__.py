"""The command line. Verbs parse words, call a room, and set the exit code; errors are caught here, once."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

import click

from pipeprof import escape
from pipeprof.cli.messages import tell_error, words_of, words_of_name
from pipeprof.cli.streams import StdoutClosed, StdoutError, guard_streams
from pipeprof.cli.verbs import Verbs
from pipeprof.errors import PipeprofError, is_interruption
from pipeprof.report.output import choose_colours
from pipeprof.version import __version__


class _NoPandas:
    """A finder of modules that says of pandas that it is not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def leave_pandas_out() -> None:
    """For the rest of this process: `import pandas` takes longer than most of what a verb does.

    `importlib.util.find_spec("pandas")` raises then, where it would give None of what is not installed.
    """
    sys.meta_path.insert(0, _NoPandas)


DEFECT = 70  # exit code of what should never happen, as in sysexits.h


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`pipeprof COMMAND --help` shows examples and options.",
)
@click.version_option(__version__, prog_name="pipeprof")
@click.option("--no-color", is_flag=True, help="No colours (as with the variable NO_COLOR).")
def cli(*, no_color: bool) -> None:
    """Why is my MindSpore training slow, and did this change make it slower?

    \b
      pipeprof demo                                 # see it on a small training
      pipeprof collect -o slow -- python train.py   # profile your own
      pipeprof report slow                          # read what limits it
      pipeprof compare slow fixed                   # check that a change helped
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    choose_colours(wanted=not no_color)


def start() -> NoReturn:
    """Entry point of the process: `main`, and then an end that leaves C++ destructors of libraries out.

    Arrow's, while its threads still run, abort the process now and then (2.5 % of ends on a busy machine): exit code
    134 for a verdict that was right. Python's own handlers run, and everything is written.
    """
    leave_pandas_out()
    try:
        main()
    except SystemExit as end:
        code = end.code
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no other way to run them before the end
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else code is not None)


def main() -> NoReturn:
    """Run a verb; every expected error ends as `error:` and `hint:` on stderr and an exit code."""
    guard_streams()
    code = _exit_code_of(_run)
    sys.exit(_exit_code_of(sys.stdout.flush) or code)


def _exit_code_of(work: Callable[[], object]) -> str | int | None:
    try:
        work()
    except SystemExit as end:
        return end.code
    except StdoutClosed:
        return 0
    except StdoutError as error:
        tell_error(error.message, error.hint)
        return error.exit_code
    return 0


def _run() -> NoReturn:
    try:
        cli.main(standalone_mode=False, prog_name="pipeprof")
    except PipeprofError as error:
        tell_error(error.message, error.hint)
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else str(error))
        sys.exit(0)
    except click.ClickException as error:
        tell_error(*words_of(error))
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(128 + signal.SIGINT)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not look like "regressed", which is 1
        if is_interruption(error):
            sys.exit(128 + signal.SIGINT)
        words = words_of_name(error)
        if words is not None:
            tell_error(*words)
            sys.exit(2)
        click.echo(escape.terminal(traceback.format_exc()), nl=False, err=True)
        tell_error("pipeprof failed where it should not", "report the lines above")
        sys.exit(DEFECT)
    sys.exit(0)
