"""What was run, where, and what went wrong."""

from __future__ import annotations

import shlex
from typing import Any

from pipeprof.report.sections.block import Section


def run_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """State, command, machine and versions, and the warnings."""
    run = content["run"]
    section = Section(f"Run {run['path']}")
    state = run["state"] + (f": {run['reason']}" if run["reason"] else "")
    section.strong.append(state)
    if run["command"]:
        section.notes.append("command: " + shlex.join(run["command"]))
    machine = run["fingerprint"]
    facts = [
        f"MindSpore {machine['mindspore']}" if machine.get("mindspore") else None,
        machine.get("device"),
        f"{machine['mode']} mode" if machine.get("mode") else None,
        f"Python {machine['python']}" if machine.get("python") else None,
        machine.get("cpu_model"),
        f"{machine['cpu_cores']} cores" if machine.get("cpu_cores") else None,
    ]
    section.notes.append(", ".join(fact for fact in facts if fact))
    measured = {(row["rep"], row["rank"]) for row in content["steps"]["summary"]}
    if len(measured) > 1:
        section.notes.append(f"details are of repetition {focus[0]}, rank {focus[1]}: the slowest of {len(measured)}")
    section.notes += [f"warning: {warning['message']}" for warning in run["warnings"]]
    return section
