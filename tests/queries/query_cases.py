"""Tests of a query as a table: what the test says, the columns asked for, the rows there are, and the rows expected."""

import pytest


def rows(columns, *values):
    """Rows of a table from the values of these columns; None is not there."""
    names = columns.split()
    return [{name: one for name, one in zip(names, row, strict=True) if one is not None} for row in values]


def row(columns, **usual):
    """A maker of rows from the values of these columns, the last of which may be left out or have usual values."""
    return lambda *values, **more: usual | dict(zip(columns.split(), values, strict=False)) | more


def answers(query, cases, **usual):
    """A test of a query: {sentence: (columns, tables, rows)}, or (tables, (columns, rows), ...) for several questions.

    Columns are names with spaces between them, or "*". `usual` are the parameters; others stand last in a question.
    """

    @pytest.mark.parametrize("case", cases.values(), ids=cases)
    def test(ask, case):
        for tables, columns, expected, *others in questions(case):
            found = ask(query, tables, columns.strip("*"), **usual | dict(*others))
            assert ([tuple(row.values()) for row in found] if columns == "*" else found) == expected

    return test


def looked(cases):
    """A test of views: {sentence: (SQL, tables, rows)}, or (tables, (SQL, rows), ...)."""

    @pytest.mark.parametrize("case", cases.values(), ids=cases)
    def test(look, case):
        for tables, text, expected in questions(case):
            assert look(text, tables) == expected

    return test


def questions(case):
    """(tables, what is asked, rows, ...) of each question of a case."""
    if isinstance(case[0], str):
        asked, tables, *more = case
        return [(tables, asked, *more)]
    return [(case[0], *question) for question in case[1:]]
