"""The picture of the data's way in docs/design.md, made from the code: docs/way.svg, written by tools/make_docs.py.

Boxes are rooms, and what stands in them is read from where the program keeps it: readers, tables, families of queries,
verbs. Arrows on the left are the way; the last line of a box is what its files import, from the import graph.
"""

from __future__ import annotations

import textwrap
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import grimp

from pipeprof.cli.verbs import VERBS
from pipeprof.escape import html as escape
from pipeprof.query import catalog
from pipeprof.read.foreign import READERS
from pipeprof.record.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOMS = Path(__file__).resolve().parents[1] / "pipeprof"
WIDTH, LINE, LETTERS = 760, 18, 118
INK, PAPER, BOX, FAINT = "#1f2933", "#ffffff", "#e6f4f1", "#52606d"


class Stage(NamedTuple):
    """A room on the way: its folders, what it does, what it holds, and what it hands to the next one."""

    rooms: tuple[str, ...]
    does: str
    holds: tuple[str, ...]
    hands_on: str


def stages() -> tuple[Stage, ...]:
    """The rooms in the order in which the data passes them."""
    families = sorted({query.name.split("/")[0] for query in catalog.all_queries()})
    return (
        Stage(("collect",), "starts the command and watches it; probe/ enters it", _files("collect/probe"),
              "a spool: records, JSON lines and MindSpore's own files"),
        Stage(("read",), "our spool and other programs' files into tables", ("spool", *(one.kind for one in READERS)),
              "rows, written once as Parquet"),
        Stage(("record",), "the tables of a run, its manifest, baselines", tuple(table.name for table in TABLES),
              "Parquet files behind DuckDB views"),
        Stage(("query",), f"{len(catalog.all_queries())} SQL queries and {len(catalog.views())} views", tuple(families),
              "facts: rows of numbers and codes"),
        Stage(("verdict",), "named rules, bounds and statistics; no files, no SQL", _files("verdict"),
              "verdicts: codes, figures and their reasons"),
        Stage(("report", "experiment"), "verdicts in words and pictures; runs in a planned order",
              tuple(sorted({*_folders("report"), *_folders("experiment")})), "text, pages, JSON and exit codes"),
        Stage(("cli", "api", "inprocess", "serve"), "the edge: verbs, Python, pytest, a browser", tuple(VERBS), ""),
    )  # fmt: skip


def picture() -> str:
    """The SVG, the same for the same code."""
    graph = grimp.build_graph("pipeprof", exclude_type_checking_imports=True, cache_dir=None)
    parts, top = [], 16
    for stage in stages():
        asks = sorted(set(chain.from_iterable(_asks(graph, room) for room in stage.rooms)) - set(stage.rooms))
        lines = [*textwrap.wrap(", ".join(stage.holds), LETTERS), f"imports {', '.join(asks) or 'no other room'}"]
        height = LINE * (len(lines) + 1) + 16
        parts += [*_box(top, height, stage, lines), *_arrow(top + height, stage.hands_on)]
        top += height + (2 * LINE + 4 if stage.hands_on else 16)
    box = f'viewBox="0 0 {WIDTH} {top}" role="img" font-family="sans-serif" font-size="13"'
    words = "; ".join(f"{'/, '.join(one.rooms)}/: {one.does}" for one in stages())
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" {box}>', f"<title>The way of the data: {escape(words)}</title>",
        f'<rect width="{WIDTH}" height="{top}" fill="{PAPER}"/>', *parts, "</svg>", "",
    ])  # fmt: skip


def _asks(graph: grimp.ImportGraph, room: str) -> Iterator[str]:
    """Rooms whose modules those of this room import."""
    name = f"pipeprof.{room}"
    own = {name, *graph.find_descendants(name)}
    for module in own:
        for other in graph.find_modules_directly_imported_by(module) - own:
            rest = other.removeprefix("pipeprof.").split(".")[0]
            if (ROOMS / rest).is_dir():
                yield rest


def _box(top: int, height: int, stage: Stage, lines: list[str]) -> Iterator[str]:
    yield f'<rect x="12" y="{top}" width="{WIDTH - 24}" height="{height}" rx="8" fill="{BOX}" stroke="{INK}"/>'
    name = ", ".join(f"{room}/" if (ROOMS / room).is_dir() else f"{room}.py" for room in stage.rooms)
    yield (
        f'<text x="24" y="{top + 22}" fill="{INK}"><tspan font-weight="bold">{name}</tspan>'
        f'<tspan dx="10">{escape(stage.does)}</tspan></text>'
    )
    for number, line in enumerate(lines, 1):
        style = ' font-style="italic"' if number == len(lines) else ""
        yield f'<text x="24" y="{top + 22 + number * LINE}" fill="{FAINT}" font-size="12"{style}>{escape(line)}</text>'


def _arrow(top: int, words: str) -> Iterator[str]:
    if words:
        yield f'<path d="M40 {top} v28 m-5 -7 l5 8 l5 -8" fill="none" stroke="{INK}" stroke-width="2"/>'
        yield f'<text x="56" y="{top + 25}" fill="{INK}">{escape(words)}</text>'


def _files(room: str) -> tuple[str, ...]:
    names = {path.stem for path in (ROOMS / room).glob("*.py")} | set(_folders(room))
    return tuple(sorted(name for name in names if not name.startswith("_")))


def _folders(room: str) -> tuple[str, ...]:
    return tuple(f"{path.name}/" for path in sorted((ROOMS / room).iterdir()) if (path / "__init__.py").is_file())
