"""The first lines of the report."""

import pytest
from run_verdicts import with_verdict
from typed_rows import of_dicts

from pipeprof.query.engine import Engine
from pipeprof.report.answer import data
from pipeprof.report.diagnosis import NOTHING_IMPORTED, OPERATORS_ALONE, judged
from pipeprof.report.sections.diagnosis import diagnosis_section
from pipeprof.report.words import evidence
from pipeprof.verdict import pipeline

diagnose = of_dicts(pipeline.diagnose)


def content(verdict, rule, share, op_id=1):
    named = {"op_id": op_id, "op_type": "MapOp", "op_name": "f", "kind": "gil" if rule == "gil" else None, "rule": rule}
    found = diagnose([], [], []) | {"verdict": verdict, "data_wait_share": share, "compatible": {}, "doubt_facts": []}
    if verdict != "consumer_bound":
        found |= named
    if rule == "shared_cpu":
        found["rule_facts"] = [
            {"fact": "freed", "value": 1.5, "relation": "at_least", "bound": 1.1},
            {"fact": "pipeline_share", "value": 0.3, "relation": "at_least", "bound": 0.1},
        ]
    found |= {"evidence": evidence.worded(found["evidence"])}
    ranks = {"straggler": {"verdict": "even", "found": []}}
    run = {"path": "r", "state": "complete", "reps": []}
    return with_verdict({"diagnosis": found, "ranks": ranks, "run": run, "op_devices": []})


@pytest.mark.parametrize(
    ("verdict", "rule", "share", "label"),
    [
        ("input_bound", "utilisation", 0.12, "Input-bound: "),
        ("balanced", "utilisation", 0.12, "Balanced: "),
        ("consumer_bound", "consumer", 0.049, "Not input-bound: "),
        ("consumer_bound", "consumer", None, "Probably not input-bound: "),
        ("balanced", "gil", 0.02, "The data is ready in time, "),
        ("balanced", "gil", 0.12, "The training waits for its data only now and then, "),
        ("balanced", "shared_cpu", 0.12, "Short of CPU: "),
    ],
)
def test_the_first_line_is_that_of_the_first_screen(verdict, rule, share, label):
    found = content(verdict, rule, share)
    first = diagnosis_section(found).strong[0]
    assert first.startswith(label)
    assert f"{first}." == data.sentence(found)


@pytest.mark.parametrize(("rule", "said"), [("utilisation", True), ("shared_cpu", False)])
def test_the_pace_of_a_stage_that_takes_cpu_from_the_training_bounds_nothing(rule, said):
    """Seen: "at most 3.95 times as fast", where its CPU was worth 1.04 times."""
    found = content("balanced", rule, 0.02)
    bound = {"code": "bound", "parameter": None, "text": "no more than 3.95 times", "place": None, "not_when": None,
             "verify": None, "gain_high": 3.95, "op_id": 1}  # fmt: skip
    found["diagnosis"]["suggestions"] = [bound]
    assert any("3.95" in text for text in diagnosis_section(found).notes) == said


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
        "Rule `busier_than_loop`: this stage is busy, and busier than the training loop (utilisation of the busiest operator: "
        "98.0 %, needs at least 80 %; time that the interpreter's lock (GIL) is held: not measured; CPU of Python code inside "
        "the process: 0.91 cores, needs at most 1.3 cores)"
    )


def test_without_a_rule_none_is_said():
    found = content("input_bound", None, 0.6)
    found["diagnosis"] |= {"rule_name": None, "rule_facts": []}
    assert not any("Rule" in note for note in diagnosis_section(found).notes)


STEP = {"step": 0, "kind_step": 0, "kind": "train", "start_ns": 0, "end_ns": 100, "in_window": True}
EXECUTED = {"op_id": 0, "start_ns": 10, "dur_ns": 50, "track": "0"}
IN_A_STEP = {"step": [STEP], "op_info": [{"op_id": 0, "phase": "forward"}], "op": [EXECUTED | {"step": 0}]}


@pytest.mark.parametrize(
    ("source", "tables", "advice"),
    [
        ("import:any", {}, [NOTHING_IMPORTED]),
        ("import:any", {"op": [EXECUTED]}, [OPERATORS_ALONE]),
        ("import:any", IN_A_STEP, None),
        ("collect", {"op": [EXECUTED]}, None),
    ],
)
def test_only_an_import_without_the_parts_of_a_step_is_told_to_import_more(make_run, source, tables, advice):
    run = make_run(tables)
    run.manifest.source = source
    with Engine.open(run) as engine:
        found = judged(engine, run, [], [])["network"]
    if advice:
        assert (found["actions"], found["suggestions"]) == ([], advice)
    else:
        assert not {NOTHING_IMPORTED, OPERATORS_ALONE} & set(found["suggestions"])
        assert found["suggestions"] or found["actions"]
