"""Groups of executions: key_averages' table.

By type or name of a recorded training from op/by_type and op/by_instance, which count training steps; of other sources,
by shape, stack, scope or phase, and in the order of their memory, from op/key_averages, which counts everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.report.ops.content import Content, Part, names, place_of, with_totals
from pipeprof.report.ops.question import SINGLE, Order, of_repetition, parse_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.query.engine import Engine
    from pipeprof.record.run import Run
    from pipeprof.report.ops.question import Question

ALL = 1 << 40
TOP, TOP_SINGLE = 20, 3  # rows, unless the user says how many; the second is profile_analyze's
MEMORY = ("memory_bytes", "self_memory_bytes", "device_memory_bytes", "self_device_memory_bytes")
OWN = ("collect", "profile")  # sources of trainings that pipeprof recorded
NO_STACKS = {
    False: "no call stack of an operator was recorded: torch.profiler has them with_stack=True",
    True: "no call stack of an operator was recorded: `--ops window`, which is the default, a schedule with a warmup, "
    "and pipeprof.profile(with_stack=True) record them",
}
WORK = ("computation", "flops", "bandwidth")  # of single operators
PROFILE = "profile"  # option of the manifest of an imported static-graph profile
COLUMNS = (
    "self_ns", "total_ns", "mean_ns", "max_ns", "count", "name", "type", "phase", "share", "total_share",
    "cumulative_ns", "device_self_ns", "device_total_ns", "device_mean_ns", "device_share", *MEMORY, "in_shapes",
    "stack", "category", "computation",
)  # fmt: skip
_NESTED = ("diopi", "dipu_")
_SHARES = (
    ("share", "self_ns", "all_ns"),
    ("total_share", "total_ns", "all_ns"),
    ("device_share", "device_self_ns", "all_device_ns"),
)
_MEANS = (("mean_ns", "total_ns"), ("device_mean_ns", "device_total_ns"))


def is_single(run: Run, question: Question) -> bool:
    """Whether a question is answered operator by operator: its options or its order say so, or the run is a profile."""
    if question.single or question.grouping or question.groups:
        return question.single
    return PROFILE in run.manifest.options or (run.manifest.source in OWN and _is_by_work(question))


def of_single(run: Run, question: Question) -> tuple[str, ...]:
    """The columns by which the question would be one of single operators."""
    return WORK if run.manifest.source in OWN and not (question.grouping or question.groups) else ()


def _is_by_work(question: Question) -> bool:
    try:
        return question.order_by is not None and parse_order(question.order_by, SINGLE).column in WORK
    except UsageError:
        return False


def usual_top(run: Run, question: Question) -> int:
    """How many rows are printed when the user does not say."""
    return TOP_SINGLE if is_single(run, question) and PROFILE in run.manifest.options else TOP


def build(engine: Engine, question: Question, *, training: bool, elsewhere: Sequence[str] = ()) -> Content:
    """The table of groups; Python functions count where the question does not say `False`.

    `training`: the run was recorded from a training, not imported from a profiler's trace. `elsewhere`: columns by
    which another table would have been ordered, for the hint.

    Raises UsageError for an unknown column, and for --type and --exclude-type with groups that have no type.
    """
    group = question.group_by or ("type" if training else "name")
    order = parse_order(question.order_by, COLUMNS, elsewhere) if question.order_by else None
    rows = _rows(engine, question, group, training=training)
    if not question.group_by and group == "type" and not any(row["type"] for row in rows):
        rows = _rows(engine, question, "name", training=training)  # the source names operators, and no types
    if (
        training
        and order
        and all(row.get(order.column) is None for row in rows)
        and order.column in (*MEMORY, "computation")
    ):
        rows = _key_rows(engine, question, group)
    rows, notes = of_repetition(rows, question.rep)
    total = _total(rows)
    _complete(rows)
    filtered = _filtered(rows, question, group)
    ranks = sorted({(row["rep"], row["rank"]) for row in filtered})
    shown: list[dict[str, Any]] = []
    for key in sorted({place_of(row) for row in filtered}):
        here = _ordered([row for row in filtered if place_of(row) == key], order or _usual(rows))
        _count_up(here)
        shown += here[: question.shown(len(here))]
    part = Part("", names(shown), len(filtered), several=len(ranks) > 1)
    lacks = group == "stack" and not any(row["stack"] for row in rows)
    return Content("groups", [part], total=total, notes=notes + ([NO_STACKS[training]] if lacks else []))


def _rows(engine: Engine, question: Question, group: str, *, training: bool) -> list[dict[str, Any]]:
    if not training:
        return _key_rows(engine, question, group)
    rows = _training_rows(engine, group) if group in ("type", "name") else _key_rows(engine, question, group)
    return rows if question.step is not None else with_totals(engine, group, rows)


def _training_rows(engine: Engine, group: str) -> list[dict[str, Any]]:
    if group == "type":
        return engine.rows("op/by_type")
    return engine.rows("op/by_instance", top=ALL)


def _key_rows(engine: Engine, question: Question, group: str) -> list[dict[str, Any]]:
    python_functions = question.python_functions is not False
    rows = engine.rows(
        "op/key_averages", group_by=group, stack_depth=question.stack_depth, python_functions=python_functions
    )
    sides = any(row["on_device"] for row in rows)
    for row in rows:
        row["name"] = row["key"]
        if group == "type":
            row["type"] = row["key"]
        if sides:
            row["side"] = "device" if row["on_device"] else "host"
    return rows


def _total(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Over all rows, also those that are not shown; device time over rows of devices when there are any."""
    total = {
        "count": sum(row["count"] for row in rows),
        "self_ns": sum(row["self_ns"] or 0 for row in rows),
        "total_ns": sum(row["total_ns"] or 0 for row in rows),
    }
    if any(row.get("device_self_ns") is not None for row in rows):
        total["device_self_ns"] = _device_time(rows)
    return total


def _device_time(rows: Sequence[dict[str, Any]]) -> int:
    """Time of all kernels; where they contain each other (torch_dipu), of those that operators launched."""
    on_device = [row for row in rows if row.get("on_device")] or rows
    if any((row.get("key") or "").startswith(_NESTED) for row in on_device):
        on_device = [row for row in rows if not row.get("on_device")]
    return sum(row.get("device_self_ns") or 0 for row in on_device)


def _complete(rows: Sequence[dict[str, Any]]) -> None:
    """Add means and shares where the query has none."""
    for key in {place_of(row) for row in rows}:
        here = [row for row in rows if place_of(row) == key]
        totals = {"all_ns": sum(row["self_ns"] or 0 for row in here), "all_device_ns": _device_time(here)}
        for row in here:
            for name, of in _MEANS:
                if row.get(name) is None and row.get(of) is not None and row["count"]:
                    row[name] = row[of] / row["count"]
            for name, of, total in _SHARES:
                if row.get(name) is None and row.get(of) is not None and totals[total]:
                    row[name] = row[of] / totals[total]


def _filtered(rows: list[dict[str, Any]], question: Question, group: str) -> list[dict[str, Any]]:
    if question.by_type and any("type" not in row for row in rows):
        option = "--type" if question.types else "--exclude-type"
        raise UsageError(f"groups by {group} have no type", f"leave out {option}, or use --group-by type")
    is_meant = question.matcher()
    return [row for row in rows if is_meant(row.get("name") or row.get("type"), row.get("type"))]


def _usual(rows: Sequence[dict[str, Any]]) -> Order:
    """Most own time first: on the device when anything ran there."""
    return Order("device_self_ns" if any(row.get("on_device") for row in rows) else "self_ns", ascending=False)


def _ordered(rows: list[dict[str, Any]], order: Order) -> list[dict[str, Any]]:
    """Sorted, unknown values last either way; equals stay in the query's order."""
    column = "self_ns" if order.column == "cumulative_ns" else order.column
    ascending = order.ascending is not (order.column == "cumulative_ns")
    measured = [row for row in rows if row.get(column) is not None]
    rest = [row for row in rows if row.get(column) is None]
    return sorted(measured, key=lambda row: row[column], reverse=not ascending) + rest


def _count_up(rows: Sequence[dict[str, Any]]) -> None:
    """Positions and running sums in the order of the rows."""
    running = 0
    for position, row in enumerate(rows, 1):
        running += row["self_ns"] or 0
        row["position"] = position
        row["cumulative_ns"] = running
        row["cumulative_share"] = (
            row["share"] * running / row["self_ns"] if row.get("share") and row["self_ns"] else None
        )
