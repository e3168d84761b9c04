"""Rows of queries for tests of what judges them."""

from __future__ import annotations

from pipeprof.query.rows import typed


def rows(kind, given):
    """These dicts as rows of a query; a column that one leaves out is None."""
    unknown = dict.fromkeys(kind.__struct_fields__)
    return typed(kind, [unknown | one for one in given])
