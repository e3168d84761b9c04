"""Which forward operator a backward operator belongs to, by types in the order in which PyNative launched them."""

from pathlib import Path

import pytest

from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool import call_sites
from pipeprof.read.spool.call_sites import CallSites, forward_of
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.operators import Placed
from pipeprof.read.spool.process import Process
from pipeprof.read.spool.sections import BACKWARD, FORWARD

# As MindSpore 2.10 launched them for attention (query and key once projected, softmax, values) with its cross entropy behind.
ATTENTION = ["MatMul", "BiasAdd", "BatchMatMul", "Div", "Softmax", "BatchMatMul", "MatMul", "BiasAdd"]
GRADIENTS = [
    "Ones",
    "BiasAddGrad",
    "MatMul",
    "MatMul",
    "BatchMatMul",
    "BatchMatMul",
    "Expand/_SoftmaxBackward/Mul-op0",
    "Expand/_SoftmaxBackward/Sub-op0",
    "Div",
    "BatchMatMul",
    "BatchMatMul",
    "Add",
    "BiasAddGrad",
    "MatMul",
    "MatMul",
]
OWNERS = [7, 7, 6, 6, 5, 5, 4, 4, 3, 2, 2, 2, 1, 0, 0]


def launched(names):
    return [Execution(name, time, 1) for time, name in enumerate(names)]


def owners(forward, backward):
    return forward_of(launched(forward.split()), launched(backward.split()))


def test_gradients_belong_to_the_operators_of_the_forward_pass_in_reverse_order():
    assert forward_of(launched(ATTENTION), launched(GRADIENTS)) == OWNERS


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (
            "Zeros AddExt Concat LSTM Mul ReduceSum",
            "Tile Mul Mul StridedSliceGrad Add Zeros LSTMGrad",
            [5, 4, 4, None, 4, 4, 3],
        ),
        ("MatMul SumExt", "BroadcastTo MatMul MatMul", [1, 0, 0]),
        ("Conv2D Tanh", "ReluGrad Conv2DBackpropInput Conv2DBackpropFilter", [None, 0, 0]),
        ("Conv2D ReLU", "ReluGrad Conv2DBackpropInput Conv2DBackpropFilter", [1, 0, 0]),
        ("MatMul", "Unheard", [None]),
        ("", "MatMul", [None]),
        ("MatMul", "", []),
    ],
)
def test_what_fits_nothing_belongs_to_nothing(forward, backward, expected):
    assert owners(forward, backward) == expected


def test_a_step_of_too_many_operators_is_left(monkeypatch):
    monkeypatch.setattr(call_sites, "MOST_WORK", 10)
    assert owners("MatMul", "MatMul MatMul") == [None, None]


def test_a_backward_operator_has_the_line_of_its_forward_operator_in_every_step():
    lines = {
        "e": "lines", "t": 1000, "sites": ["t.py(9): main", "t.py(3): scores", "t.py(4): output"], "callers": [-1, 0, 0],
        "rows": [[0, 1], [5, 2], [8, 0]],
    }  # fmt: skip
    recorded = Process(
        Path("no-such-spool"),
        {},
        [Mark(Kind.SECTION, FORWARD, 0, 0, 0, 8), Mark(Kind.SECTION, BACKWARD, 0, 0, 8, 90)],
        [lines],
    )
    backward = [Execution(one.name, one.start_ns + len(ATTENTION), 1) for one in launched(GRADIENTS)]
    phases = ["forward"] * len(ATTENTION) + ["backward"] * len(GRADIENTS)
    later = [
        Placed(Execution(name, 2000 + at, 1), 1, phase, name)
        for at, (name, phase) in enumerate(zip(ATTENTION + GRADIENTS, phases, strict=True))
    ]
    found = CallSites(recorded, [*launched(ATTENTION), *backward]).of(later)[len(ATTENTION) :]
    assert [frames and frames[0] for frames in found] == [
        "t.py(3): scores" if owner < 5 else "t.py(4): output" for owner in OWNERS
    ]
