"""The sentences of the pages about security, and the tests that `held.md` names for them."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import NamedTuple

from play import ROOT

PAGES = ("SECURITY.md", "docs/security.md", "docs/secrets.md", "docs/limits.md")
# Sections about what is to be set up, and about other people: a sentence there may have a test, but need not.
ADVICE = (
    "Reporting a vulnerability",
    "Supported versions",
    "What the gate cannot prevent",
    "Hosted runners",
    "Self-hosted runners",
    "Baselines in git",
    "Baselines in object storage",
)
_CODE = re.compile(r"`[^`]*`")
_END = re.compile(r"[.!?][)*]*\s+(?=[A-Z`*\[])")
_HIDDEN = re.compile(r"<!--.*?-->|^ *```.*?^ *```$|^    \S.*?$", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*- |\||#)")


class Sentence(NamedTuple):
    """A sentence, an item of a list, or a row of a table, as plain text, with the heading that it stands below."""

    page: str
    heading: str
    text: str


class Held(NamedTuple):
    """The first words of a sentence, and the tests that fail without it."""

    words: str
    tests: tuple[str, ...]


def plain(text):
    """A text without its markup, on one line."""
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("*", "").replace("`", "").split())


def sentences(page, text=None):
    """All of a page, in order; code, headings and heads of tables are none, and what ends with `:` leads to others."""
    text = (ROOT / page).read_text(encoding="utf-8") if text is None else text
    heading, found = "", []
    for block in _BLOCK.split(_HIDDEN.sub("\n", text)):
        content = block.strip()
        if content.startswith("#"):
            heading = content.lstrip("# ")
        elif content.startswith("|"):
            if set(content) <= set("|-: "):
                found.pop()  # the head
            else:
                found.append(Sentence(page, heading, plain(content.strip("| "))))
        elif content:
            found += [Sentence(page, heading, plain(one)) for one in _cut(content.removeprefix("- "))]
    return found


def _cut(text):
    """The sentences of a paragraph; what stands in code ends none."""
    masked = _CODE.sub(lambda match: "`" + "x" * (len(match[0]) - 2) + "`", text)
    ends = [match.end() for match in _END.finditer(masked)]
    return [text[begin:end].strip() for begin, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def held():
    """The rows of the table."""
    rows = (ROOT / "tests/docs/held.md").read_text(encoding="utf-8").splitlines()
    cells = [row.strip("| ").split(" | ") for row in rows if row.startswith("| ")]
    return [Held(plain(words), tuple(re.findall(r"`([^`]+)`", tests))) for words, tests in cells[1:]]


def missing(rows, found):
    """What is wrong: sentences without a row, rows without a sentence or with several."""
    starts = [row.words for row in rows]
    promises = [one.text for one in found if one.heading not in ADVICE and not one.text.endswith(":")]
    problems = [f"no test: {text}" for text in promises if not text.startswith(tuple(starts))]
    for words in starts:
        matches = [one.text for one in found if one.text.startswith(words)]
        problems += [] if len(matches) == 1 else [f"{len(matches)} sentences begin with: {words}"]
    return problems


@cache
def names_of_tests(path):
    """Names of the test functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
