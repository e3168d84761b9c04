"""Where operators come from in the program, and the calls of cells, from events of a process; gradients have the line
of their forward operator, by types in the order in which PyNative launched them."""

from pathlib import Path

import pytest

from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool import call_sites
from pipeprof.read.spool.call_sites import CallSites, by_line, forward_of, told_apart
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.operators import Placed
from pipeprof.read.spool.process import Process
from pipeprof.read.spool.sections import BACKWARD, FORWARD
from pipeprof.read.spool.spans import add_cells
from pipeprof.read.tables.rows import RankRows
from pipeprof.record.schema import BY_NAME

LINES = {
    "e": "lines", "t": 100, "sites": ["t.py(9): main", "t.py(3): step", "t.py(4): step"], "callers": [-1, 0, 0],
    "rows": [[10, 1], [30, 2], [50, 0]],
}  # fmt: skip
NETWORK = {"e": "modules", "t": 1, "frame": "", "cells": [["network", ""], ["network.net", "n.py(2): Net.construct"]]}
MOMENTUM = {"e": "modules", "t": 1, "frame": "mindspore/nn/optim/momentum.py(190): Momentum.construct", "cells": []}
OTHER = {"e": "modules", "t": 2, "frame": "o.py(1): Other.construct", "cells": []}


BIAS, MUL = "Default/BiasAdd-op0", "Default/Mul-op0"
MAIN, FIRST, LATER = "t.py(9): main", "t.py(3): step", "t.py(4): step"


def process(*events, folder=Path("no-such-spool"), marks=()):
    return Process(folder, {}, list(marks), list(events))


def launched(*launches):
    """(name, start)"""
    return [Execution(name, start, 1) for name, start in launches]


def placed(*names, step=0):
    return [Placed(Execution(name, 200 + at, 1), step, "forward", name) for at, name in enumerate(names)]


def frames(recorded, items, led=()):
    return CallSites(recorded, list(led)).of(items)


def table(out, name):
    return [dict(zip(BY_NAME[name].column_names, row, strict=True)) for row in out.rows[name]]


def test_the_kth_of_a_type_has_the_frames_of_the_kth_launch_innermost_first():
    led = launched(("Mul", 12), ("Mul", 35), ("Add", 55), ("Late", 101))
    found = frames(process(LINES), placed("Mul", "Add", "Mul", "Late"), led)
    assert found == [(FIRST, MAIN), (MAIN,), (LATER, MAIN), ()]
    assert frames(process(LINES), placed("Mul", "Mul"), led[:1]) == [(), ()]  # another number of launches


def test_what_a_step_that_ran_line_by_line_launched_itself_has_the_frames_of_its_line():
    led = launched(("Mul", 12), ("Mul", 35))
    assert frames(process(LINES), [Placed(led[1], None, "", "Mul#2")], led) == [(LATER, MAIN)]
    assert by_line(process(LINES, {**LINES, "rows": []})) == [(10, 50)]  # one that begins as lines are written did not


def test_one_name_launched_from_two_lines_is_two_operators():
    """PyNative gives operators of the same shapes in two layers one name."""
    again = [*placed(BIAS, BIAS), *placed(BIAS, BIAS, step=1)]
    found = frames(process(LINES), again, launched((BIAS, 12), (BIAS, 35)))
    assert [site[0] for site in found] == [FIRST, LATER] * 2
    assert [item.name for item in told_apart(again, found)] == [BIAS, f"{BIAS}#2"] * 2


@pytest.mark.parametrize(
    ("names", "sites", "expected"),
    [
        ([BIAS] * 3, ["a", None, "a"], [BIAS] * 3),  # one line is one operator, wherever its line is not known
        ([MUL, f"{MUL}#2", MUL], ["a", "b", "c"], [MUL, f"{MUL}#2", f"{MUL}#3"]),  # a name is none that another one has
    ],
)
def test_operators_are_told_apart_by_their_lines(names, sites, expected):
    found = told_apart(placed(*names), [(site,) if site else () for site in sites])
    assert [item.name for item in found] == expected


def test_what_pynative_runs_in_a_graph_without_cells_has_its_line_and_not_the_optimizer_that_was_compiled():
    names, unit = (
        ("Default/Conv2D-op0", "Default/ApplyMomentum-op0"),
        {"e": "unit", "t": 1, "number": 7, "owner": "Momentum"},
    )
    recorded = process(LINES, MOMENTUM, unit, marks=[Mark(Kind.UPDATE, 0, 7, 0, 201, 209)])
    found = frames(recorded, placed(*names), launched((names[0], 12), (names[1], 35)))
    assert found == [(FIRST, MAIN), (MOMENTUM["frame"], LATER, MAIN)]


@pytest.mark.parametrize(("kind", "flag", "frame", "is_in"), [
    (Kind.UPDATE, 0, "mindspore/nn/optim/momentum.py(190): Momentum.construct", True),
    (Kind.UPDATE, 0, "mine.py(3): Mine.construct", True),
    (Kind.UPDATE, 0, "t.py(1): loss", False),
    (Kind.CALL, 2, "t.py(1): loss", True),
    (Kind.CALL, 2, "mindspore/nn/optim/momentum.py(190): Momentum.construct", False),
    (Kind.CALL, 3, "t.py(1): loss", False),
])  # fmt: skip
def test_an_optimizer_that_was_compiled_runs_in_calls_of_optimizers_and_other_functions_do_not(
    kind, flag, frame, is_in
):
    events = {**LINES, "rows": []}, {**OTHER, "frame": frame}, {"e": "unit", "t": 1, "number": 7, "owner": "Mine"}
    recorded = process(*events, marks=[Mark(kind, flag, 7, 0, 150, 250)])
    assert frames(recorded, placed(MUL)) == [(frame,) if is_in else ()]


CONV = "network-Loss/net-Net/conv-Conv2d"
THIRD = {**OTHER, "frame": "p.py(1): Third.construct"}


@pytest.mark.parametrize(
    ("events", "name", "expected"),
    [
        ((OTHER,), MUL, ("o.py(1): Other.construct",)),  # a program that compiles all of its step needs no call
        ((OTHER, THIRD), MUL, ()),  # two graphs could both hold it
        ((NETWORK, OTHER), f"Gradients/Default/{CONV}/Mul-op1", ("n.py(2): Net.construct",)),  # cells that are its own
    ],
)
def test_an_operator_of_a_graph_has_the_cells_of_its_scope_that_are_the_programs(events, name, expected):
    assert frames(process(*events), placed(name)) == [expected]


DUMP = """# Fullname with scope: (Default/network-Loss/net-Net/conv-Conv2d/Conv2D-op0)
# In file mindspore/nn/wrap/cell_wrapper.py:440~453, 4~19/    def _no_sens_impl(self, *inputs):/
# In file mindspore/nn/wrap/cell_wrapper.py:442, 15~27/        loss = self.network(*inputs)/
# In file n.py:2~15, 4~25/    def construct(self, x):/
# In file n.py:7, 12~24/        y = self.conv(x)/
# In file n.py:7, 12~21/        y = self.conv(x)/
# In file mindspore/nn/layer/conv.py:372~376, 4~21/    def construct(self, x):/
# In file mindspore/nn/layer/conv.py:373, 17~44/        output = self.conv2d(x, self.weight)/
# Fullname with scope: (Gradients/Default/net-Net/Grad_Mul/Mul-op0)
# Corresponding forward node candidate:
# In file n.py:2~15, 4~25/    def construct(self, x):/
# In file n.py:9, 8~12/        return y * 2/
# Corresponding forward node candidate:
# In file n.py:2~15, 4~25/    def construct(self, x):/
# In file n.py:10, 8~12/        return y * 3/
# Fullname with scope: (Default/Load-op0)
"""


GRADIENT = "Gradients/Default/net-Net/Grad_Mul/Mul-op0"


def test_an_operator_of_a_graph_has_the_lines_that_lead_to_it_where_they_were_recorded(tmp_path):
    tmp_path.joinpath("graph-1.lines").write_text(DUMP)
    assert frames(process(NETWORK, folder=tmp_path), placed(f"Default/{CONV}/Conv2D-op0", GRADIENT)) == [
        ("mindspore/nn/layer/conv.py(373): construct", "n.py(7): Net.construct"), ("n.py(9): Net.construct",),
    ]  # fmt: skip


def test_an_operator_that_two_graphs_have_from_different_lines_has_none_of_them(tmp_path):
    for number, text in enumerate((DUMP, DUMP.replace("n.py:9", "n.py:11"))):
        tmp_path.joinpath(f"graph-{number}.lines").write_text(text)
    assert frames(process(folder=tmp_path), placed(GRADIENT)) == [()]


def test_the_site_of_a_module_of_mindspore_is_the_line_of_the_program_that_calls_it():
    out = RankRows(0, 0, 0)
    layer, stem = "mindspore/nn/layer/conv.py(373): Conv2d.construct", "mindspore/nn/layer/container.py(9): C.construct"
    for stack in ((layer, stem, "n.py(7): Net.construct", MAIN), (layer,)):
        out.stack_id(stack)
    assert [row["site"] for row in table(out, "stack")] == [MAIN, *["n.py(7): Net.construct"] * 3, None]


def test_calls_of_cells_become_spans_in_the_cells_around_them():
    out = RankRows(0, 0, 100)
    kinds = [["Net", -1, "n.py(2): Net.construct"], ["fc-Dense", 0, ""], ["act-ReLU", 1, "m.py(5): ReLU.construct"]]
    calls = [[0, 110, 190], [1, 120, 150], [2, 130, 140]]
    add_cells(process({"e": "cells", "t": 1, "kinds": kinds, "rows": calls}), out)
    rows = table(out, "span")
    assert [(row["name"], row["scope"], row["start_ns"], row["dur_ns"], row["category"]) for row in rows] == [
        ("Net", None, 10, 80, "cell"), ("fc-Dense", "Net", 20, 30, "cell"),
        ("act-ReLU", "Net/fc-Dense", 30, 10, "cell"),
    ]  # fmt: skip
    found = {row[0]: (row[1], row[2]) for row in out.rows["stack"]}
    outer, text = found[rows[2]["stack_id"]]
    assert (text, found[outer][1]) == ("m.py(5): ReLU.construct", "n.py(2): Net.construct")
    assert rows[1]["stack_id"] == rows[0]["stack_id"]


def test_a_gradient_of_pytorch_has_the_line_of_the_last_operator_with_its_number():
    """What needs no gradient, such as an operator of a dataset, has the number of the next one that does."""
    led = [
        Execution("aten::sqrt", 12, 1, phase="data", sequence=7), Execution("aten::conv2d", 32, 9, sequence=7),
        Execution("aten::convolution_backward", 60, 5, phase="backward", sequence=7),
        Execution("torch::autograd::AccumulateGrad", 70, 5, phase="backward", sequence=99),
    ]  # fmt: skip
    later = [Placed(one, 0, one.phase or "forward", one.name) for one in led]
    assert [found[0] for found in frames(process(LINES), later, led)] == [FIRST, LATER, LATER, MAIN]


# As MindSpore 2.10 launched them for attention (query and key once projected, softmax, values) with its cross entropy behind.
ATTENTION = "MatMul BiasAdd BatchMatMul Div Softmax BatchMatMul MatMul BiasAdd"
SOFTMAX = "Expand/_SoftmaxBackward/Mul-op0 Expand/_SoftmaxBackward/Sub-op0"
GRADIENTS = (
    f"Ones BiasAddGrad MatMul MatMul BatchMatMul BatchMatMul {SOFTMAX} Div BatchMatMul BatchMatMul Add"
    " BiasAddGrad MatMul MatMul"
)
OWNERS = [7, 7, 6, 6, 5, 5, 4, 4, 3, 2, 2, 2, 1, 0, 0]


def in_order(names, begin=0):
    return launched(*((name, begin + at) for at, name in enumerate(names.split())))


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (ATTENTION, GRADIENTS, OWNERS),
        ("Zeros AddExt Concat LSTM Mul ReduceSum", "Tile Mul Mul StridedSliceGrad Add Zeros LSTMGrad",
         [5, 4, 4, None, 4, 4, 3]),
        ("MatMul SumExt", "BroadcastTo MatMul MatMul", [1, 0, 0]),
        ("Conv2D Tanh", "ReluGrad Conv2DBackpropInput Conv2DBackpropFilter", [None, 0, 0]),
        ("Conv2D ReLU", "ReluGrad Conv2DBackpropInput Conv2DBackpropFilter", [1, 0, 0]),
        ("MatMul", "Unheard", [None]),
        ("", "MatMul", [None]),
        ("MatMul", "", []),
    ],
)  # fmt: skip
def test_gradients_belong_to_the_operators_of_the_forward_pass_in_reverse_order(forward, backward, expected):
    assert forward_of(in_order(forward), in_order(backward)) == expected


def test_a_step_of_too_many_operators_is_left(monkeypatch):
    monkeypatch.setattr(call_sites, "MOST_WORK", 10)
    assert forward_of(in_order("MatMul"), in_order("MatMul MatMul")) == [None, None]


def test_a_backward_operator_has_the_line_of_its_forward_operator_in_every_step():
    sites, rows = [MAIN, "t.py(3): scores", "t.py(4): output"], [[0, 1], [5, 2], [8, 0]]
    passes = [Mark(Kind.SECTION, FORWARD, 0, 0, 0, 8), Mark(Kind.SECTION, BACKWARD, 0, 0, 8, 90)]
    recorded = process({**LINES, "t": 1000, "sites": sites, "rows": rows}, marks=passes)
    led = [*in_order(ATTENTION), *in_order(GRADIENTS, 8)]
    phases = ["forward"] * 8 + ["backward"] * len(OWNERS)
    later = [
        Placed(Execution(one.name, 2000 + at, 1), 1, phase, one.name)
        for at, (one, phase) in enumerate(zip(led, phases, strict=True))
    ]
    assert [found and found[0] for found in frames(recorded, later, led)[8:]] == [
        "t.py(3): scores" if owner < 5 else "t.py(4): output" for owner in OWNERS
    ]
