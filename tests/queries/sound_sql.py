"""What no query of ours does, since its answer would be wrong or differ from one run to the next.

Rules on sqlglot's syntax tree: joins say what they join on, divisors cannot be 0, numbers with a point are doubles,
doubles are not cut to integers without a word, and rows come in a stated order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_INTEGERS = frozenset({"INT", "BIGINT"})
_DOUBLE_RESULT = (exp.Div, exp.Avg, exp.Median, exp.PercentileCont, exp.StddevSamp, exp.Ln)
_WHOLE_RESULT = (exp.Floor, exp.Ceil, exp.Count, exp.Predicate, exp.RowNumber, exp.Rank, exp.DenseRank)


def violations(sql: str, *, doubles: frozenset[str] = frozenset(), ordered: bool = True) -> list[str]:
    """What is wrong with a statement, one line each; empty when nothing is.

    `doubles` are the columns of tables and views that are double. With `ordered` the rows must be sorted at the top.
    """
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    found = [] if isinstance(tree, exp.Select) else [f"top level is {_name(tree)}, expected one SELECT"]
    if ordered and not tree.args.get("order"):
        found.append("no ORDER BY at the top level")
    doubles = doubles | _double_aliases(tree, doubles)
    for node in tree.walk():
        for kind, rule in _RULES:
            if isinstance(node, kind):
                found += [f"{problem}: {_text(node)}" for problem in rule(node, doubles)]
    return found


def _name(node: exp.Expression) -> str:
    return type(node).__name__


def _text(node: exp.Expression) -> str:
    text = " ".join(node.sql(dialect="duckdb", comments=False).split())
    return text if len(text) < 80 else text[:77] + "..."


def _join(node: exp.Join, _: frozenset[str]) -> Iterator[str]:
    if node.method == "NATURAL" or not (node.args.get("on") or node.args.get("using")):
        yield "join does not say on what"


def _division(node: exp.Div, _: frozenset[str]) -> Iterator[str]:
    divisor = node.expression.unnest()
    guarded = isinstance(divisor, exp.Nullif) and _is_zero(divisor.expression)
    literal = isinstance(divisor, exp.Literal) and divisor.is_number and not _is_zero(divisor)
    if not guarded and not literal:
        yield "divisor is neither NULLIF(..., 0) nor a literal that is not 0"


def _logarithm(node: exp.Ln, _: frozenset[str]) -> Iterator[str]:
    if not (isinstance(node.this, exp.Nullif) and _is_zero(node.this.expression)):
        yield "LN without NULLIF(..., 0)"


def _literal(node: exp.Literal, _: frozenset[str]) -> Iterator[str]:
    if node.is_number and "." in node.name and "e" not in node.name.lower():
        yield "a number with a point is a decimal, write it as 3.0e0"


def _cast(node: exp.Cast, doubles: frozenset[str]) -> Iterator[str]:
    if node.to.this.name in _INTEGERS and _is_double(node.this, doubles):
        yield "double to integer without FLOOR or CEIL"


_RULES: tuple[tuple[type[exp.Expression], Callable[..., Iterator[str]]], ...] = (
    (exp.Join, _join),
    (exp.Div, _division),
    (exp.Ln, _logarithm),
    (exp.Literal, _literal),
    (exp.Cast, _cast),
)


def _is_zero(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) and node.is_number and float(node.name) == 0


def _double_aliases(tree: exp.Expression, doubles: frozenset[str]) -> frozenset[str]:
    """Names given to expressions that are double, also by way of other names."""
    names: frozenset[str] = frozenset()
    while True:
        more = frozenset(item.alias for item in tree.find_all(exp.Alias) if _is_double(item.this, doubles | names))
        if more <= names:
            return names
        names |= more


def _is_double(node: exp.Expression, doubles: frozenset[str]) -> bool:
    if isinstance(node, _DOUBLE_RESULT + _WHOLE_RESULT):
        return isinstance(node, _DOUBLE_RESULT)
    if isinstance(node, exp.Literal):
        return bool(node.is_number and not node.name.isdigit())
    if isinstance(node, exp.Column | exp.Placeholder):
        return node.name in doubles
    if isinstance(node, exp.Cast):
        return bool(node.to.this.name == "DOUBLE")
    return any(_is_double(part, doubles) for part in _value_parts(node))


def _value_parts(node: exp.Expression) -> list[exp.Expression]:
    """The parts that the value of an expression is made of, without conditions and window frames."""
    if isinstance(node, exp.Window | exp.Filter | exp.WithinGroup):
        return [node.this]
    if isinstance(node, exp.If):
        return [part for part in (node.args.get("true"), node.args.get("false")) if part is not None]
    return list(node.iter_expressions())
