"""Which iterators are the training's, and how long their epochs are."""

from pathlib import Path

import pytest

from pipeprof.errors import MeasureError
from pipeprof.experiment.headspace import training_iterators, verdict
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.process import Process
from pipeprof.report import document, speedup_text

ROW, STOPPED = 0, 1


class Script:
    """A process that fetches and updates."""

    def __init__(self):
        self.marks, self.events, self.now = [], [], 0

    def add(self, kind, subject, flag=ROW):
        self.now += 10
        self.marks.append(Mark(kind, flag, subject, 0, self.now, self.now + 5))

    def iterator(self, number, site, hidden=False):
        self.events.append({"e": "iterator", "t": 0, "number": number, "site": site, "hidden": hidden})

    def epoch(self, number, rows, train=True, to_the_end=True):
        for _ in range(rows):
            self.add(Kind.FETCH, number)
            if train:
                self.add(Kind.UPDATE, 0)
            else:
                self.add(Kind.CALL, 1)
        if to_the_end:
            self.add(Kind.FETCH, number, STOPPED)

    @property
    def process(self):
        return Process(Path(), {"pid": 1, "started": 0}, self.marks, self.events)


def test_training_iterators_with_the_lengths_of_their_epochs():
    script = Script()
    script.iterator(0, "train.py:5")
    script.iterator(1, "train.py:9")
    script.iterator(2, "train.py:5", hidden=True)
    script.epoch(0, 4)
    script.epoch(0, 4)
    script.epoch(1, 3, train=False)
    script.epoch(0, 2, to_the_end=False)
    assert training_iterators([script.process]) == [
        {"site": "train.py:5", "epochs": {"0": [4, 4]}, "usual": 4, "only": True}
    ]


def test_a_place_that_also_makes_evaluation_iterators_goes_by_their_numbers():
    script = Script()
    for number in (0, 1, 2):
        script.iterator(number, "train.py:5")
    script.epoch(0, 4)
    script.epoch(1, 3, train=False)
    script.epoch(2, 5)
    found = training_iterators([script.process])
    assert found == [{"site": "train.py:5", "epochs": {"0": [4], "2": [5]}, "usual": None, "only": False}]


def test_a_training_without_iterators_is_refused():
    script = Script()
    script.add(Kind.UPDATE, 0)
    with pytest.raises(MeasureError) as error:
        training_iterators([script.process])
    assert "sink" in error.value.hint


def text(found):
    return document.text(speedup_text.headspace(found))


def content(measured, verdict_of=verdict):
    measured = {"pairs": 3, "stopped": "decided", "speeds": [], "speeds_of": None, "interval": None} | measured
    return {"measured": measured | {"verdict": verdict_of(measured)}, "runs": [], "notes": []}


@pytest.mark.parametrize(
    ("decided", "interval", "expected", "words"),
    [
        (
            "above",
            [1.41, 1.82],
            "faster",
            "upper bound x1.60 (98 % interval x1.41 to x1.82; single pairs x1.50 to x1.70)\n",
        ),
        (
            "below",
            [0.97, 1.03],
            "no gain",
            "nothing to gain: x1.60 (98 % interval x0.97 to x1.03; single pairs x1.50 to x1.70)\n",
        ),
        ("narrow", [1.01, 1.08], "faster", "upper bound"),
        ("narrow", [0.99, 1.06], "no gain", "little to gain: x1.60 (98 % interval x0.99 to x1.06; "),
        (
            None,
            [0.8, 2.4],
            "undecided",
            "undecided: 3 pairs do not agree (98 % interval x0.80 to x2.40; single pairs x1.50 to x1.70)\n",
        ),
        (None, [0.01, 900.0], "undecided", "undecided: 3 pairs do not agree (single pairs x1.50 to x1.70)\n"),
        (None, None, "undecided", "undecided: a single pair says x1.60\n"),
    ],
)
def test_a_bound_is_stated_only_when_the_pairs_decide(decided, interval, expected, words):
    result = content({"ratio": 1.6, "low": 1.5, "high": 1.7, "decided": decided, "interval": interval})
    assert result["measured"]["verdict"] == expected
    said = text(result)
    assert said.startswith(words)
    assert ("upper bound" in said) == (expected == "faster")


@pytest.mark.parametrize(("stopped", "hint"), [("pairs", "--max-pairs 8"), ("budget", "a longer --budget")])
def test_an_undecided_answer_says_what_may_decide(stopped, hint):
    figures = {"ratio": 1.1, "low": 0.9, "high": 1.3, "interval": [0.8, 1.5], "decided": None}
    assert hint in text(content(figures | {"stopped": stopped}))
    assert hint in text(content(figures | {"stopped": stopped, "interval": None, "pairs": 1}))


def test_twice_as_many_pairs_may_decide():
    figures = {"ratio": 1.1, "low": 0.9, "high": 1.3, "interval": [0.8, 1.5], "decided": None, "stopped": "pairs"}
    assert "--max-pairs 16" in text(content(figures | {"pairs": 8}))


SPEEDS = [
    {"ratio": 1.8, "low": 1.7, "high": 1.9, "pairs": [0, 2, 3]},
    {"ratio": 3.1, "low": 3, "high": 3.2, "pairs": [1, 4]},
]


@pytest.mark.parametrize(
    ("decided", "first"),
    [
        ("above", "upper bound x1.80 or x3.10 (two speeds: x1.80 in 3 pairs, x3.10 in 2 pairs)"),
        ("below", "nothing to gain: x1.80 or x3.10 (two speeds: x1.80 in 3 pairs, x3.10 in 2 pairs)"),
        ("two_speeds", "undecided: x1.80 or x3.10 (two speeds: x1.80 in 3 pairs, x3.10 in 2 pairs)"),
    ],
)
def test_two_speeds_are_said_instead_of_what_lies_between(decided, first):
    figures = {"ratio": 1.9, "low": 1.7, "high": 3.2, "interval": [1.5, 3.4], "decided": decided}
    lines = text(content(figures | {"speeds": SPEEDS, "speeds_of": "a"})).splitlines()
    assert lines[0] == first
    assert "it is the unchanged runs that have two speeds" in lines
    assert not any("1.50" in line or "1.90" in line for line in lines)
