"""What a tuning found, as its JSON has it, and the files that are handed over."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import MeasureError
from pipeprof.experiment.runs import json_text, write_json
from pipeprof.experiment.tune.goal import ENOUGH, lacks_time, seconds_for
from pipeprof.experiment.tune.patch import patch_of
from pipeprof.experiment.tune.trial import is_proven

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.experiment.tune.state import TuneState

SCHEMA_VERSION = 1
RESULT, SETTINGS, PATCH, PARAGRAPH = "tune.json", "settings.json", "patch.diff", "pull_request.md"
READING_S = 10.0  # that a call which goes on takes before its first run
EXIT = {"proven": 0, "nothing_to_gain": 0, "not_faster": 0, "not_judged": 3, "undecided": 4}


def content_of(state: TuneState, workdir: Path, *, allow_unchecked: bool) -> dict[str, Any]:
    """The result."""
    verdict = _verdict(state, allow_unchecked=allow_unchecked)
    proven = verdict == "proven"
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "verdict": verdict,
        "exit_code": EXIT[verdict],
        "tune": state.tune,
        "command": state.command,
        "goal": state.goal,
        "allow_order": state.allow_order,
        "allow_random": state.allow_random,
        "allow_unchecked": allow_unchecked,
        "stop_after": state.stop_after,
        "started_at": state.started_at,
        "spent_s": round(state.spent_s, 3),
        "ended": state.ended,
        "lacks_time": lacks_time(state) or bool(state.made_again(unchecked=allow_unchecked)),
        "next_budget_s": round(state.spent_s + seconds_for(state, ENOUGH) + READING_S, 3),
        "seen": state.seen,
        "trials": msgspec.to_builtins(state.trials),
        "failed_runs": msgspec.to_builtins(state.failed_runs),
        "rows": [msgspec.to_builtins(one) for one in state.original],
        "final": None if state.final is None else msgspec.to_builtins(state.final),
        "settings": msgspec.to_builtins(state.settings) if proven else None,
        "patch": None,
    }
    if proven:
        others = [site for seen in state.seen for site in seen["other_sites"]]
        operators = [row for seen in state.seen[:1] for row in seen.get("operators", ())]
        content["patch"] = asdict(patch_of(state.settings, workdir, others, operators))
    return content


def write_files(folder: Path, content: dict[str, Any], paragraph: str) -> list[str]:
    """Write the result, and of a proven one its settings, diff and paragraph; returns the names that were written."""
    texts: dict[str, str] = {}
    if content["settings"] is not None:
        texts[SETTINGS] = json_text(content["settings"])
        texts[PATCH] = content["patch"]["diff"]
        texts[PARAGRAPH] = paragraph
    written = [name for name, text in texts.items() if text]
    try:
        for name in (SETTINGS, PATCH, PARAGRAPH):
            (folder / name).unlink(missing_ok=True)
        for name in written:
            with (folder / name).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                file.write(texts[name])
    except OSError as error:
        raise MeasureError(f"cannot write into `{folder}`: {error.strerror}", "free some space") from error
    write_json(folder / RESULT, content)
    return written


def _verdict(state: TuneState, *, allow_unchecked: bool) -> str:
    if is_proven(state, allow_unchecked=allow_unchecked):
        return "proven"
    final = state.final
    if final is None:
        came = {trial.verdict for trial in state.trials}
        if state.ended == "budget" or "undecided" in came:
            return "undecided"
        return "not_judged" if "unchecked" in came or came == {"failed"} else "nothing_to_gain"
    so_far = final.verdict != "improved"  # what is no gain needs no comparison
    if final.error or not state.may_take(final.batches, so_far=so_far):
        return "not_judged"
    return "not_faster" if final.verdict in ("unchanged", "regressed") else "undecided"
