"""What limits the new side of a comparison by itself: the first screen of its run, as `report` has it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeprof.errors import PipeprofError
from pipeprof.read.spool.finish import open_run
from pipeprof.record.run import MANIFEST
from pipeprof.report.answer import Answer, verdict_in
from pipeprof.report.answer.screen import labelled
from pipeprof.report.build import build
from pipeprof.report.words.verdict import phrase

STEP = "step_time_median"


def with_limits(content: dict[str, Any], new: str | Path) -> dict[str, Any]:
    """The comparison with `limits`, where the new side is a run that can be asked; else None.

    `limits`: {run, code, text, share, first_screen}, all as the report on that run says them.
    """
    return content | {"limits": _limits(Path(new))}


def of_session(content: dict[str, Any]) -> dict[str, Any]:
    """The same of the new side of a session: of its fastest run, which was disturbed least."""
    session = content.get("session") or {}
    runs = (session.get("runs") or {}).get("new") or []
    measured: list[dict[str, Any]] = content.get("repetitions") or []
    steps = [one["new"] for one in measured if one["name"] == STEP]
    times = [value for _, value in sorted(steps[0])] if steps else []
    if not runs or len(times) > len(runs):
        return content | {"limits": None}
    fastest = min(range(len(times)), key=times.__getitem__, default=0)
    return with_limits(content, Path(session["folder"]) / runs[fastest])


def _limits(path: Path) -> dict[str, Any] | None:
    if not path.joinpath(MANIFEST).is_file():
        return None
    try:
        run = open_run(path)
        report = build(run)
    except (PipeprofError, OSError):
        return None
    lead = verdict_in(report).lead
    return {
        "run": run.name, "code": lead.code, "text": phrase(lead), "share": lead.share,
        "first_screen": report["first_screen"],
    }  # fmt: skip


def sentences(limits: Mapping[str, Any] | None) -> list[str]:
    """What limits, then cause, place, advice, gain and confidence, each as the report words it; empty for None."""
    if limits is None:
        return []
    screen = Answer.of(limits["first_screen"])
    return [screen.sentence, *(f"{label}: {text}" for label, text in labelled(screen))]
