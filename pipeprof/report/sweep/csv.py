"""The result of a sweep as CSV: one row per table, variant and stage; what is not known is empty."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from pipeprof.escape import csv_cell
from pipeprof.report.sweep.rows import COLUMNS, plain_rows

if TYPE_CHECKING:
    from collections.abc import Mapping


def text(content: Mapping[str, Any]) -> str:
    """Values in ns, bytes or 1/s as the column `unit` says; the columns are documented in docs/sweep.md."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in row.items()} for row in plain_rows(content))
    return buffer.getvalue()
