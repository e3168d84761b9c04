"""The verb `completion`."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
      eval "$(pipeprof completion bash)"                    # in ~/.bashrc
      eval "$(pipeprof completion zsh)"                     # in ~/.zshrc
      pipeprof completion fish > ~/.config/fish/completions/pipeprof.fish

    It completes verbs, options, their values, and the runs of the current folder.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    if completion_class is not None:
        click.echo(completion_class(context.find_root().command, {}, "pipeprof", "_PIPEPROF_COMPLETE").source())
