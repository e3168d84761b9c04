"""What a perfect data pipeline would bring, or one of which a part costs nothing: iterators, operators, the answer."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment import stages
from pipeprof.experiment.headspace import (
    Part,
    part_notes,
    run_part,
    source_rows,
    target_of,
    training_iterators,
    verdict,
)
from pipeprof.experiment.pairs import Plan
from pipeprof.experiment.stages import Pipeline, described_pipelines, find_op
from pipeprof.query.rows import JudgedStage
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.process import Process
from pipeprof.report import document, speedup_text
from pipeprof.report.words.experiments import noted

ROW, STOPPED = 0, 1


class Script:
    """A process that fetches and updates; `sites`: those of its iterators."""

    def __init__(self, *sites):
        self.marks, self.events, self.now = [], [], 0
        for number, site in enumerate(sites):
            event = {"e": "iterator", "t": 0, "number": number, "site": site.strip("~"), "hidden": site[:1] == "~"}
            self.events.append(event)

    def add(self, kind, subject, flag=ROW):
        self.now += 10
        self.marks.append(Mark(kind, flag, subject, 0, self.now, self.now + 5))

    def epoch(self, number, rows, train=True, to_the_end=True):
        for _ in range(rows):
            self.add(Kind.FETCH, number)
            self.add(*((Kind.UPDATE, 0) if train else (Kind.CALL, 1)))
        if to_the_end:
            self.add(Kind.FETCH, number, STOPPED)

    def iterators(self):
        return training_iterators([Process(Path(), {"pid": 1, "started": 0}, self.marks, self.events)])


def test_training_iterators_with_the_lengths_of_their_epochs():
    script = Script("train.py:5", "train.py:9", "~train.py:5")
    script.epoch(0, 4)
    script.epoch(0, 4)
    script.epoch(1, 3, train=False)
    script.epoch(0, 2, to_the_end=False)
    assert script.iterators() == [{"site": "train.py:5", "epochs": {"0": [4, 4]}, "usual": 4, "only": True}]


def test_a_place_that_also_makes_evaluation_iterators_goes_by_their_numbers():
    script = Script(*["train.py:5"] * 3)
    for number, rows in enumerate((4, 3, 5)):
        script.epoch(number, rows, train=number != 1)
    epochs = {"0": [4], "2": [5]}
    assert script.iterators() == [{"site": "train.py:5", "epochs": epochs, "usual": None, "only": False}]


def test_a_training_without_iterators_or_without_a_pipeline_is_refused():
    script = Script()
    script.add(Kind.UPDATE, 0)
    for ask in (script.iterators, lambda: target_of(Part("map", "alone"), [])):
        with pytest.raises(MeasureError) as error:
            ask()
        assert "sink" in error.value.hint


def op(op_id, op_type, name=None, node=None, *, is_python=False):
    return {"op_id": op_id, "op_type": op_type, "name": name, "node": node, "is_python": is_python}


OPS = (
    op(0, "EpochCtrlOp"), op(1, "BatchOp", node=0), op(2, "ShuffleOp", node=1),
    op(3, "MapOp", "rotate", 2, is_python=True), op(4, "MapOp", "Decode, Resize", 3), op(5, "ImageFolderOp", node=4),
    op(6, "GeneratorOp", "Source", 5), op(7, "ZipOp", "pkg.decode", 6), op(8, "ConcatOp", "Crop.resize", 7),
)  # fmt: skip
PIPELINE = Pipeline("key", "train.py:7", OPS)


@pytest.mark.parametrize(
    ("text", "op_id"),
    [("rotate", 3), ("3", 3), ("Decode, Resize", 4), ("ImageFolder", 5), ("imagefolder", 5), ("5", 5), ("batch", 1),
     ("GeneratorOp", 6), ("Source", 6), ("pkg.decode", 7), ("resize", 8)],
)  # fmt: skip
def test_an_operator_is_found_by_name_number_and_type(text, op_id):
    assert find_op([PIPELINE], text)[1]["op_id"] == op_id


def test_the_probe_is_told_where_the_operator_is():
    told = {"stand_in": "alone", "node": 2, "site": "train.py:7", "rows": None}
    assert target_of(Part("rotate", "alone"), [PIPELINE]).spec({}) == told
    assert target_of(Part("1", "up_to"), [PIPELINE]).spec({})["node"] == 0  # with all that comes before it, anything


@pytest.mark.parametrize(
    ("text", "words"),
    [("1", "no function"), ("2", "no function"), ("0", "added by itself"),
     ("map", "names 2 operators: 3 .rotate., 4 .Decode, Resize.")],
)  # fmt: skip
def test_what_runs_no_function_or_is_not_one_cannot_be_replaced_alone(text, words):
    with pytest.raises(UsageError, match=words):
        target_of(Part(text, "alone"), [PIPELINE])


@pytest.mark.parametrize(("text", "hint"), [("pkg.decod", "pkg.decode"), ("zzzz", "6 (Source)")])
def test_a_wrong_name_lists_near_ones(text, hint):
    with pytest.raises(UsageError) as error:
        find_op([PIPELINE], text)
    assert hint in error.value.hint


def test_a_number_needs_the_run_that_gave_it(tmp_path):
    with pytest.raises(UsageError, match="of which run"):
        run_part(Part("3", "alone"), ["true"], Plan(1, 1), tmp_path / "out", print)
    assert not (tmp_path / "out").exists()


def test_rows_of_a_generator_are_those_that_the_unchanged_run_counted():
    def counting(side, rows):
        events = {"source_rows": [{"node": 4, "rows": rows}] * 2}
        return SimpleNamespace(side=side, events=lambda name: events.get(name, []))

    runs = [counting("a", 90), counting("b", 1)]
    assert source_rows(runs) == {4: 90}
    assert target_of(Part("5", "alone"), [PIPELINE]).spec(source_rows(runs))["rows"] == 90


def test_pipelines_are_described_with_and_without_samples(make_run):
    """Several iterators of one pipeline count once; the one that gave most batches is first."""
    pipelines = [
        {"pipeline_id": number, "pipeline_key": key, "role": role, "site": key}
        for number, key, role in ((0, "small", "train"), (1, "large", "train"), (2, "large", "train"), (3, "x", "eval"))
    ]
    ops = [{"pipeline_id": n, "op_id": 1, "op_type": "BatchOp", "node": 0} for n in range(4)]
    fetches = [{"pipeline_id": 0 if n == 0 else 1, "fetch": n, "start_ns": n, "wait_ns": 1} for n in range(5)]
    found = described_pipelines(make_run({"pipeline": pipelines, "pipeline_op": ops, "fetch": fetches}))
    described = [(one.key, one.site, [op["node"] for op in one.ops]) for one in found]
    assert described == [("large", "large", [0]), ("small", "small", [0])]


@pytest.mark.parametrize(("waits", "rank"), [((10, 100), 1), ((100, 110), 0), ((100, 10, 130), 2), ((0, 0), 0)])
def test_of_ranks_the_one_is_looked_at_that_the_others_wait_for(monkeypatch, waits, rank):
    of_ranks = [{"rep": 0, "rank": rank, "pipeline_key": "a"} for rank in range(len(waits))]
    site = {"role": "train", "site": "t.py:1"}
    pipelines = [one | site | {"wait_ns": wait} for one, wait in zip(of_ranks, waits, strict=True)]
    consumer = dict.fromkeys(JudgedStage.__struct_fields__) | {"op_id": -1, "op_type": "consumer"}
    rows = {"queue/pipelines": pipelines, "queue/tree": []}
    load = [consumer | one for one in of_ranks]
    monkeypatch.setattr(stages, "with_kinds", lambda rows: rows)
    (found,) = stages.training_pipelines(SimpleNamespace(rows=lambda name: rows.get(name, load)))
    assert {stage.rank for stage in found.load} == {rank}


SINGLE, DIFFER = "single pairs x1.50 to x1.70", "do not agree"


def answer(mode=None, outputs=None, **measured):
    """The verdict, and the lines of the result; of a part where there is a mode."""
    figures = {"ratio": 1.6, "low": 1.5, "high": 1.7, "pairs": 3, "stopped": "decided", "interval": [0.8, 2.4]}
    measured = figures | {"decided": None, "speeds": [], "speeds_of": None} | measured
    content = {"measured": measured | {"verdict": verdict(measured)}, "runs": [], "notes": []}
    if mode is not None:
        content["part"] = {"op": op(3, "MapOp", "rotate", 2), "mode": mode, "outputs_per_step": outputs}
        content |= noted(part_notes(content["part"]))
    lines = document.text(speedup_text.headspace(content)).splitlines()
    return content["measured"]["verdict"], lines


@pytest.mark.parametrize(
    ("mode", "decided", "interval", "expected", "first"),
    [
        (None, "above", [1.41, 1.82], "faster", f"upper bound x1.60 (98 % interval x1.41 to x1.82; {SINGLE})\n"),
        (None, "below", [0.97, 1.03], "no gain", f"nothing to gain: x1.60 (98 % interval x0.97 to x1.03; {SINGLE})\n"),
        (None, "narrow", [1.01, 1.08], "faster", "upper bound x1.60 (98 % interval x1.01"),
        (None, "narrow", [0.99, 1.06], "no gain", "little to gain: x1.60 (98 % interval x0.99"),
        (None, None, [0.8, 2.4], "undecided", f"undecided: 3 pairs {DIFFER} (98 % interval x0.80 to x2.40; {SINGLE})"),
        (None, None, [0.01, 900.0], "undecided", f"undecided: 3 pairs {DIFFER} ({SINGLE})\n"),
        (None, None, None, "undecided", "undecided: a single pair says x1.60\n"),
        ("alone", "above", [1.8, 2.2], "faster", "x1.60 if `rotate` alone cost nothing (98 % interval x1.80"),
        ("up_to", "above", [1.8, 2.2], "faster", "x1.60 if everything up to `rotate` cost nothing (98 % interval"),
        ("alone", "below", [1.8, 2.2], "no gain", "nothing to gain from `rotate` alone: x1.60 (98 % interval x1.80"),
        ("alone", None, [1.8, 2.2], "undecided", f"undecided: 3 pairs {DIFFER} (98 % interval x1.80"),
    ],
)
def test_a_bound_is_stated_first_and_only_when_the_pairs_decide(mode, decided, interval, expected, first):
    found, lines = answer(mode, 32.0, decided=decided, interval=interval)
    assert found == expected
    assert f"{lines[0]}\n".startswith(first)
    assert any("upper bound" in line for line in lines) == (mode is None and expected == "faster")
    assert any("(32 per step)" in line for line in lines) == (mode is not None)


@pytest.mark.parametrize(
    ("stopped", "pairs", "hint"),
    [("pairs", 3, "--max-pairs 8"), ("pairs", 8, "--max-pairs 16"), ("budget", 3, "a longer --budget")],
)
def test_an_undecided_answer_says_what_may_decide(stopped, pairs, hint):
    for interval in ([0.8, 1.5], None):
        assert any(hint in line for line in answer(stopped=stopped, pairs=pairs, interval=interval)[1])


@pytest.mark.parametrize(
    ("decided", "first"), [("above", "upper bound"), ("below", "nothing to gain:"), ("two_speeds", "undecided:")]
)
def test_two_speeds_are_said_instead_of_what_lies_between(decided, first):
    speeds = [{"ratio": 1.8, "low": 1.7, "high": 1.9, "pairs": [0, 2, 3]}]
    speeds.append({"ratio": 3.1, "low": 3, "high": 3.2, "pairs": [1, 4]})
    _, lines = answer(decided=decided, ratio=1.9, low=1.7, high=3.2, interval=[1.5, 3.4], speeds=speeds, speeds_of="a")
    assert lines[0] == f"{first} x1.80 or x3.10 (two speeds: x1.80 in 3 pairs, x3.10 in 2 pairs)"
    assert "it is the unchanged runs that have two speeds" in lines
    assert not any("1.50" in line or "1.90" in line for line in lines)
