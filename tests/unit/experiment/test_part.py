"""Which operator is meant, what the probe is told about it, and what the reader is told about the figure."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.headspace import Part, part_notes, run_part, source_rows, target_of
from pipeprof.experiment.pairs import Plan
from pipeprof.experiment.stages import Pipeline, described_pipelines
from pipeprof.report import document, speedup_text
from pipeprof.report.words.experiments import noted


def op(op_id, op_type, name=None, node=None, *, is_python=False):
    return {"op_id": op_id, "op_type": op_type, "name": name, "node": node, "is_python": is_python}


PIPELINE = Pipeline(
    "key",
    "train.py:7",
    (
        op(0, "EpochCtrlOp"),
        op(1, "BatchOp", node=0),
        op(2, "ShuffleOp", node=1),
        op(3, "MapOp", "rotate", 2, is_python=True),
        op(4, "MapOp", "Decode, Resize", 3),
        op(5, "ImageFolderOp", node=4),
    ),
)


@pytest.mark.parametrize(
    ("text", "node"), [("rotate", 2), ("3", 2), ("Decode, Resize", 3), ("ImageFolder", 4), ("5", 4)]
)
def test_an_operator_is_found_by_name_number_and_type(text, node):
    target = target_of(Part(text, "alone"), [PIPELINE])
    assert target.spec({}) == {"stand_in": "alone", "node": node, "site": "train.py:7", "rows": None}


@pytest.mark.parametrize(("text", "words"), [("1", "no function"), ("2", "no function"), ("0", "added by itself")])
def test_what_runs_no_function_cannot_be_replaced_alone(text, words):
    with pytest.raises(UsageError, match=words):
        target_of(Part(text, "alone"), [PIPELINE])


def test_anything_can_be_replaced_with_all_that_comes_before_it():
    assert target_of(Part("1", "up_to"), [PIPELINE]).spec({})["node"] == 0


def test_two_maps_are_told_apart_by_name():
    with pytest.raises(UsageError, match="names 2 operators"):
        target_of(Part("map", "alone"), [PIPELINE])


def test_a_training_without_a_pipeline_is_refused():
    with pytest.raises(MeasureError) as error:
        target_of(Part("map", "alone"), [])
    assert "sink" in error.value.hint


def test_a_number_needs_the_run_that_gave_it(tmp_path):
    with pytest.raises(UsageError, match="of which run"):
        run_part(Part("3", "alone"), ["true"], Plan(1, 1), tmp_path / "out", print)
    assert not (tmp_path / "out").exists()


def measured(side, *events, steps=10):
    def of_name(name):
        return [event for event in events if event["e"] == name]

    return SimpleNamespace(side=side, events=of_name, training_steps=steps, path=Path("b0"))


def test_rows_of_a_generator_are_those_that_the_unchanged_run_counted():
    counted = {"e": "source_rows", "node": 4, "rows": 90}
    runs = [measured("a", counted, counted), measured("b", {"e": "source_rows", "node": 4, "rows": 1})]
    assert source_rows(runs) == {4: 90}
    assert target_of(Part("5", "alone"), [PIPELINE]).spec(source_rows(runs))["rows"] == 90


TWICE = "2.00 times as fast (1.90 to 2.10 in single pairs)"


@pytest.mark.parametrize(
    ("mode", "verdict", "first"),
    [
        (
            "alone",
            "faster",
            "x2.00 if `rotate` alone cost nothing (98 % interval x1.80 to x2.20; single pairs x1.90 to x2.10)",
        ),
        (
            "up_to",
            "faster",
            "x2.00 if everything up to `rotate` cost nothing (98 % interval x1.80 to x2.20; single pairs x1.90 to x2.10)",
        ),
        (
            "alone",
            "no gain",
            "nothing to gain from `rotate` alone: x2.00 (98 % interval x1.80 to x2.20; single pairs x1.90 to x2.10)",
        ),
        (
            "alone",
            "undecided",
            "undecided: 2 pairs do not agree (98 % interval x1.80 to x2.20; single pairs x1.90 to x2.10)",
        ),
    ],
)
def test_the_answer_stands_first(mode, verdict, first):
    part = {"op": op(3, "MapOp", "rotate", 2), "mode": mode, "outputs_per_step": 32.0}
    figures = {"ratio": 2.0, "low": 1.9, "high": 2.1, "verdict": verdict, "interval": [1.8, 2.2], "pairs": 2}
    figures |= {"decided": None, "stopped": "pairs", "speeds": [], "speeds_of": None}
    found = {"measured": figures, "part": part, "runs": [], **noted(part_notes(part))}
    said = document.text(speedup_text.headspace(found))
    assert said.splitlines()[0] == first
    assert "replaying outputs takes Python a little time itself (32 per step)" in said


def test_pipelines_are_described_with_and_without_samples(make_run):
    """Several iterators of one pipeline count once; the one that gave most batches is first."""
    pipelines = [
        {"pipeline_id": number, "pipeline_key": key, "role": role, "site": key}
        for number, key, role in ((0, "small", "train"), (1, "large", "train"), (2, "large", "train"), (3, "x", "eval"))
    ]
    ops = [{"pipeline_id": n, "op_id": 1, "op_type": "BatchOp", "node": 0} for n in range(4)]
    fetches = [{"pipeline_id": 0 if n == 0 else 1, "fetch": n, "start_ns": n, "wait_ns": 1} for n in range(5)]
    run = make_run({"pipeline": pipelines, "pipeline_op": ops, "fetch": fetches})
    found = described_pipelines(run)
    assert [(one.key, one.site, [op["node"] for op in one.ops]) for one in found] == [
        ("large", "large", [0]),
        ("small", "small", [0]),
    ]
