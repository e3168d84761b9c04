"""The verb `serve`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeprof.cli.messages import say_named
from pipeprof.cli.options import LocalPath


@click.command()
@click.argument("folder", type=LocalPath(), default=Path())
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=8190,
    show_default=True,
    help="Port of this machine; 0 takes any that is free.",
)
def serve(folder: Path, port: int) -> None:
    """Show the runs of a folder in a browser: reports, comparisons, history.

    \b
      pipeprof serve
      pipeprof serve nightly-runs/ --port 0
      ssh -L 8190:localhost:8190 HOST   # when the runs are on HOST

    FOLDER is the current folder if none is given. It prints the address to open, with a token that nobody else
    knows; only this machine can reach it. Nothing is written: runs are only read. Ctrl-C ends it.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    from pipeprof.serve import check_installed

    check_installed()
    from pipeprof.report.local_server import HOST, new_token
    from pipeprof.serve.app import bound, serve_site
    from pipeprof.serve.site import Site

    site, token = Site(folder), new_token()
    with bound(port) as at:
        click.echo(f"http://{HOST}:{at.getsockname()[1]}/?token={token}")
        say_named(f"open this address; it shows the runs in `{folder}`; Ctrl-C ends it")
        serve_site(site, at, token)
