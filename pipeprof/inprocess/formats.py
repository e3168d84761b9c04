"""The files that a profile writes beside each of its runs: a format is what stands behind the run's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pipeprof.errors import UsageError, did_you_mean

MEMORY = "memory_flow.svg"
_BLOCKS = 2000  # as many as the verb draws


def chosen_formats(formats: str | Iterable[str]) -> tuple[str, ...]:
    """The formats, each once, in the order given. Raises UsageError for one that is not written."""
    wanted = (formats,) if isinstance(formats, str) else tuple(dict.fromkeys(formats))
    for name in wanted:
        if name not in FORMATS:
            raise UsageError(f"unknown format `{name}`", did_you_mean(str(name), FORMATS))
    return wanted


def write_formats(run: Path, formats: Iterable[str]) -> list[Path]:
    """Write each format of a run beside it, `RUN.FORMAT`; a file of that name is replaced.

    Raises UsageError for one that cannot be written; those before it are there then.
    """
    written = []
    for name in formats:
        path = run.with_name(f"{run.name}.{name}")
        FORMATS[name](run, path)
        written.append(path)
    return written


def write_trace(run: Path, path: str | os.PathLike[str]) -> None:
    """Write the timeline of a run to a file, packed when its name ends in `.gz`.

    Raises UsageError when nothing can be drawn, or the file cannot be written.
    """
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415 - what writes is loaded when it is wanted
    from pipeprof.report.output import check_free  # noqa: PLC0415
    from pipeprof.report.timeline import trace  # noqa: PLC0415

    try:
        check_free(Path(path), force=True)
        trace.write(open_run(run), Path(path), trace.Choice())
    except UsageError as error:
        raise UsageError(error.message, error.hint.replace("with -o", "as the path")) from error


def _memory(run: Path, path: Path) -> None:
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415
    from pipeprof.report.memory import content, svg  # noqa: PLC0415
    from pipeprof.report.output import write_text  # noqa: PLC0415

    write_text(svg.chart_of(content.build(open_run(run), top=1, lifetimes=_BLOCKS)), path)


def _report(form: Callable[[Any, dict[str, Any]], str]) -> Callable[[Path, Path], None]:
    def write(run: Path, path: Path) -> None:
        from pipeprof.read.spool.finish import open_run  # noqa: PLC0415
        from pipeprof.report.build import build  # noqa: PLC0415
        from pipeprof.report.output import write_text  # noqa: PLC0415

        source = open_run(run)
        write_text(form(source, build(source)), path)

    return write


def _html(source: Any, content: dict[str, Any]) -> str:
    from pipeprof.report import html  # noqa: PLC0415

    return html.of_run(source, content)


def _json(_source: Any, content: dict[str, Any]) -> str:
    from pipeprof.report import json_text  # noqa: PLC0415

    return json_text.text(content)


def _markdown(_source: Any, content: dict[str, Any]) -> str:
    from pipeprof.report import markdown  # noqa: PLC0415

    return markdown.text(content)


FORMATS: dict[str, Callable[[Path, Path], None]] = {
    "chrome_timeline.json": write_trace,
    "chrome_timeline.json.gz": write_trace,
    MEMORY: _memory,
    "report.html": _report(_html),
    "report.md": _report(_markdown),
    "report.json": _report(_json),
}
