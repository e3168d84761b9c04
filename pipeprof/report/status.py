"""What each rank of a run waits for at this moment, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.record.lock import being_recorded
from pipeprof.report.document import Document
from pipeprof.report.run_verdict import hang_facts
from pipeprof.report.sections.block import Section
from pipeprof.report.words import waiting as words
from pipeprof.units import format_count
from pipeprof.verdict import waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeprof.record.run import Run

STATUS_VERSION = 1
_FACTS = {"code": "", "text": "_text", "share": "_share"}
RECORDING, CUT_OFF = "recording", "cut_off"


def build(run: Run) -> dict[str, Any]:
    """The state of the run (recording, cut_off, or that of its manifest), and while it is recorded a row per rank.

    Of one that has ended `verdict`: what leads it.

    The rows are those of verdict/waiting.judge, with `text`, a sentence. `hang`: those of a run that stood still before
    it ended.
    """
    state: str = run.manifest.state
    rows: list[dict[str, Any]] = []
    if state == "running":
        state = RECORDING if being_recorded(run.path) else CUT_OFF
    if state == RECORDING:
        from pipeprof.read.spool.live import read_live  # noqa: PLC0415 - slow to import; most runs have ended

        rows = waiting.judge(read_live(run))
    return {
        "schema_version": STATUS_VERSION,
        "run": {"path": run.name, "run_id": run.manifest.run_id, "repetitions": len(run.manifest.reps)},
        "state": state,
        "verdict": _verdict(run) if state not in (RECORDING, CUT_OFF) else None,
        "ranks": [{**row, "text": words.sentence(row)} for row in rows],
        "hang": hang_facts(run),
    }


def _verdict(run: Run) -> dict[str, Any] | None:
    """What leads the verdict on a run that has ended: `code`, `text` and `share`; None where it cannot be asked."""
    from pipeprof.report.overview import overview  # noqa: PLC0415 - asks tables

    facts = overview(run).facts
    return None if facts["cause"] is None else {name: facts[f"cause{end}"] for name, end in _FACTS.items()}


def document(content: dict[str, Any], *, stacks: bool = False) -> Document:
    """A sentence for each rank, or for the run where none is known; `stacks`: with the whole Python stacks."""
    if not content["ranks"]:
        hung = content["hang"]["ranks"] if content["hang"] else []
        sections = [one for row in hung for one in _of_rank(row, words.THEN, stacks=stacks)]
        return Document(run_sentence(content), sections, unbroken=True)
    title = f"`{content['run']['path']}` is being recorded: {format_count(len(content['ranks']), 'rank')}"
    sections = [one for row in content["ranks"] for one in _of_rank(row, words.NOW, stacks=stacks)]
    return Document(title, sections, unbroken=True)


def _of_rank(row: dict[str, Any], tense: words.Tense, *, stacks: bool) -> list[Section]:
    said = Section("", [row["text"]], words.details(row, tense), unbroken=True)
    shown = [(f"process {row['pid']}", row), *((_who(one), one) for one in row["stuck"])] if stacks else []
    return [said, *(Section("", notes=[f"stack of {who}:"], code=words.frames(one["stack"])) for who, one in shown)]


def _who(stuck: Mapping[str, Any]) -> str:
    return "the thread" if stuck["pid"] is None else f"worker process {stuck['pid']}"


def run_sentence(content: dict[str, Any]) -> str:
    """The run in words where no rank of it is known."""
    path, state = content["run"]["path"], content["state"]
    if state == RECORDING:
        return f"`{path}` is being recorded: no process of it has begun to use MindSpore"
    if state == CUT_OFF:
        return f"the recording of `{path}` was cut off: `pipeprof report` makes what can be made of it"
    before = "; before its end it stood still" if content["hang"] else ""
    repetitions = format_count(content["run"]["repetitions"], "repetition")
    said = (
        f"`{path}` {'has failed' if state == 'failed' else f'is {state}'}: nothing runs, {repetitions} recorded{before}"
    )
    return f"{said}; verdict: {content['verdict']['text']}" if content.get("verdict") else said
