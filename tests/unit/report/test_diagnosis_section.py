"""The first lines of the report."""

from __future__ import annotations

import pytest

from pipeprof.report.sections.diagnosis import diagnosis_section
from pipeprof.report.words import evidence
from pipeprof.verdict.pipeline import diagnose


def content(verdict, rule, share, op_id=1):
    named = {"op_id": op_id, "op_type": "MapOp", "op_name": "f", "kind": "gil" if rule == "gil" else None, "rule": rule}
    found = diagnose([], [], []) | {"verdict": verdict, "data_wait_share": share, "compatible": {}, "doubt_facts": []}
    if verdict != "consumer_bound":
        found |= named
    found |= {"evidence": evidence.worded(found["evidence"])}
    return {"diagnosis": found, "ranks": {"straggler": {"verdict": "even"}}, "run": {"path": "r"}}


READY = (
    "Balanced: the data is ready in time, but its Python holds the interpreter's lock (GIL) that the training needs too"
)
WAITS = "(the loop waits 12.0 % of the time)"


@pytest.mark.parametrize(
    ("verdict", "rule", "first"),
    [
        ("input_bound", "utilisation", "Input-bound: the training waits for its data (12.0 % of the time)"),
        ("consumer_bound", "consumer", f"Not input-bound: the data is ready in time {WAITS}"),
        ("balanced", "utilisation", f"Balanced: the data pipeline and the training are equally fast {WAITS}"),
        ("balanced", "gil", f"{READY} {WAITS}"),
    ],
)
def test_the_first_line_says_what_limits(verdict, rule, first):
    assert diagnosis_section(content(verdict, rule, 0.12)).strong[0] == first


def test_the_rule_and_the_facts_behind_it_are_said():
    found = content("input_bound", "utilisation", 0.6)
    found["diagnosis"] |= {
        "rule_name": "busier_than_loop",
        "rule_facts": [
            {"fact": "busy", "value": 0.98, "relation": "at_least", "bound": 0.8},
            {"fact": "gil_share", "value": None, "relation": "unknown", "bound": None},
            {"fact": "python_cores", "value": 0.913, "relation": "at_most", "bound": 1.3},
        ],
    }
    assert diagnosis_section(found).notes[0] == (
        "Rule `busier_than_loop`: this stage is busy, and busier than the training loop (throughput of the training / maximum "
        "throughput of the busiest operator: "
        "98.0 %, at least 80 %; time that the interpreter's lock (GIL) is held: not measured; CPU of Python code inside "
        "the process: 0.91 cores, at most 1.3 cores)"
    )


def test_without_a_rule_none_is_said():
    found = content("input_bound", None, 0.6)
    found["diagnosis"] |= {"rule_name": None, "rule_facts": []}
    assert not any("Rule" in note for note in diagnosis_section(found).notes)
