"""The comment header of a .sql file: what the query reads, takes and gives.

    -- Time each rank spent in each phase of a step.
    --
    -- Reads: step_phase, stage?
    -- Kept: yes
    -- Ranks: apart
    -- Takes:
    --   $skip_steps  bigint   steps left out at the start
    -- Gives, one row per (rep, rank), in that order:
    --   rep          bigint   repetition
    --   total_ns     bigint   ns    sum of span lengths

There are no rows while one of the tables and views without a question mark has none.
Fields are two or more spaces apart; a unit stands between type and description. A deeper line continues the
description above it. A column is null only where its description has the word `null`. `Takes:` is left out when there
are no parameters, `, in that order` in a view. `Kept: yes` is for views that have few rows and are read often: an
engine computes them once. `Ranks: apart` is for queries whose rows of a rank are made of this rank's alone: ranks can
be asked one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pipeprof.errors import QueryError

PYTHON_TYPES: dict[str, type] = {"bigint": int, "integer": int, "double": float, "varchar": str, "boolean": bool}

_FIELD_INDENT = 2
_GIVES = re.compile(r"Gives, one row per \((?P<key>[^()]+)\)(?P<ordered>, in that order)?:")
_NULL = re.compile(r"\bnull\b")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Parameter:
    """One `$name` that a query takes: its SQL type and meaning."""

    name: str
    type: str
    doc: str


@dataclass(frozen=True)
class Field:
    """One column that a query gives: its SQL type, unit ("" when it has none) and meaning."""

    name: str
    type: str
    unit: str
    doc: str

    @property
    def nullable(self) -> bool:
        """Whether it may be null: its description says when."""
        return _NULL.search(self.doc) is not None


@dataclass(frozen=True)
class Query:
    """One .sql file.

    `name` is "family/file". `reads` are tables and views, `needs` those of them without whose rows it has none. `key`
    are the columns that tell the rows apart; the rows come sorted by them when `ordered`. The rows of a `kept` view are
    computed once. Those of an `apart` query are the rows that it gives of each rank. `sql` is the whole text, header
    included.
    """

    name: str
    title: str
    reads: tuple[str, ...]
    needs: tuple[str, ...]
    takes: tuple[Parameter, ...]
    gives: tuple[Field, ...]
    key: tuple[str, ...]
    ordered: bool
    kept: bool
    apart: bool
    sql: str
    path: Path


def parse(path: Path, name: str) -> Query:
    """Read a .sql file. Raises QueryError, naming file and line, when its header is malformed or there is no SQL."""
    return _Parser(path, name, path.read_text(encoding="utf-8")).query()


@dataclass
class _Entry:
    line: int
    parts: list[str]


class _Parser:
    def __init__(self, path: Path, name: str, text: str) -> None:
        self.path = path
        self.name = name
        self.text = text
        self.lines = list(self._comment_lines())

    def query(self) -> Query:
        reads_at = self._required_section("Reads")
        gives_at = self._required_section("Gives")
        takes_at = self._section("Takes")
        kept_at = self._section("Kept")
        apart_at = self._section("Ranks")
        starts = [at for at in (reads_at, kept_at, apart_at, takes_at, gives_at) if at is not None]
        if starts != sorted(starts):
            self._fail(gives_at, "found sections out of order, expected Reads, Kept, Ranks, Takes, Gives")
        for at, line in ((kept_at, "Kept: yes"), (apart_at, "Ranks: apart")):
            if at is not None and self.lines[at] != line:
                self._fail(at, f"expected `{line}`")
        gives = _GIVES.fullmatch(self.lines[gives_at])
        if gives is None:
            self._fail(gives_at, "expected `Gives, one row per (column, ...), in that order:`")
        fields = tuple(self._field(entry) for entry in self._entries(gives_at + 1, len(self.lines)))
        key = tuple(column.strip() for column in gives["key"].split(","))
        unknown = [column for column in key if column not in {field.name for field in fields}]
        if unknown:
            self._fail(gives_at, f"`{unknown[0]}` tells the rows apart but is not a column listed below")
        self._unique(gives_at, [field.name for field in fields])
        takes = self._takes(takes_at, gives_at)
        reads = self._reads(reads_at, starts[1])
        return Query(
            name=self.name,
            title=self._title(reads_at),
            reads=tuple(reads),
            needs=tuple(name for name, needed in reads.items() if needed),
            takes=takes,
            gives=fields,
            key=key,
            ordered=gives["ordered"] is not None,
            kept=kept_at is not None,
            apart=apart_at is not None,
            sql=self.text,
            path=self.path,
        )

    def _comment_lines(self) -> Iterator[str]:
        """The header's lines without `--` and one space; empty ones kept, so that index + 1 is the line number."""
        lines = self.text.splitlines()
        for index, line in enumerate(lines):
            if not line.startswith("--"):
                if any(rest.strip() for rest in lines[index:]):
                    return
                break
            yield line[2:].removeprefix(" ").rstrip()
        self._fail(max(len(lines) - 1, 0), "expected a SELECT after the header, found the end of the file")

    def _section(self, label: str) -> int | None:
        begins = (f"{label}:", f"{label}, one row ")
        starts = [index for index, line in enumerate(self.lines) if line.startswith(begins)]
        if len(starts) > 1:
            self._fail(starts[1], f"found a second `{label}`")
        return starts[0] if starts else None

    def _required_section(self, label: str) -> int:
        start = self._section(label)
        if start is None:
            self._fail(max(len(self.lines) - 1, 0), f"found no `{label}` in the header")
        return start

    def _title(self, end: int) -> str:
        title = " ".join(line.strip() for line in self.lines[:end] if line.strip())
        if not title:
            self._fail(0, "expected a title in front of `Reads:`")
        return title

    def _reads(self, start: int, end: int) -> dict[str, bool]:
        """The names, and whether each is needed."""
        text = " ".join([self.lines[start].removeprefix("Reads:"), *self.lines[start + 1 : end]])
        words = [word.strip() for word in text.split(",")]
        names = [word.removesuffix("?") for word in words]
        bad = [name for name in names if not _NAME.fullmatch(name)]
        if bad:
            self._fail(start, f"expected table names with commas between them, found `{bad[0]}`")
        self._unique(start, names)
        return dict(zip(names, (not word.endswith("?") for word in words), strict=True))

    def _takes(self, start: int | None, end: int) -> tuple[Parameter, ...]:
        if start is None:
            return ()
        if self.lines[start] != "Takes:":
            self._fail(start, "expected `Takes:` alone on its line, one parameter per line below it")
        takes = tuple(self._parameter(entry) for entry in self._entries(start + 1, end))
        self._unique(start, [parameter.name for parameter in takes])
        return takes

    def _entries(self, start: int, end: int) -> list[_Entry]:
        """The lines of a section, two spaces deep; deeper lines are joined to the last part of the one above."""
        entries: list[_Entry] = []
        for index in range(start, end):
            line = self.lines[index]
            depth = len(line) - len(line.lstrip())
            if not line.strip():
                continue
            if depth == _FIELD_INDENT:
                entries.append(_Entry(index, re.split(r"\s{2,}", line.strip())))
            elif depth > _FIELD_INDENT and entries:
                entries[-1].parts[-1] += " " + line.strip()
            else:
                self._fail(index, f"expected an entry indented by {_FIELD_INDENT} spaces, found `{line.strip()}`")
        if not entries:
            self._fail(start - 1, "expected at least one entry below this line")
        return entries

    def _parameter(self, entry: _Entry) -> Parameter:
        if len(entry.parts) != 3 or not entry.parts[0].startswith("$"):
            self._fail(entry.line, "expected `$name  type  description`, two spaces apart")
        name, kind, doc = entry.parts
        return Parameter(self._name(entry, name[1:]), self._type(entry, kind), doc)

    def _field(self, entry: _Entry) -> Field:
        if len(entry.parts) not in (3, 4):
            self._fail(entry.line, "expected `name  type  [unit]  description`, two spaces apart")
        name, kind, *unit, doc = entry.parts
        return Field(self._name(entry, name), self._type(entry, kind), unit[0] if unit else "", doc)

    def _name(self, entry: _Entry, name: str) -> str:
        if not _NAME.fullmatch(name):
            self._fail(entry.line, f"expected a snake_case name, found `{name}`")
        return name

    def _type(self, entry: _Entry, kind: str) -> str:
        if kind not in PYTHON_TYPES:
            self._fail(entry.line, f"expected one of {', '.join(PYTHON_TYPES)}, found `{kind}`")
        return kind

    def _unique(self, line: int, names: list[str]) -> None:
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            self._fail(line, f"`{twice[0]}` is listed twice")

    def _fail(self, index: int, problem: str) -> NoReturn:
        raise QueryError(
            f"malformed header in `{self.path}`, line {index + 1}: {problem}",
            "see any file in `queries/` for the format",
        )
