"""Which SQL of the user's is let through, and what DuckDB's errors mean.

Not the outer statement alone is looked at but the whole parse tree, for a common table expression can write as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NoReturn

import duckdb

from pipeprof.errors import QueryError, did_you_mean
from pipeprof.record import limits
from pipeprof.record.text import printable, shortened

# EXPLAIN ANALYZE runs what it explains, so what stands behind it is looked at too.
_EXPLAIN = re.compile(
    r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*EXPLAIN(?:\s+ANALYZE\b|\s*\([^()]*\))?(?P<explained>.*)",
    re.IGNORECASE | re.DOTALL,
)
_NO_TABLE = re.compile(r"Table with name (?P<name>.+) does not exist")
# What a SELECT may be made of: DuckDB names its query nodes ..._NODE.
_NODES = frozenset(["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"])
# fmt: off
_TABLE_FUNCTIONS = frozenset([
    "duckdb_columns", "duckdb_functions", "duckdb_keywords", "duckdb_tables", "duckdb_types",
    "duckdb_views", "generate_series", "histogram", "histogram_values", "icu_calendar_names",
    "json_each", "json_tree", "pg_timezone_names", "pragma_collations", "pragma_platform",
    "pragma_show", "pragma_table_info", "pragma_version", "range", "repeat",
    "repeat_row", "summary", "unnest",
])
# fmt: on
_HARMLESS = frozenset(["error", "gen_random_uuid", "random", "uuid", "uuidv4", "uuidv7"])  # though they have effects
_READS_ONLY = "only SELECT, WITH, EXPLAIN, DESCRIBE, SHOW and SUMMARIZE are possible: a run is never changed"


def check(text: str) -> None:
    """Let exactly one statement through, and only one that reads; QueryError says why not.

    DuckDB counts DESCRIBE, SHOW, SUMMARIZE, VALUES and FROM as SELECT.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise QueryError(
            f"the SQL is not UTF-8: `{shortened(printable(text))}`", "write `chr(N)` for a character"
        ) from error
    statements = _parsed(text)
    if len(statements) != 1:
        raise QueryError(f"expected exactly one SQL statement, found {len(statements)}", "ask them one by one")
    statement = statements[0]
    kind = _kind_of(statement)
    if statement.named_parameters:
        names = ", ".join(f"`${name}`" for name in sorted(statement.named_parameters))
        raise QueryError(f"expected values in the SQL, found the parameters {names}", "write the values into the text")
    if kind == "EXPLAIN":
        match = _EXPLAIN.match(text)
        text = match["explained"] if match else text
        kind = _kind_of(next(iter(_parsed(text)), statement))
    if kind != "SELECT":
        _refuse(kind)
    for part in _parts(_tree(text)):
        _check_part(part)


def _kind_of(statement: duckdb.Statement) -> str:
    """What kind of statement it is; some that DuckDB knows have no name in Python, such as UPDATE EXTENSIONS."""
    try:
        return str(statement.type.name)
    except ValueError:
        return shortened(" ".join(statement.query.split()[:2]).upper())


def _check_part(part: dict[str, Any]) -> None:
    """Raises QueryError for a node of the parse tree that may do more than read the tables."""
    kind = str(part.get("type", ""))
    if kind.endswith("_NODE") and kind not in _NODES:
        _refuse(kind.removesuffix("_NODE").replace("_", " "))
    if kind == "TABLE_FUNCTION":
        name = str(part["function"].get("function_name", "")).lower()
        if name not in _TABLE_FUNCTIONS:
            _refuse(f"the table function {name}")
    elif "function_name" in part and str(part["function_name"]).lower() in _with_effects():
        _refuse(f"the function {part['function_name']}")


def _refuse(what: str) -> NoReturn:
    raise QueryError(f"statement refused: found {what}, only statements that read are allowed", _READS_ONLY)


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """All nodes of a parse tree; without recursion, since the text may nest as deep as it likes."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _tree(text: str) -> Any:
    """DuckDB's own parse tree of a SELECT."""
    row = _scratch().cursor().execute("SELECT json_serialize_sql(CAST(? AS VARCHAR))", [text]).fetchone()
    try:
        tree = json.loads(row[0]) if row else {"error": True}
    except RecursionError:
        tree = {"error": True}
    if tree["error"]:
        _refuse("what DuckDB cannot take apart")
    return tree


@cache
def _with_effects() -> frozenset[str]:
    """Names of functions that do more than compute a value."""
    names = "SELECT lower(function_name) FROM duckdb_functions() WHERE has_side_effects"
    return frozenset(name for (name,) in _scratch().cursor().execute(names).fetchall()) - _HARMLESS - _TABLE_FUNCTIONS


@cache
def _scratch() -> duckdb.DuckDBPyConnection:
    """An empty database that knows DuckDB's grammar and functions."""
    return duckdb.connect(":memory:", config={"threads": "1"})


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
        hint = "only the run's own tables can be read"
    elif isinstance(error, duckdb.OutOfMemoryException):
        limit = limits.SPILL if "max_temp_directory_size" in str(error) else limits.MEMORY
        hint = f"ask for fewer rows or columns at once, or set {limit} to allow more"
    elif isinstance(error, duckdb.ParserException) and 'near "fetch"' in message:
        hint = 'fetch is a reserved word of SQL: write "fetch" with double quotes'
    elif isinstance(error, duckdb.ParserException) and not hint:
        hint = next((line for line in lines[1:] if line.startswith("LINE")), "")
    return QueryError(f"SQL failed: {message}", hint or "`pipeprof sql RUN` lists tables and columns")


def _parsed(text: str) -> list[duckdb.Statement]:
    try:
        return duckdb.extract_statements(text)
    except duckdb.Error as error:
        raise explained(error, ()) from error
