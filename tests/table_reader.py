"""Reads tables back from what a terminal shows, to tell whether every cell of a row is whole."""

import re

from rich.cells import cell_len

from pipeprof import escape

_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_BLANKS = re.compile(r"\s+")


def check(block, drawn, width):
    """Assert that a drawn block shows whole cells, and says how many columns it leaves out."""
    if not block.head:
        return
    printable = escape.terminal if block.tall else escape.line
    head = [" ".join(printable(title).split()) for title in block.head]
    columns = [[printable(row[index]) for row in block.rows] for index in range(len(head))]
    widest = max((cell_len(word) for column in columns for cell in column for word in _NUMBER.findall(cell)), default=0)
    assert all(cell_len(line) <= max(width, 3 * widest + 40) for line in (*drawn.head, *drawn.body))
    if drawn.head:
        _check_table(head, columns, drawn, width)
    elif any(head):
        _check_lists(head, columns, drawn.body)


def _check_table(head, columns, drawn, width):
    rule, *body = drawn.body
    spans = [(found.start(), found.end()) for found in re.finditer("─+", rule)]
    note = re.match(r"\+(\d+) columns?\b.*: \S+ \S+ shows all$", body[-1]) if body else None
    hidden = int(note[1]) if note and len(spans) < len(head) else 0
    body = body[:-1] if hidden else body
    assert len(spans) + hidden == len(head), f"{len(head)} columns: {len(spans)} are shown, {hidden} said to be hidden"
    assert len(spans) >= min(3, len(head))
    titles = [solid("".join(pieces)) for pieces in _pieces(drawn.head, spans)]
    places = iter(range(len(head)))
    shown = [next(at for at in places if solid(head[at]) == title) for title in titles]
    assert shown[0] == 0, "the first column stays"
    for at, pieces in zip(shown, _pieces(body, spans), strict=True):
        _same(head[at], pieces, columns[at])
    assert all(cell_len(line) <= width for line in drawn.head) or max(end for _, end in spans) > width


def _check_lists(head, columns, lines):
    several = len(columns[0]) > 1
    cells = []
    for row in range(len(columns[0])):
        cells += [f"row {row + 1}"] * several
        cells += [part for title, column in zip(head, columns, strict=True) for part in (title, column[row])]
    _same("list", lines, cells)


def _same(title, pieces, cells):
    assert solid("".join(pieces)) == solid("".join(cells)), f"column `{title}`"
    assert _numbers(pieces) == _numbers(cells), f"column `{title}`: a number is broken over lines"


def _numbers(texts):
    return [number for text in texts for number in _NUMBER.findall(text)]


def _pieces(lines, spans):
    """Per column, what each line has of it; wide characters take two places."""
    cells = []
    for line in lines:
        letters = []
        for letter in line:
            size = cell_len(letter)
            if size:
                letters += [letter, *[""] * (size - 1)]
            elif letters:
                letters[-1] += letter
        cells.append(letters)
    return [["".join(letters[start:end]) for letters in cells] for start, end in spans]


def solid(text):
    """The text without blanks, which wrapping may take or add."""
    return _BLANKS.sub("", text)
