"""What is asked of an operator table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from pipeprof.errors import BAD_PATTERN, UsageError, did_you_mean

Row = dict[str, Any]

# Columns of the table of single operators; `place` stands for an order that Python knows and SQL does not.
SINGLE = (
    "self_ns", "total_ns", "wait_ns", "exec_ns", "share", "cumulative_ns", "name", "type", "opr_id", "op_id", "count",
    "computation", "flops", "memory", "bandwidth", "in_shapes", "out_shapes", "device",
)  # fmt: skip
PLACED = ("name", "type", "device", "opr_id", "in_shapes", "out_shapes")

_ALIASES = {
    "time": "self_ns", "self": "self_ns", "self_time": "self_ns", "device_self_time": "self_ns",
    "host_self_time": "self_ns", "ratio": "share", "percent": "share", "total": "total_ns", "total_time": "total_ns",
    "wait": "wait_ns", "exec": "exec_ns", "cumulative": "cumulative_ns", "cum_time": "cumulative_ns",
    "cumulative_share": "cumulative_ns", "operator": "name", "operator_info": "name", "info": "name",
    "opr_name": "name", "opr_type": "type", "id": "opr_id", "opr_count": "count", "calls": "count",
    "number_of_calls": "count", "flo": "computation", "mflops": "flops", "bytes": "memory", "shapes": "in_shapes",
    "input_shapes": "in_shapes", "mean": "mean_ns", "avg": "mean_ns", "max": "max_ns", "min": "min_ns",
    "cpu_time": "mean_ns", "cpu_time_total": "total_ns", "self_cpu_time_total": "self_ns", "cpu_total": "total_ns",
    "self_cpu": "self_ns", "self_cpu_time": "self_ns", "device_time_total": "device_total_ns",
    "self_device_time_total": "device_self_ns", "device_total": "device_total_ns", "self_device": "device_self_ns",
    "device_time": "device_mean_ns", "cpu_memory_usage": "memory_bytes",
    "self_cpu_memory_usage": "self_memory_bytes", "self_memory": "self_memory_bytes",
    "device_memory_usage": "device_memory_bytes", "self_device_memory_usage": "self_device_memory_bytes",
    "key": "name", "flops": "computation", "total_flops": "computation", "total_kflops": "computation",
    "total_mflops": "computation", "total_gflops": "computation", "cpu_time_avg": "mean_ns",
    "device_time_avg": "device_mean_ns", "cpu_mem": "memory_bytes", "self_cpu_mem": "self_memory_bytes",
    "device_mem": "device_memory_bytes", "self_device_mem": "self_device_memory_bytes", "of_calls": "count",
    "source_location": "stack",
}  # fmt: skip


_ACCELERATOR = re.compile(r"(?<![a-z])(?:cuda|xpu|npu|hpu|mtia|hip|privateuse1)(?![a-z0-9])")
_NO_LETTER = re.compile(r"[^a-z0-9_+]+")


_TORCH = re.compile(r"(?:^|_)(?:cpu|device)_(?:time|total|mem|memory)(?:_|$)|^self_(?:cpu|device)(?:_|$)")


class Order(NamedTuple):
    """A column and a direction."""

    column: str
    ascending: bool


def parse_order(text: str, columns: Sequence[str], elsewhere: Sequence[str] = ()) -> Order:
    """`COL` is descending, `+COL` ascending; names are taken in any case, with blanks, `-`, `_`, `#` or `%`.

    Raises UsageError, listing the columns, for an unknown one. `elsewhere`: those that another table of the same
    command line is ordered by, which the list has, too.
    """
    ascending, wanted = text.startswith("+"), _word(text)
    for name in (wanted, _ALIASES.get(wanted, ""), f"{wanted}_ns", f"{wanted}_bytes"):
        if name in columns:
            return Order(name, ascending)
    names = dict.fromkeys([*columns, *elsewhere])
    raise UsageError(f"unknown column `{text}` to order by", did_you_mean(wanted, names))


def is_torchs(text: str) -> bool:
    """Whether a column is called as in torch's own table (`self_cuda_time_total`, `CPU Mem`)."""
    return _TORCH.search(_word(text)) is not None


def _word(text: str) -> str:
    wanted = text.removeprefix("+").lower().replace(" ", "_").replace("-", "_")
    return _ACCELERATOR.sub("device", _NO_LETTER.sub("", wanted).strip("_"))


GROUPS = ("name", "shape", "stack", "type", "scope", "phase")
KEYS = {"end": "total", "total": "total", "kern": "wait", "wait": "wait", "exec": "exec"}
PARTS = ("summary", "device", "host")
_FRAMES = re.compile("0*[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Question:
    """Options of `pipeprof ops`. Times are in seconds; `top` 0 is all, a negative one all but that many last rows.

    `groups` asks for groups of executions also where single operators are usual, by what is usual then.
    `step` takes the executions of one training step alone, `rep` those of one repetition. `python_functions` None
    counts them where the torch that wrote the trace does. `torch` prints groups in torch's own columns and cells.
    """

    top: int | None = None
    opr_name: str | None = None
    search: str | None = None
    types: tuple[str, ...] = ()
    exclude_types: tuple[str, ...] = ()
    input_dtype: str | None = None
    order_by: str | None = None
    aggregate_by: Literal["type"] | None = None
    aggregate: str | None = None
    top_end_key: str = "end"
    min_time: float | None = None
    max_time: float | None = None
    copy_time: bool = False
    show_host: bool = False
    print_only: str | None = None
    dump_only_opr: bool = False
    group_by: str | None = None
    stack_depth: int = 5
    groups: bool = False
    python_functions: bool | None = None
    step: int | None = None
    rep: int | None = None
    torch: bool = False

    def grouped(self, text: str) -> Question:
        """The same question for groups by one of GROUPS; `stack N` also says how many frames make a stack.

        Raises UsageError for another text.
        """
        name, _, depth = text.strip().lower().partition(" ")
        is_group = name in GROUPS and (not depth or (name == "stack" and bool(_FRAMES.fullmatch(depth.strip()))))
        if not is_group:
            frames = "only `stack` takes a number, of 1 or more frames: --group-by stack 3"
            raise UsageError(f"unknown --group-by `{text}`", frames if name in GROUPS else did_you_mean(name, GROUPS))
        return replace(self, group_by=name, stack_depth=int(depth) if depth else self.stack_depth)

    def check(self) -> None:
        """Raise UsageError for options that do not go together or cannot be understood."""
        if self.aggregate_by and not self.aggregate:
            raise UsageError(
                "--aggregate-by says what is added up, but not how", "add --aggregate sum (or max, min, mean)"
            )
        if self.grouping and (self.aggregate or self.one_by_one):
            raise UsageError(
                f"{self.grouping} is about groups of executions: it cannot be combined with options for operators",
                f"leave one of them out: {self.grouping}, or --aggregate and its companions",
            )
        if self.rep is not None and self.single:
            raise UsageError("--rep is for groups of executions", "leave it out, or add --group-by name")
        for option, seconds in (("--min-time", self.min_time), ("--max-time", self.max_time)):
            if seconds is not None and math.isnan(seconds):
                raise UsageError(f"{option} is no number of seconds: `{seconds}`", f"such as {option} 0.001")
        self.pattern()

    def pattern(self) -> re.Pattern[str] | None:
        """The compiled `opr_name`. Raises UsageError when it is no regular expression."""
        if self.opr_name is None:
            return None
        try:
            return re.compile(self.opr_name)
        except BAD_PATTERN as error:
            raise UsageError(
                f"not a regular expression: `{self.opr_name}`: {error}",
                "it is matched from the start of the name; write \\[ for a bracket and .* for anything",
            ) from error

    def matcher(self) -> Callable[[str | None, str | None], bool]:
        """Whether an operator of this name and type is meant, by `opr_name`, `search`, `types` and `exclude_types`.

        Raises UsageError when `opr_name` is no regular expression.
        """
        pattern, types, excluded = self.pattern(), frozenset(self.types), frozenset(self.exclude_types)
        text = self.search.casefold() if self.search else ""

        def is_meant(name: str | None, kind: str | None) -> bool:
            return (
                (not types or kind in types)
                and kind not in excluded
                and (pattern is None or pattern.match(name or "") is not None)
                and (not text or any(text in (part or "").casefold() for part in (name, kind)))
            )

        return is_meant

    @property
    def by_name(self) -> bool:
        """Whether operators are chosen by something that only a name has."""
        return bool(self.opr_name or self.search)

    @property
    def by_type(self) -> bool:
        """Whether operators are chosen by their type."""
        return bool(self.types or self.exclude_types)

    @property
    def grouping(self) -> str | None:
        """The option that asks for groups of executions, if one was given."""
        if self.group_by:
            return "--group-by"
        if self.python_functions is None:
            return None
        return "--python-functions" if self.python_functions else "--no-python-functions"

    @property
    def one_by_one(self) -> bool:
        """Whether an option was given that only the table of single operators has."""
        return bool(
            self.input_dtype or self.min_time is not None or self.max_time is not None or self.copy_time
            or self.show_host or self.print_only or self.dump_only_opr or self.top_end_key != "end"
        )  # fmt: skip

    @property
    def single(self) -> bool:
        """Whether the options ask for the table of single operators, also where groups are the default."""
        return not (self.grouping or self.groups) and bool(
            self.one_by_one or self.aggregate or self.by_name or self.by_type
        )

    def shown(self, count: int) -> int:
        """How many of `count` rows are printed."""
        top = self.top or 0
        if top < 0:
            return max(count + top, 0)
        return min(top, count) if top else count


SUMS = (
    "count", "total_ns", "self_ns", "device_self_ns", "device_total_ns", "self_memory_bytes", "memory_bytes",
    "self_device_memory_bytes", "device_memory_bytes", "computation", "computation_count",
)  # fmt: skip
SHARES = ("mean_ns", "device_mean_ns", "share", "total_share", "device_share", "cumulative_ns", "cumulative_share")
NOT_KEYS = {"rep", "position", "max_ns", "steps", "op_id", "flops", "bytes", "phase", "site", *SUMS, *SHARES}


def of_repetition(rows: list[Row], rep: int | None) -> tuple[list[Row], list[str]]:
    """Rows of one repetition, of all added up where `rep` is None, and a note that says which; ranks stay apart.

    Means and shares of added rows are left to who completes them. Raises UsageError for a repetition without rows.
    """
    reps = sorted({row["rep"] for row in rows})
    if rep is not None:
        if rep not in reps:
            there = ", ".join(map(str, reps)) or "none"
            raise UsageError(f"no operator of repetition {rep} was recorded", f"repetitions with operators: {there}")
        return [row for row in rows if row["rep"] == rep], []
    if len(reps) < 2:
        return rows, []
    return _added(rows), [f"of {len(reps)} repetitions together; --rep N shows one"]


def _added(rows: Sequence[Row]) -> list[Row]:
    together: dict[Hashable, list[Row]] = {}
    for row in rows:
        key = tuple((name, value) for name, value in row.items() if name not in NOT_KEYS)
        together.setdefault(key, []).append(row)
    return [summed(own) for own in together.values()]


def summed(rows: Sequence[Row]) -> Row:
    """One row of several: sums, the longest execution, and unknown where it differs; means and shares are open."""
    first = dict(rows[0])
    for name in SUMS:
        known = [row[name] for row in rows if row.get(name) is not None]
        if name in first:
            first[name] = sum(known) if known else None
    for name in SHARES:
        if name in first:
            first[name] = None
    if "max_ns" in first:
        first["max_ns"] = max((row["max_ns"] for row in rows if row["max_ns"] is not None), default=None)
    if "steps" in first:
        first["steps"] = sum(row["steps"] or 0 for row in rows)
    if "phase" in first and len({row["phase"] for row in rows}) > 1:
        first["phase"] = "mixed"
    return first | {"rep": min(row["rep"] for row in rows)}
