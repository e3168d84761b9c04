"""Lines of a program or of a patch as HTML, in the colours of their parts; copied, they are what they were."""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING

from pipeprof.escape import html as escape

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHANGES = {"+": "added", "-": "removed", "@": "place"}
_TEXT = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
_PARTS = re.compile(
    rf"(?P<comment>#.*)|(?P<text>{_TEXT})|\b(?P<keyword>{'|'.join(keyword.kwlist)})\b|\b(?P<figure>\d[\w.]*)"
    r"|\b(?P<argument>[^\W\d]\w*)(?==[^=])"
)


def code_lines(code: Sequence[str], language: str) -> list[str]:
    """`language`: `python`, `diff` (of Python), or `text`, which has no colours."""
    shown = map(_changed if language == "diff" else _python if language == "python" else escape, code)
    return [to_copy(chr(10).join(shown), ' class="wide" tabindex="0"')]


def to_copy(shown: str, how: str = "") -> str:
    """HTML of text in its own lines, with a button that copies it where the page's script runs."""
    return f'<div class="code"><pre data-copy{how}>{shown}</pre></div>'


def _plain(text: str) -> str:
    """With its tabs, which a patch needs."""
    return "\t".join(map(escape, text.split("\t")))


def _changed(line: str) -> str:
    """A line of a patch; its head and the places have no parts."""
    kind = _CHANGES.get(line[:1])
    if line.startswith(("+++ ", "--- ", "@@")):
        return f'<span class="place">{_plain(line)}</span>'
    inner = _plain(line[:1]) + _python(line[1:])
    return f'<span class="{kind}">{inner}</span>' if kind else inner


def _python(line: str) -> str:
    shown, at = [], 0
    for part in _PARTS.finditer(line):
        shown += [_plain(line[at : part.start()]), f'<span class="{part.lastgroup}">{_plain(part[0])}</span>']
        at = part.end()
    return "".join([*shown, _plain(line[at:])])
