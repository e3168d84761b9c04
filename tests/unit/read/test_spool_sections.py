"""What a PyNative step did when, from hand-made sections. `data 5` awaits a batch, `gap 3` is time between sections."""

import pytest

from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.operators import place
from pipeprof.read.spool.sections import repeated_passes, structures
from pipeprof.read.spool.step_rows import Step

FLAGS = {"forward": 1, "backward": 2, "pass": 3}
CALLS = {
    1: {"site": "train.py:41", "cell": "Net", "own": True, "network": 1},
    2: {"site": "train.py:58", "cell": "Net", "own": True, "network": 1},
    3: {"site": "train.py:60", "cell": "Net", "own": True, "network": 2},  # a copy
    4: {"site": "train.py:70", "cell": "SequentialCell", "own": False, "network": 3},
    5: {"site": "train.py:71", "cell": "SequentialCell", "own": False, "network": 4},
}


def made(text, start=0):
    """A step and its marks of `name length` parts, one behind the other; `name:1` is of subject 1."""
    marks, fetches, now = [], [], start
    for part in text.split(", "):
        name, length = part.split()
        name, _, subject = name.partition(":")
        end = now + int(length)
        if name == "data":
            fetches.append(Mark(Kind.FETCH, 0, 0, len(fetches), now, end))
        elif name == "update":
            marks.append(Mark(Kind.UPDATE, 0, 0, 0, now, end))
        elif name != "gap":
            marks.append(Mark(Kind.SECTION, FLAGS[name], int(subject or 0), 0, now, end))
        now = end
    return Step("train", start, now, fetches=fetches), marks


def structure(text, more=()):
    step, marks = made(text)
    return step, structures([step], [*marks, *more])[0]


def lengths(text, more=()):
    step, found = structure(text, more)
    assert found.intervals[0][1] == step.start
    assert found.intervals[-1][2] == step.end
    assert all(one[2] == other[1] for one, other in zip(found.intervals, found.intervals[1:], strict=False))
    total = found.lengths()
    assert (step.input_ns or 0) + sum(total.values()) == step.end - step.start
    return {name: length for name, length in total.items() if length}


PLAIN = "data 5, forward 10, backward 20, update 3"
UNDER = Mark(Kind.SECTION, FLAGS["backward"], 0, 0, 30, 50)


@pytest.mark.parametrize(
    ("text", "more", "kind"),
    [
        # neither batch nor network is known before the backward pass; a wait that was sampled longer than until it
        ("gap 50, backward 20, update 3", [], "train"),
        ("data 50, update 3", [UNDER], "train"),
        # no backward pass, and an evaluation
        ("data 5, pass:1 10", [], "train"),
        ("data 5, forward 10, backward 20", [], "eval"),
    ],
)
def test_steps_without_a_known_backward_pass_have_no_structure(text, more, kind):
    step, marks = made(text)
    step.kind = kind
    assert structures([step], [*marks, *more]) == {}


PARTS = ("forward", "backward", "gradients", "optimizer", "after")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN, [10, 20, 0, 3, 0]),  # plain
        # mixup, clipping, average
        ("data 5, gap 4, forward 10, gap 1, backward 20, gap 7, update 3, gap 100", [15, 20, 7, 3, 100]),
        (f"{PLAIN}, pass:2 50, gap 5", [10, 20, 0, 3, 55]),  # a second forward pass behind the update
        (f"{PLAIN}, gap 2, forward 50, gap 5", [10, 20, 0, 3, 57]),  # one whose gradients nobody asks for
        # a forward pass before the gradients
        ("data 5, pass:2 50, gap 5, forward 10, backward 20, update 3", [65, 20, 0, 3, 0]),
        # accumulation over batches
        (
            "data 5, forward 10, backward 20, gap 2, data 6, gap 1, forward 10, backward 20, gap 3, update 4",
            [21, 40, 5, 4, 0],
        ),
        # accumulation within a batch
        ("data 5, forward 10, backward 20, gap 2, forward 10, backward 20, gap 3, update 4", [20, 40, 5, 4, 0]),
        # two networks in turn
        (f"{PLAIN}, gap 2, forward 11, backward 21, gap 6, update 4, gap 8", [21, 41, 6, 7, 10]),
        # a pass that leads to the next gradients
        (
            "data 5, forward 1, backward 2, update 3, gap 2, pass:1 9, gap 1, forward 11, backward 21, update 4",
            [22, 23, 0, 7, 2],
        ),
        # two networks, updated together
        (
            "data 5, forward 10, backward 20, forward 11, backward 21, gap 1, update 3, gap 2, update 4",
            [21, 41, 3, 7, 0],
        ),
        ("forward 10, backward 20, update 3", [10, 20, 0, 3, 0]),  # nothing fetched
    ],
)
def test_sections_divide_the_step(text, expected):
    assert [lengths(text).get(name, 0) for name in PARTS] == expected


def test_a_cell_that_holds_the_whole_step_is_no_pass():
    around = Mark(Kind.SECTION, 3, 1, 0, 5, 38)
    assert lengths(PLAIN, [around]) == {"forward": 10, "backward": 20, "optimizer": 3}
    assert not [item for item in structure("forward 10, backward 20, update 3", [around])[1].passes if item.subject]


def test_a_step_that_ran_line_by_line_has_no_structure():
    step, marks = made(PLAIN)
    assert structures([step], marks, [(7, 9)]) == {}
    assert 0 in structures([step], marks, [(step.end, step.end + 9)])


def test_operators_are_of_the_section_in_which_they_started_whatever_they_are_called():
    text = "data 5, gap 4, forward 10, backward 20, gap 7, update 3, gap 100"
    step, marks = made(text)
    names = {6: "Mul", 12: "MatMul", 20: "MatMul", 40: "Mul", 41: "AllReduce", 47: "Adam", 50: "Assign", 60: "ReluGrad"}
    executions = [Execution(name, at, 1) for at, name in names.items()]
    placed = place(executions, [step], structures([step], marks))
    assert [item.phase for item in placed] == [
        "forward", "forward", "backward", "gradients", "communication", "optimizer", "after", "after",
    ]  # fmt: skip


def again(*texts):
    steps, marks = [], []
    for number, text in enumerate(texts):
        step, mine = made(text, 1000 * number)
        steps.append(step)
        marks += mine
    return repeated_passes(structures(steps, marks), CALLS)


def test_a_network_that_runs_forward_twice_per_step_is_told_with_its_calls():
    text = "data 5, forward:1 10, backward 20, update 3, pass:2 8"
    (found,) = again(text, text)
    assert found.pop("sites") == [
        {"site": "train.py:41", "per_step": 1.0, "gradient": True, "dur_ns": 10},
        {"site": "train.py:58", "per_step": 1.0, "gradient": False, "dur_ns": 8},
    ]
    assert found == {"network": "Net", "per_step": 2.0, "steps": 2}
    (found,) = again(text.replace("pass:2", "pass:3"))  # a copy of the network is the network again
    assert found["per_step"] == 2.0


@pytest.mark.parametrize(
    "text",
    [
        "data 5, forward:1 10, backward 20, forward:1 10, backward 20, update 3",
        "data 5, forward:4 10, backward 20, update 3, pass:5 8",
    ],
    ids=["accumulation", "two networks of MindSpore's own class"],
)
def test_passes_that_are_no_repetition(text):
    assert again(text) == []
