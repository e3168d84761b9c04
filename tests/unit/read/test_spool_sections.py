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


def test_what_comes_before_a_backward_pass_is_no_forward_pass_where_neither_batch_nor_network_is_known():
    step, marks = made("gap 50, backward 20, update 3")
    assert structures([step], marks) == {}


def test_a_wait_that_was_sampled_longer_than_until_the_backward_pass_divides_nothing():
    step, marks = made("data 50, update 3")
    under = Mark(Kind.SECTION, FLAGS["backward"], 0, 0, 30, 50)
    assert structures([step], [*marks, under]) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "data 5, forward 10, backward 20, update 3",
            {"forward": 10, "backward": 20, "optimizer": 3}, id="plain",
        ),
        pytest.param(
            "data 5, gap 4, forward 10, gap 1, backward 20, gap 7, update 3, gap 100",
            {"forward": 15, "backward": 20, "gradients": 7, "optimizer": 3, "after": 100}, id="mixup, clipping, average",
        ),
        pytest.param(
            "data 5, forward 10, backward 20, update 3, pass:2 50, gap 5",
            {"forward": 10, "backward": 20, "optimizer": 3, "after": 55}, id="a second forward pass behind the update",
        ),
        pytest.param(
            "data 5, forward 10, backward 20, update 3, gap 2, forward 50, gap 5",
            {"forward": 10, "backward": 20, "optimizer": 3, "after": 57}, id="one whose gradients nobody asks for",
        ),
        pytest.param(
            "data 5, pass:2 50, gap 5, forward 10, backward 20, update 3",
            {"forward": 65, "backward": 20, "optimizer": 3}, id="a forward pass before the gradients",
        ),
        pytest.param(
            "data 5, forward 10, backward 20, gap 2, data 6, gap 1, forward 10, backward 20, gap 3, update 4",
            {"forward": 21, "backward": 40, "gradients": 5, "optimizer": 4}, id="accumulation over batches",
        ),
        pytest.param(
            "data 5, forward 10, backward 20, gap 2, forward 10, backward 20, gap 3, update 4",
            {"forward": 20, "backward": 40, "gradients": 5, "optimizer": 4}, id="accumulation within a batch",
        ),
        pytest.param(
            "data 5, forward 10, backward 20, update 3, gap 2, forward 11, backward 21, gap 6, update 4, gap 8",
            {"forward": 21, "backward": 41, "gradients": 6, "optimizer": 7, "after": 10}, id="two networks in turn",
        ),
        pytest.param(
            "data 5, forward 1, backward 2, update 3, gap 2, pass:1 9, gap 1, forward 11, backward 21, update 4",
            {"forward": 22, "backward": 23, "optimizer": 7, "after": 2}, id="a pass that leads to the next gradients",
        ),
        pytest.param(
            "data 5, forward 10, backward 20, forward 11, backward 21, gap 1, update 3, gap 2, update 4",
            {"forward": 21, "backward": 41, "gradients": 3, "optimizer": 7}, id="two networks, updated together",
        ),
        pytest.param(
            "forward 10, backward 20, update 3", {"forward": 10, "backward": 20, "optimizer": 3}, id="nothing fetched"
        ),
    ],
)  # fmt: skip
def test_sections_divide_the_step(text, expected):
    assert lengths(text) == expected


def test_a_cell_that_holds_the_whole_step_is_no_pass():
    step, _ = made("data 5, forward 10, backward 20, update 3")
    around = Mark(Kind.SECTION, 3, 1, 0, step.start + 5, step.end)
    assert lengths("data 5, forward 10, backward 20, update 3", [around]) == {
        "forward": 10, "backward": 20, "optimizer": 3,
    }  # fmt: skip
    assert not [item for item in structure("forward 10, backward 20, update 3", [around])[1].passes if item.subject]


def test_steps_without_a_backward_pass_and_evaluations_have_no_structure():
    step, marks = made("data 5, pass:1 10")
    assert structures([step], marks) == {}
    step, marks = made("data 5, forward 10, backward 20")
    step.kind = "eval"
    assert structures([step], marks) == {}


def test_a_step_that_ran_line_by_line_has_no_structure():
    step, marks = made("data 5, forward 10, backward 20, update 3")
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
    assert again(text, text) == [
        {
            "network": "Net",
            "per_step": 2.0,
            "steps": 2,
            "sites": [
                {"site": "train.py:41", "per_step": 1.0, "gradient": True, "dur_ns": 10},
                {"site": "train.py:58", "per_step": 1.0, "gradient": False, "dur_ns": 8},
            ],
        }
    ]


def test_a_copy_of_the_network_is_the_network_again():
    (found,) = again("data 5, forward:1 10, backward 20, update 3, pass:3 8")
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
