"""The portable subset: what a query may be made of, so that the same file runs on a cluster engine.

An allow-list on sqlglot's syntax tree, with rules for the constructs that are allowed in one form only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAMES = """
Select Union From Join Where Group Having Order Ordered Limit With CTE Subquery Table TableAlias Alias Qualify
Identifier Column Star Literal Null Boolean Placeholder Paren Add Sub Mul Div Neg And Or Not EQ NEQ GT GTE LT LTE
Is In Between Case If Coalesce Nullif Greatest Least Abs Floor Ceil Ln Cast DataType DPipe Lower Upper
Count Sum Avg Min Max Median PercentileCont WithinGroup StddevSamp LogicalAnd LogicalOr Distinct
Filter Window WindowSpec RowNumber Rank DenseRank Lag Lead
"""
ALLOWED = frozenset(_NAMES.split())

_INTEGERS = frozenset({"INT", "BIGINT"})
_DOUBLE_RESULT = (exp.Div, exp.Avg, exp.Median, exp.PercentileCont, exp.StddevSamp, exp.Ln)
_WHOLE_RESULT = (exp.Floor, exp.Ceil, exp.Count, exp.Predicate, exp.RowNumber, exp.Rank, exp.DenseRank)


def violations(sql: str, *, doubles: frozenset[str] = frozenset(), ordered: bool = True) -> list[str]:
    """What of a statement is outside the subset, one line each; empty when nothing is.

    `doubles` are the columns of tables and views that are double. With `ordered` the rows must be sorted at the top.
    """
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    found = [] if isinstance(tree, exp.Select) else [f"top level is {_name(tree)}, expected one SELECT"]
    if ordered and not tree.args.get("order"):
        found.append("no ORDER BY at the top level")
    doubles = doubles | _double_aliases(tree, doubles)
    for node in tree.walk():
        if _name(node) not in ALLOWED:
            found.append(f"{_name(node)} is not in the subset: {_text(node)}")
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
    if node.method or node.kind not in ("", "INNER") or node.side not in ("", "LEFT"):
        yield f"join is {' '.join(filter(None, [node.method, node.side, node.kind]))}, expected inner or left"
    elif not node.args.get("on"):
        yield "join has no ON condition"


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
        yield "float literal is a decimal in some engines, write it as 3.0e0"


def _cast(node: exp.Cast, doubles: frozenset[str]) -> Iterator[str]:
    kind = node.to.this.name
    if kind not in _INTEGERS | {"DOUBLE", "BOOLEAN", "VARCHAR", "TEXT"}:
        yield f"type {kind} is not in the subset"
    if kind in _INTEGERS and _is_double(node.this, doubles):
        yield "double to integer without FLOOR or CEIL"


def _percentile(node: exp.PercentileCont, _: frozenset[str]) -> Iterator[str]:
    group = node.parent
    if not isinstance(group, exp.WithinGroup):
        yield "write PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)"
    elif any(ordered.args.get("desc") for ordered in group.find_all(exp.Ordered)):
        yield "PERCENTILE_CONT must be ascending"


def _window(node: exp.Window, _: frozenset[str]) -> Iterator[str]:
    if isinstance(node.this, exp.Filter):
        yield "FILTER together with OVER, write CASE"


def _star(node: exp.Star, _: frozenset[str]) -> Iterator[str]:
    if any(node.args.get(key) for key in ("except_", "except", "replace", "rename")):
        yield "star with EXCLUDE, REPLACE or RENAME"


def _all(node: exp.Group, _: frozenset[str]) -> Iterator[str]:
    if node.args.get("all") or any(node.args.get(key) for key in ("cube", "rollup", "grouping_sets")):
        yield "GROUP BY ALL, CUBE, ROLLUP or GROUPING SETS"


def _distinct(node: exp.Distinct, _: frozenset[str]) -> Iterator[str]:
    if node.args.get("on"):
        yield "DISTINCT ON"


def _union(node: exp.Union, _: frozenset[str]) -> Iterator[str]:
    if node.args.get("by_name"):
        yield "UNION BY NAME"


_RULES: tuple[tuple[type[exp.Expression], Callable[..., Iterator[str]]], ...] = (
    (exp.Join, _join),
    (exp.Div, _division),
    (exp.Ln, _logarithm),
    (exp.Literal, _literal),
    (exp.Cast, _cast),
    (exp.PercentileCont, _percentile),
    (exp.Window, _window),
    (exp.Star, _star),
    (exp.Group, _all),
    (exp.Distinct, _distinct),
    (exp.Union, _union),
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
