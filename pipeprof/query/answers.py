"""Answers of queries that are written down with a run, so that they need not be asked again; how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from pipeprof.query import catalog
from pipeprof.query.header import PYTHON_TYPES

Row = dict[str, Any]
Question = tuple[str, dict[str, Any]]


class Answers:
    """Rows of queries by their names and parameters. While they are `filling`, an engine notes what it is asked."""

    def __init__(self, *, filling: bool = False) -> None:
        self._texts: dict[tuple[str, str], list[str]] = {}
        self._filling = filling

    def __len__(self) -> int:
        return len(self._texts)

    def find(self, name: str, params: Mapping[str, Any]) -> list[Row] | None:
        """The rows, made anew for each who asks; None when they are not known, or do not fit the query's header."""
        texts = self._texts.get((name, asked(params)))
        if texts is None:
            return None
        columns, decoder = _form(name)
        try:
            return [dict(zip(columns, decoder.decode(text), strict=True)) for text in texts]
        except (msgspec.MsgspecError, TypeError):  # TypeError: there is no text
            return None

    def note(self, name: str, params: Mapping[str, Any], rows: Sequence[Row]) -> None:
        """Keep the rows while filling, if they read back equal: there is no text for infinity."""
        if not self._filling:
            return
        question = name, asked(params)
        try:
            self._texts[question] = [msgspec.json.encode(list(row.values())).decode() for row in rows]
        except (TypeError, ValueError, OverflowError):
            return
        if self.find(name, params) != list(rows):
            del self._texts[question]

    def questions(self) -> list[Question]:
        """What is known, as query and parameters."""
        return [(name, msgspec.json.decode(params)) for name, params in self._texts]

    def join(self, parts: Sequence[Answers]) -> None:
        """Take the answers of parts of a run, in their order, as those of the whole; none that a part does not have."""
        held = [part._texts for part in parts]  # noqa: SLF001 - of the same class
        for question in held[0]:
            if all(question in one for one in held):
                self._texts[question] = _in_order(question[0], [text for one in held for text in one[question]])

    def written(self) -> Iterator[tuple[str, str, int, str]]:
        """Query, parameters, place and text of all rows; place 0 says how many rows there are."""
        for (name, params), texts in sorted(self._texts.items()):
            yield name, params, 0, str(len(texts))
            yield from ((name, params, place, text) for place, text in enumerate(texts, start=1))

    def read(self, rows: Iterable[tuple[str, str, int, str]]) -> None:
        """Take rows as they were `written`; an answer that is not whole is left out."""
        numbers: dict[tuple[str, str], str] = {}
        for name, params, place, text in rows:
            if place == 0:
                numbers[name, params] = text
            else:
                self._texts.setdefault((name, params), []).append(text)
        answers = {question: self._texts.get(question, []) for question in numbers}
        self._texts = {question: texts for question, texts in answers.items() if numbers[question] == str(len(texts))}


def _in_order(name: str, texts: list[str]) -> list[str]:
    """Rows of one part after the other in the order of the whole: by the columns up to the rank, if there is one."""
    key = catalog.find(name).key
    columns, decoder = _form(name)
    indices = [columns.index(column) for column in (key[: key.index("rank") + 1] if "rank" in key else key)]

    def key_of(text: str) -> list[Any]:
        row = decoder.decode(text)
        return [row[index] for index in indices]

    return sorted(texts, key=key_of)


def asked(params: Mapping[str, Any]) -> str:
    """Parameters as text, the same whatever their order."""
    return msgspec.json.encode(dict(params), order="deterministic").decode()


@cache
def _form(name: str) -> tuple[list[str], msgspec.json.Decoder[Any]]:
    """The columns that a query gives, and what reads the text of a row: of no other types."""
    gives = catalog.find(name).gives
    types = tuple(PYTHON_TYPES[field.type] | None for field in gives)
    return [field.name for field in gives], msgspec.json.Decoder(tuple[types])  # type: ignore[valid-type]
