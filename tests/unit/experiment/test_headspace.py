"""Which iterators are the training's, and how long their epochs are."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeprof.errors import MeasureError
from pipeprof.experiment.headspace import text, training_iterators, verdict
from pipeprof.read.spool.process import Kind, Mark, Process

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


@pytest.mark.parametrize(
    ("low", "high", "expected", "words"),
    [
        (1.5, 1.7, "faster", "Upper bound: 1.60 times as fast (1.50 to 1.70 in single pairs)"),
        (0.97, 1.01, "no gain", "Nothing to gain: 0.99 times as fast"),
        (0.8, 2.4, "undecided", "Undecided: the pairs contradict each other (0.80 to 2.40 times as fast)"),
        (1.0, 1.4, "undecided", "--pairs 5"),
    ],
)
def test_a_bound_is_stated_only_when_the_pairs_agree(low, high, expected, words):
    measured = {"ratio": (low + high) / 2, "low": low, "high": high}
    measured["verdict"] = verdict(measured)
    assert measured["verdict"] == expected
    said = text({"measured": measured, "runs": [], "notes": []})
    assert words in said
    assert ("Upper bound" in said) == (expected == "faster")
