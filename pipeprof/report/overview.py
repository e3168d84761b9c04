"""What a list of runs says about each: its verdict and its step time. Remembered, for finding them takes queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import PipeprofError
from pipeprof.record import checksums
from pipeprof.record.cache import cached
from pipeprof.report.rollup import stored
from pipeprof.report.run_verdict import verdict_of
from pipeprof.report.summary import median_step_ns
from pipeprof.report.words.verdict import phrase
from pipeprof.verdict.cause import RunVerdict

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeprof.record.run import Run


class Overview(msgspec.Struct):
    """The verdict on the run; `step_ns` is its median training step. `problem`: why the run could not be asked."""

    verdict: RunVerdict | None = None
    data_verdict: str | None = None
    step_ns: float | None = None
    problem: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """What a list of runs says about a run; all null for one that could not be asked."""
        lead = self.verdict.lead if self.verdict else None
        stage = lead.stage if lead else None
        return {
            "verdict": self.data_verdict,
            "op_name": (stage.name or stage.op_type) if stage else None,
            "cause": lead and lead.code,
            "cause_text": lead and phrase(lead),
            "cause_share": lead and lead.share,
            "step_ns": self.step_ns,
        }


def overview(run: Run) -> Overview:
    """The overview of a run whose tables are written. A damaged table is its `problem`, not an error."""
    try:
        return cached("overviews", checksums.as_it_lies(run), Overview, lambda: asked(run))
    except PipeprofError as error:
        return Overview(problem=error.message)


def asked(run: Run) -> Overview:
    """The overview of a run, found now. Raises PipeprofError for a damaged table."""
    checksums.refuse_changed(run, footers=False)
    rollup = stored(run)
    if rollup is not None:
        return of_rollup(rollup)
    found = verdict_of(run)
    return Overview(found.verdict, found.diagnosis["verdict"], median_step_ns(found.summary))


def of_rollup(rollup: pa.Table) -> Overview:
    """The overview of the run that a rollup was made of."""
    ranks = rollup.select(["rep", "rank", "verdict", "causes", "kind", "median_ns"]).to_pylist()
    return Overview(
        msgspec.json.decode(ranks[0]["causes"], type=RunVerdict), ranks[0]["verdict"],
        median_step_ns([row for row in ranks if row["median_ns"] is not None]),
    )  # fmt: skip
