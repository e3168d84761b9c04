"""The operator table of one run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from rich.console import Console

from pipeprof.query.engine import Engine
from pipeprof.report.rows import show_rows
from pipeprof.report.sections import Block
from pipeprof.report.terminal import PLAIN_WIDTH, print_block
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from pipeprof.record.run import Run

OPS_VERSION = 1
ALL = 1 << 40
RIGHT = ("count", "total", "self", "mean", "max", "share", "cumulative")


def show(run: Run, *, group_by: str, top: int, form: str) -> None:
    """Print the operators of a run by type or by name, most self time first, per repetition and rank."""
    with Engine.open(run) as engine:
        data = engine.ask("op/by_type") if group_by == "type" else engine.ask("op/by_instance", top=ALL)
    kept = [row for row in data.to_pylist() if not top or row["position"] <= top]
    if form == "csv":
        show_rows(pa.Table.from_pylist(kept, schema=data.schema), "csv")
    elif form == "json":
        sys.stdout.write(json_text(kept, data.to_pylist()) + "\n")
    else:
        _table(run, kept, data.num_rows, group_by)


def json_text(rows: list[dict[str, Any]], everything: list[dict[str, Any]]) -> str:
    """`{schema_version, total, rows}`; total is over all operators, also those that are not listed."""
    total = {
        "count": sum(row["count"] for row in everything),
        "self_ns": sum(row["self_ns"] or 0 for row in everything),
        "total_ns": sum(row["total_ns"] or 0 for row in everything),
    }
    named = [{**row, "name": row.get("name") or row["type"]} for row in rows]
    document = {"schema_version": OPS_VERSION, "total": total, "rows": named}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _table(run: Run, rows: list[dict[str, Any]], everything: int, group_by: str) -> None:
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)
    if not rows:
        why = next((item.why for item in run.manifest.not_measured if item.what == "op"), "no operator was recorded")
        console.print(f"no operators: {why}", markup=False)
        return
    several = len({(row["rep"], row["rank"]) for row in rows}) > 1
    head = [*(("rep", "rank") if several else ()), group_by, "phase", *RIGHT]
    cells = [
        [
            *((str(row["rep"]), str(row["rank"])) if several else ()),
            row["type" if group_by == "type" else "name"] or "-",
            row["phase"],
            str(row["count"]),
            *(format_ns(row[f"{name}_ns"]) for name in ("total", "self", "mean", "max")),
            format_ratio(row["share"]),
            format_ratio(row["cumulative_share"]),
        ]
        for row in rows
    ]
    print_block(
        console,
        Block(head, cells, frozenset(index for index, title in enumerate(head) if title in (*RIGHT, "rep", "rank"))),
    )
    hidden = everything - len(rows)
    if hidden:
        console.print(f"{hidden} more: --top 0 shows all")
