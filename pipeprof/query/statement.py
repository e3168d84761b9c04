"""Which SQL of the user's is let through, and what DuckDB's errors mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb

from pipeprof.errors import QueryError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

# EXPLAIN ANALYZE runs what it explains, so what stands behind it is looked at too.
_EXPLAIN = re.compile(
    r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*EXPLAIN(?:\s+ANALYZE\b|\s*\([^()]*\))?(?P<explained>.*)",
    re.IGNORECASE | re.DOTALL,
)
_NO_TABLE = re.compile(r"Table with name (?P<name>.+) does not exist")
_READS_ONLY = "only SELECT, WITH, EXPLAIN, DESCRIBE, SHOW and SUMMARIZE are possible: a run is never changed"


def check(text: str) -> None:
    """Let exactly one statement through, and only one that reads; QueryError says why not.

    DuckDB counts DESCRIBE, SHOW, SUMMARIZE, VALUES and FROM as SELECT.
    """
    statements = _parsed(text)
    if len(statements) != 1:
        raise QueryError(f"expected exactly one SQL statement, found {len(statements)}", "ask them one by one")
    found = statements[0]
    if found.named_parameters:
        names = ", ".join(f"`${name}`" for name in sorted(found.named_parameters))
        raise QueryError(f"expected values in the SQL, found the parameters {names}", "write the values into the text")
    if found.type == duckdb.StatementType.EXPLAIN:
        match = _EXPLAIN.match(text)
        inner = _parsed(match["explained"]) if match else []
        found = inner[0] if inner else found
    if found.type != duckdb.StatementType.SELECT:
        raise QueryError(
            f"statement refused: found {found.type.name}, only statements that read are allowed", _READS_ONLY
        )


def explained(error: duckdb.Error, tables: Sequence[str]) -> QueryError:
    """DuckDB's error as one line and a hint. `tables` are the names that exist."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind, _, rest = (lines or ["failed"])[0].partition(" Error: ")
    message = rest or kind
    hint = next((line for line in lines[1:] if line.startswith(("Candidate", "Did you mean"))), "")
    table = _NO_TABLE.match(message)
    if isinstance(error, duckdb.CatalogException) and table:
        message = f"no such table: `{table['name']}`"
        hint = did_you_mean(table["name"], sorted(tables), "`pipeprof sql RUN` lists tables and columns")
    elif hint.startswith("Candidate"):
        hint = f"near names are {hint.partition(': ')[2]}"
    elif isinstance(error, duckdb.PermissionException):
        hint = "only the run's own tables and files can be read"
    elif isinstance(error, duckdb.OutOfMemoryException):
        hint = "ask for fewer rows or columns at once, or on a machine with more memory"
    elif isinstance(error, duckdb.ParserException) and 'near "fetch"' in message:
        hint = 'fetch is a reserved word of SQL: write "fetch" with double quotes'
    elif isinstance(error, duckdb.ParserException) and not hint:
        hint = next((line for line in lines[1:] if line.startswith("LINE")), "")
    return QueryError(f"SQL failed: {message}", hint)


def _parsed(text: str) -> list[duckdb.Statement]:
    try:
        return duckdb.extract_statements(text)
    except duckdb.Error as error:
        raise explained(error, ()) from error
