"""Lines that operators of graphs come from (`graph-N.lines`), out of MindSpore's own dump of what it compiled.

Of each operator its full name, then from the outermost call to the operator the places in Python: a function's first
line, with its text, and the line in it that leads on. A gradient has those of the operator it belongs to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.read.spool.lines import content
from pipeprof.read.tables.rows import MODULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pipeprof.read.spool.lines import SpoolNotes

    Frames = tuple[str, ...]

_NAME = re.compile(r"# Fullname with scope: \((.*)\)")
_PLACE = re.compile(r"# In file (.+?):(\d+)(?:~\d+)?, \d+~\d+/(.*)/")
_FUNCTION = re.compile(r"\s*(?:async )?def (\w+)")
_MODULE = "construct"  # the one function of MindSpore's modules that is shown
MOST_FILES = 64


def load_lines(folder: Path, notes: SpoolNotes, names: Mapping[str, str]) -> dict[str, Frames]:
    """Frames of each operator by full name, innermost first. Where two graphs differ in one, it has none.

    `names`: of functions by where they begin, `net.py(12)`: `Network.construct`.
    """
    merged: dict[str, Frames] = {}
    for path in sorted(folder.glob("graph-*.lines"))[:MOST_FILES]:
        for name, frames in _operators(content(path, notes).decode(errors="replace").splitlines(), names):
            merged[name] = frames if merged.get(name, frames) == frames else ()
    return {name: frames for name, frames in merged.items() if frames}


def _operators(lines: Iterable[str], names: Mapping[str, str]) -> Iterator[tuple[str, Frames]]:
    name, places = "", []
    for line in lines:
        place, named = _PLACE.search(line), _NAME.search(line)
        if place:
            places.append((place[1], int(place[2]), place[3]))
        elif places or named:  # the next operator, or another one that a gradient may belong to
            if name:
                yield name, _frames(places, names)
            name, places = named[1] if named else "", []
    if name:
        yield name, _frames(places, names)


def _frames(places: Iterable[tuple[str, int, str]], names: Mapping[str, str]) -> Frames:
    """`net.py(14): Network.construct` for each function on the way that is the program's or a module of MindSpore's."""
    frames: list[tuple[str, int, str]] = []
    for path, line, text in places:
        function = _FUNCTION.match(text)
        if function or text.lstrip().startswith("@"):
            frames.append((path, line, names.get(f"{path}({line})", function[1] if function else "")))
        elif frames and frames[-1][0] == path:
            frames[-1] = (path, line, frames[-1][2])
        else:
            frames.append((path, line, ""))
    shown = (
        (path, line, name)
        for path, line, name in reversed(frames)
        if not path.startswith(MODULES) or name.rpartition(".")[2] == _MODULE
    )
    return tuple(f"{path}({line}): {name}" if name else f"{path}({line})" for path, line, name in shown)
