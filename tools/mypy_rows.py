"""A plugin of mypy: the columns of the row types in `pipeprof/query/rows.py`, from the headers of the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy.nodes import ARG_NAMED, GDEF, Argument, StrExpr, SymbolTableNode, TypeInfo, Var
from mypy.plugin import Plugin
from mypy.plugins.common import add_attribute_to_class, add_method_to_class
from mypy.types import Instance, NoneType, UnionType

from pipeprof.errors import QueryError
from pipeprof.query import catalog
from pipeprof.query.header import PYTHON_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy.plugin import DynamicClassDefContext, ReportConfigContext
    from mypy.types import Type

MODULE = "pipeprof.query.rows"
MAKES = f"{MODULE}.row"


class RowTypes(Plugin):
    """Makes `LoopCall = row("LoopCall", "diagnose/loop_call")` a class with the columns of that query."""

    def get_dynamic_class_hook(self, fullname: str) -> Callable[[DynamicClassDefContext], None] | None:
        """What mypy asks of each assignment of a call."""
        return _define if fullname == MAKES else None

    def report_config_data(self, ctx: ReportConfigContext) -> object:
        """What the module is checked anew for, beside its own text: a header that has changed."""
        if ctx.id != MODULE:
            return None
        return [
            [query.name, *([item.name, item.type, item.nullable] for item in query.gives)]
            for query in catalog.all_queries()
        ]


def _define(context: DynamicClassDefContext) -> None:
    arguments, api = context.call.args, context.api
    texts = [one.value for one in arguments if isinstance(one, StrExpr)]
    if len(texts) != len(arguments) or context.call.arg_names[:3].count(None) != 2:
        api.fail("expected a name and a query, as texts", context.call)
        return
    name, query = texts[:2]
    base = api.named_type_or_none(f"{MODULE}.Row")
    if base is None:
        api.defer()
        return
    info: TypeInfo = api.basic_new_typeinfo(context.name, base, context.call.line)
    try:
        columns = catalog.find(query).gives
    except QueryError as error:
        api.fail(f"{error.message}; {error.hint}", context.call)
        return
    if name != context.name:
        api.fail(f'expected the name "{context.name}", found "{name}"', context.call)

    def type_of(kind: str, *, nullable: bool) -> Type:
        plain: Instance = api.named_type(f"builtins.{PYTHON_TYPES[kind].__name__}")
        return UnionType.make_union([plain, NoneType()]) if nullable else plain

    types = {field.name: type_of(field.type, nullable=field.nullable) for field in columns}
    judged = zip(context.call.arg_names[2:], texts[2:], strict=True)
    types |= {column: type_of(kind, nullable=True) for column, kind in judged if column is not None}
    for column, kind in types.items():
        add_attribute_to_class(api, info.defn, column, kind).is_property = True  # mypy refuses to set those
    given = [Argument(Var(column, kind), kind, None, ARG_NAMED) for column, kind in types.items()]
    add_method_to_class(api, info.defn, "__init__", given, NoneType())
    api.add_symbol_table_node(context.name, SymbolTableNode(GDEF, info))


def plugin(_version: str) -> type[Plugin]:
    """What mypy calls."""
    return RowTypes
