"""Operator tables as pandas DataFrames: `run.ops`, and its groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from pipeprof.report.ops.answer import answer
from pipeprof.report.ops.question import Question
from pipeprof.report.ops.show import arrow

if TYPE_CHECKING:
    from pipeprof.record.run import Run

_FIRST = ("rep", "rank", "position", "name", "count", "self_ns", "total_ns")  # also of a table without rows


class OpsFrame(pd.DataFrame):
    """Operators by instance. It can also be asked for groups of executions; what is made from it is a DataFrame."""

    _run: Run

    @classmethod
    def of(cls, rows: pd.DataFrame, run: Run) -> OpsFrame:
        """The rows of a run."""
        frame: OpsFrame = cls(rows)
        object.__setattr__(frame, "_run", run)  # pandas would warn of a new column
        return frame

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def key_averages(
        self,
        group_by: str | None = None,
        *,
        sort_by: str | None = None,
        row_limit: int | None = None,
        stack_depth: int = 5,
        include_python_functions: bool | None = None,
    ) -> pd.DataFrame:
        """Executions summed up by `name`, `shape`, `stack` (or `stack 3`: three frames), `type`, `scope` or `phase`.

        Without `group_by` a recorded training is grouped by type, a trace by name. `sort_by` is any column, ours or
        torch's name for it, largest first (`+` in front: smallest first); `row_limit` counts rows of each rank, all of
        them for None and -1. `include_python_functions` is torch's, and None does what the torch that wrote the trace
        does. Times in ns, memory in bytes; null is not known. Raises UsageError for what cannot be asked.
        """
        top = 0 if row_limit is None else max(row_limit, 0)
        asked = Question(
            top=top, order_by=sort_by, stack_depth=stack_depth, groups=True, python_functions=include_python_functions
        )
        if group_by is not None:
            asked = asked.grouped(group_by)
        frame: pd.DataFrame = arrow(answer(self._run, asked)).to_pandas()
        others = [name for name in frame.columns if name not in (*_FIRST, "key")]  # the key is the name
        ordered: pd.DataFrame = frame.reindex(columns=[*_FIRST, *others])
        return ordered
