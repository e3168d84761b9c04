"""The Python API: a run's tables and answers as pandas DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.errors import RunError, did_you_mean, near_names
from pipeprof.query.engine import Engine
from pipeprof.query.odd_times import refuse
from pipeprof.read.foreign import import_hint
from pipeprof.read.spool.finish import open_run
from pipeprof.record.schema import BY_NAME

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType

    import pandas as pd
    from typing_extensions import Self

    from pipeprof.record.measures import Measures
    from pipeprof.record.run import Manifest, Run
    from pipeprof.report.charts.plots import Plots
    from pipeprof.report.notebook import Comparison
    from pipeprof.report.ops.frame import OpsFrame
    from pipeprof.verdict.gate.policy import Policy


class OpenRun:
    """An open run: its tables and answers.

    Every table of the record is an attribute (`run.step`, `run.queue`, ...) and a DataFrame with `rep` and `rank`;
    `run.ops` are the operators' totals by instance, `run.ops.key_averages(...)` those of groups of executions. Numbers
    are in the units of the column names.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._engine = Engine.open(run)

    @property
    def manifest(self) -> Manifest:
        """State, fingerprint, warnings, what was not measured."""
        return self._run.manifest

    @property
    def ops(self) -> OpsFrame:
        """Operators by instance, most self time first (query op/by_instance); `ops.key_averages(...)` are groups."""
        from pipeprof.report.ops.frame import OpsFrame

        return OpsFrame.of(self.ask("op/by_instance", top=1 << 40), self._run)

    @property
    def plot(self) -> Plots:
        """The charts of the run's page as Altair charts: `run.plot.steps()`; needs the extra `charts`."""
        from pipeprof.report.charts.plots import Plots

        return Plots(self._run)

    def table(self, name: str) -> pd.DataFrame:
        """All rows of a table or view; no rows when the run does not have it. Raises QueryError for an unknown name."""
        return self.sql(f'SELECT * FROM "{name}" ORDER BY ALL')  # noqa: S608 - one quoted name, in a read-only engine

    def ask(self, query: str, **params: Any) -> pd.DataFrame:
        """The rows of a stored query, such as `ask("step/slowest", top=5)`."""
        return self._frame(self._engine.ask(query, **params))

    def sql(self, text: str) -> pd.DataFrame:
        """The rows of any read-only SQL over the tables and views."""
        return self._frame(self._engine.sql(text))

    def report(self, *, top: int = 10) -> dict[str, Any]:
        """What `pipeprof report --format json` prints, as a dict."""
        from pipeprof.report.build import build

        return build(self._run, top=top)

    def close(self) -> None:
        """Free the memory."""
        self._engine.close()

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name in BY_NAME:
            return self.table(name)
        near = [] if name.startswith("_") else near_names(name, dir(self))
        hint = f": {did_you_mean(name, near)}" if near else ""
        raise AttributeError(f"a run has no table or attribute `{name}`{hint}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *BY_NAME]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        from pipeprof.report.notebook import run_text

        return run_text(self._run)

    def _repr_html_(self) -> str:
        from pipeprof.report.notebook import run_html

        return run_html(self._run)

    @staticmethod
    def _frame(data: Any) -> pd.DataFrame:
        refuse(data)
        frame: pd.DataFrame = data.to_pandas()
        return frame


def compare(
    base: str | os.PathLike[str] | Measures,
    new: str | os.PathLike[str] | Measures,
    policy: Policy | Mapping[str, Any] | None = None,
) -> Comparison:
    """What `pipeprof compare --format json` prints, as a dict: a verdict per metric, and what explains it.

    At a prompt and in a notebook it shows itself as a table.

    Each side is a run, a baseline, a JSON file or a folder of JSON files of pytest-benchmark, or Measures. `policy` may
    be a table, as in a policy file. Raises RunError when a side cannot be read, UsageError for an invalid policy.
    """
    from pipeprof.experiment.compare import compare_sides
    from pipeprof.query.side import open_base, open_measures
    from pipeprof.record.measures import Measures
    from pipeprof.report.compare.limits import with_limits
    from pipeprof.report.notebook import Comparison

    newer = new if isinstance(new, Measures) else open_measures(str(new))
    older = base if isinstance(base, Measures) else open_base(str(base), newer)
    content = compare_sides(older, newer, policy)
    return Comparison(content | {"limits": None} if isinstance(new, Measures) else with_limits(content, str(new)))


def open(path: str | os.PathLike[str]) -> OpenRun:  # noqa: A001 - `pipeprof.open(path)` is what users expect
    """Open a run folder, recovering it first when its recording was cut off, or a run in object storage by its URL.

    Raises RunError when it is not a run; of another profiler's files the hint is the import.
    """
    try:
        return OpenRun(open_run(str(path)))
    except RunError as error:
        raise import_hint(error, Path(path)) from error
