"""The first lines of the report."""

from __future__ import annotations

import pytest

from pipeprof.report.sections.diagnosis import diagnosis_section
from pipeprof.report.words import evidence
from pipeprof.verdict.pipeline import diagnose


def content(verdict, rule, share, op_id=1):
    row = {"rep": 0, "rank": 0, "op_id": op_id, "op_type": "MapOp", "name": "f", "verdict": verdict, "rule": rule,
           "kind": "gil" if rule == "gil" else None, "wait_share": share, "batches": 60, "holds_lock": False,
           "utilisation": 0.9, "gil_share": None, "drop_id": op_id, "doubts": ""}  # fmt: skip
    found = diagnose([], [row], [])
    found |= {"compatible": {}, "doubt_facts": [], "evidence": evidence.worded(found["evidence"])}
    return {"diagnosis": found, "ranks": {"straggler": {"verdict": "even"}}, "run": {"path": "r"}}


READY = (
    "Balanced: the data is ready in time, but its Python holds the interpreter's lock (GIL) that the training needs too"
)
WAITS = "(the loop waits 12.0 % of its time)"


@pytest.mark.parametrize(
    ("verdict", "rule", "first"),
    [
        ("input_bound", "utilisation", "Input-bound: the training waits for its data (12.0 % of its time)"),
        ("consumer_bound", "consumer", f"Not input-bound: the data is ready in time {WAITS}"),
        ("balanced", "utilisation", f"Balanced: the data pipeline and the training are equally fast {WAITS}"),
        ("balanced", "gil", f"{READY} {WAITS}"),
    ],
)
def test_the_first_line_says_what_limits(verdict, rule, first):
    assert diagnosis_section(content(verdict, rule, 0.12)).strong[0] == first
