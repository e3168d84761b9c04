"""The option `--engine` of verbs whose work can be done on a cluster."""

from __future__ import annotations

import click

engine_option = click.option(
    "--engine", metavar="URL", help="Work on this Dask cluster, such as tcp://HOST:8786.  [default: this machine]"
)
