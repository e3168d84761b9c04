"""What a training that stood still before its end was in, as the reports and `status` show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.record.run import UNFINISHED
from pipeprof.report.words import waiting as words
from pipeprof.verdict.hang import hang_of

if TYPE_CHECKING:
    from pipeprof.record.run import Run


def hang_facts(run: Run) -> dict[str, Any] | None:
    """`rep`, `for_s`, `stepped` and `ranks` of verdict/hang.Hang, each rank with `text`, a sentence; None without one.

    Also None of a run that is not over, of which the live record tells.
    """
    is_over = run.manifest.state != "running" and not run.manifest.options.get(UNFINISHED)
    hang = hang_of(run.manifest.reps) if is_over else None
    if hang is None:
        return None
    ranks = [{**row, "text": words.sentence(row, words.THEN)} for row in hang.rows]
    return {"rep": hang.rep, "for_s": hang.for_s, "stepped": hang.stepped, "ranks": ranks}
