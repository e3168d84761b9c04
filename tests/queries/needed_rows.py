"""Which tables and views a query has no rows without, by its syntax tree: those of FROM and of inner joins."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable


def needed(sql: str) -> frozenset[str]:
    """Names without a row of which the statement gives none."""
    return _of(sqlglot.parse_one(sql, dialect="duckdb"), {})


def _of(node: exp.Expression, known: dict[str, frozenset[str]]) -> frozenset[str]:
    if node.args.get("pivots") or (not isinstance(node, exp.Select) and node.args.get("joins")):
        return frozenset()
    if isinstance(node, exp.Table):
        return frozenset() if isinstance(node.this, exp.Func) else known.get(node.name, frozenset({node.name}))
    if isinstance(node, exp.Subquery):
        return _of(node.this, known)
    for cte in node.args["with_"].expressions if node.args.get("with_") else ():
        known = known | {cte.alias: _of(cte.this, known)}
    if isinstance(node, exp.Union):
        return _of(node.this, known) & _of(node.expression, known)
    if not isinstance(node, exp.Select) or _is_one_row(node):
        return frozenset()
    return _of_sources(node, partial(_of, known=known))


def _of_sources(node: exp.Select, names: Callable[[exp.Expression], frozenset[str]]) -> frozenset[str]:
    found = names(node.args["from_"].this) if node.args.get("from_") else frozenset()
    for join in node.args.get("joins") or ():
        if not join.side and join.method in ("", "ASOF") and join.kind in ("", "INNER", "CROSS", "SEMI"):
            found |= names(join.this)
        elif join.side != "LEFT" and join.kind != "ANTI":
            return frozenset()
    return found


def _is_one_row(node: exp.Select) -> bool:
    """Whether there is a row of nothing: aggregates without a group."""
    group = node.args.get("group")
    if group is None:
        return bool(node.args.get("having")) or any(map(_aggregates, node.expressions))
    if group.find(exp.GroupingSets, exp.Rollup, exp.Cube):
        return True
    return bool(group.args.get("all")) and all(map(_aggregates, node.expressions))


def _aggregates(item: exp.Expression) -> bool:
    """Whether a value may be an aggregate; one over a window is none, and a function that sqlglot does not know may be."""
    inside = item.find_all(exp.AggFunc, exp.Anonymous)
    return any(not isinstance(one.parent, exp.Window) and one.find_ancestor(exp.Window) is None for one in inside)
