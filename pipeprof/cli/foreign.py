"""The verb `import`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeprof.cli.messages import progress_line, sum_up
from pipeprof.cli.options import TARGET, LocalPath, engine_option
from pipeprof.cli.push import free_place, upload_to


@click.command("import")
@click.argument("source", metavar="PATH", type=LocalPath())
@TARGET
@click.option(
    "--kind",
    type=click.Choice(["ascend", "minddata", "megengine", "kineto", "dftracer", "rocprof", "xplane", "chrome"]),
    help="Read only files of this kind.  [default: all]",
)
@click.option(
    "--step",
    metavar="PATTERN",
    help="Regular expression that matches the names of steps in a Chrome trace; a group ( ) gives the step's number.",
)
@engine_option
@click.option("--force", is_flag=True, help="Replace the run if the folder holds one.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def import_files(
    source: Path,
    target: Path | str | None,
    kind: str | None,
    step: str | None,
    engine: str | None,
    *,
    force: bool,
    quiet: bool,
) -> None:
    """Read another profiler's files into a run.

    \b
      pipeprof import profiler/ -o old
      pipeprof import resnet.pt.trace.json.gz -o torch
      pipeprof import viztracer.json --step 'train_step ([0-9]+)' -o any
      pipeprof import /shared/profiler -o /shared/run --engine tcp://head:8786
      pipeprof report old

    PATH is one file, or a folder with its subfolders. Files are recognised by their content: those of Ascend jobs and
    MindSpore's profiler (ascend), MindSpore's dataset profiling (minddata), MegEngine (megengine), PyTorch (kineto),
    DFTracer (dftracer), AMD's rocprofv3 (rocprof), JAX and TensorFlow (xplane), and other Chrome traces (chrome).
    """  # noqa: D301
    from pipeprof.cluster import connected
    from pipeprof.collect.session import default_name
    from pipeprof.read.foreign import import_path

    path, url = free_place(target, force=force)
    with progress_line("pipeprof: import", quiet=quiet) as progress, connected(engine):
        run = import_path(source, path or default_name(), kind=kind, step=step, force=force, progress=progress)
    sum_up(run, quiet=quiet)
    upload_to(url, run.path, force=force, quiet=quiet)
