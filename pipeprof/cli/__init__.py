"""The verbs, one file each, loaded when they are asked. They parse words, call a room, and set the exit code.

Errors are caught here, once.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from pipeprof import __version__
from pipeprof.cli.streams import StdoutClosed, StdoutError, guard_streams
from pipeprof.cli.told import tell_error
from pipeprof.errors import PipeprofError

if TYPE_CHECKING:
    from collections.abc import Callable

VERBS = {
    "collect": "collect", "report": "report", "sql": "report", "ops": "ops", "timeline": "timeline", "memory": "memory",
    "stacks": "timeline", "demo": "demo", "whatif": "whatif", "headspace": "whatif", "import": "foreign",
    "compare": "compare", "ab": "ab", "sweep": "sweep", "baseline": "baseline", "qualify": "ab", "render": "render",
}  # fmt: skip
"""The file of each verb."""
DEFECT = 70  # exit code of what should never happen, as in sysexits.h


class _Verbs(click.Group):
    """Loads a verb's file when it is used or explained: each start would otherwise wait for all of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*VERBS, *super().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in VERBS and cmd_name not in self.commands:
            file = import_module(f"pipeprof.cli.{VERBS[cmd_name]}")
            found = (one for one in vars(file).values() if isinstance(one, click.Command) and one.name == cmd_name)
            self.add_command(next(found))
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pipeprof")
@click.option("--no-color", is_flag=True, help="No colours (also: the NO_COLOR variable).")
def cli(*, no_color: bool) -> None:
    """Why is my MindSpore training slow, and did this change make it slower?

    \b
      pipeprof demo                                 the whole story on a small training
      pipeprof collect -o slow -- python train.py   profile an unchanged script
      pipeprof report slow                          phases, data pipeline, operators, diagnosis
      pipeprof compare base new                     did this change make it slower?
      pipeprof ab --base-ref main -- python train.py   both in turn, until it is sure
      pipeprof sql slow "SELECT * FROM step"        the tables behind it
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    if no_color:
        os.environ["NO_COLOR"] = "1"


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell's completion script.

    \b
      eval "$(pipeprof completion bash)"
    """  # noqa: D301
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(cli, {}, "pipeprof", "_PIPEPROF_COMPLETE").source())


def main() -> NoReturn:
    """Entry point: run a verb; every expected error ends as `error:` and `hint:` on stderr and an exit code."""
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
        context = getattr(error, "ctx", None)
        tell_error(error.format_message().rstrip("."), f"see `{context.command_path} --help`" if context else "")
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(128 + signal.SIGINT)
    except Exception:  # noqa: BLE001 - whatever it is, it must not look like "regressed", which is 1
        traceback.print_exc()
        tell_error("pipeprof failed where it should not", "report the lines above")
        sys.exit(DEFECT)
    sys.exit(0)
