"""Where operators come from in the program, and the calls of cells, from events of a process."""

from pathlib import Path

import pytest

from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.call_sites import CallSites, by_line, told_apart
from pipeprof.read.spool.marks import Kind, Mark, Marks
from pipeprof.read.spool.operators import Placed
from pipeprof.read.spool.process import Process
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


def process(*events, folder=Path("no-such-spool")):
    return Process(folder, {}, [], list(events))


def placed(*names, step=0):
    return [Placed(Execution(name, 200 + at, 1), step, "forward", name) for at, name in enumerate(names)]


def test_the_kth_of_a_type_has_the_frames_of_the_kth_launch_innermost_first():
    led = [Execution("Mul", 12, 1), Execution("Mul", 35, 1), Execution("Add", 55, 1), Execution("Late", 101, 1)]
    found = CallSites(process(LINES), led).of(placed("Mul", "Add", "Mul", "Late"))
    assert found == [("t.py(3): step", "t.py(9): main"), ("t.py(9): main",), ("t.py(4): step", "t.py(9): main"), ()]


def test_what_a_step_that_ran_line_by_line_launched_itself_has_the_frames_of_its_line():
    execution = Execution("Mul", 35, 1)
    found = CallSites(process(LINES), [Execution("Mul", 12, 1), execution]).of([Placed(execution, None, "", "Mul#2")])
    assert found == [("t.py(4): step", "t.py(9): main")]


def test_a_step_that_begins_when_the_lines_are_written_did_not_run_line_by_line():
    assert by_line(process(LINES, {**LINES, "rows": []})) == [(10, 50)]


def test_another_number_of_launches_has_no_frames():
    assert CallSites(process(LINES), [Execution("Mul", 12, 1)]).of(placed("Mul", "Mul")) == [(), ()]


def test_one_name_launched_from_two_lines_is_two_operators():
    """PyNative gives operators of the same shapes in two layers one name."""
    led = [Execution("Default/BiasAdd-op0", 12, 1), Execution("Default/BiasAdd-op0", 35, 1)]
    again = [*placed(*["Default/BiasAdd-op0"] * 2), *placed(*["Default/BiasAdd-op0"] * 2, step=1)]
    frames = CallSites(process(LINES), led).of(again)
    assert [site[0] for site in frames] == ["t.py(3): step", "t.py(4): step"] * 2
    assert [item.name for item in told_apart(again, frames)] == ["Default/BiasAdd-op0", "Default/BiasAdd-op0#2"] * 2


def test_one_name_launched_from_one_line_is_one_operator_wherever_its_line_is_not_known():
    items = placed(*["Default/BiasAdd-op0"] * 3)
    frames = [("t.py(3): step",), (), ("t.py(3): step",)]
    assert {item.name for item in told_apart(items, frames)} == {"Default/BiasAdd-op0"}


def test_a_name_of_its_own_is_none_that_another_operator_has():
    items = placed("Default/Mul-op0", "Default/Mul-op0#2", "Default/Mul-op0")
    names = [item.name for item in told_apart(items, [("a",), ("b",), ("c",)])]
    assert names == ["Default/Mul-op0", "Default/Mul-op0#2", "Default/Mul-op0#3"]


def test_what_pynative_runs_in_a_graph_without_cells_has_its_line_and_not_the_optimizer_that_was_compiled():
    led = [Execution("Default/Conv2D-op0", 12, 1), Execution("Default/ApplyMomentum-op0", 35, 1)]
    update, unit = Mark(Kind.UPDATE, 0, 7, 0, 201, 209), {"e": "unit", "t": 1, "number": 7, "owner": "Momentum"}
    recorded = process(LINES, MOMENTUM, unit)
    recorded.marks = Marks.of([update])
    found = CallSites(recorded, led).of(placed("Default/Conv2D-op0", "Default/ApplyMomentum-op0"))
    assert found == [
        ("t.py(3): step", "t.py(9): main"), (MOMENTUM["frame"], "t.py(4): step", "t.py(9): main"),
    ]  # fmt: skip


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
    recorded = process(
        {**LINES, "rows": []}, {**OTHER, "frame": frame}, {"e": "unit", "t": 1, "number": 7, "owner": "Mine"}
    )
    recorded.marks = Marks.of([Mark(kind, flag, 7, 0, 150, 250)])
    found = CallSites(recorded, []).of(placed("Default/Mul-op0"))
    assert found == [(frame,) if is_in else ()]


def test_a_program_that_compiles_all_of_its_step_needs_no_call_to_know_its_graph():
    assert CallSites(process(OTHER), []).of(placed("Default/Mul-op0")) == [(OTHER["frame"],)]


def test_an_operator_of_a_graph_has_the_cells_of_its_scope_that_are_the_programs():
    name = "Gradients/Default/network-Loss/net-Net/conv-Conv2d/Mul-op1"
    assert CallSites(process(NETWORK, OTHER), []).of(placed(name)) == [("n.py(2): Net.construct",)]


def test_two_graphs_that_could_both_hold_an_operator_give_it_no_frames():
    again = {**OTHER, "frame": "p.py(1): Third.construct"}
    assert CallSites(process(OTHER), []).of(placed("Default/Mul-op1")) == [("o.py(1): Other.construct",)]
    assert CallSites(process(OTHER, again), []).of(placed("Default/Mul-op1")) == [()]


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


def test_an_operator_of_a_graph_has_the_lines_that_lead_to_it_where_they_were_recorded(tmp_path):
    tmp_path.joinpath("graph-1.lines").write_text(DUMP)
    names = ["Default/network-Loss/net-Net/conv-Conv2d/Conv2D-op0", "Gradients/Default/net-Net/Grad_Mul/Mul-op0"]
    found = CallSites(process(NETWORK, folder=tmp_path), []).of(placed(*names))
    assert found == [
        ("mindspore/nn/layer/conv.py(373): construct", "n.py(7): Net.construct"),
        ("n.py(9): Net.construct",),
    ]


def test_an_operator_that_two_graphs_have_from_different_lines_has_none_of_them(tmp_path):
    for number, text in enumerate((DUMP, DUMP.replace("n.py:9", "n.py:11"))):
        tmp_path.joinpath(f"graph-{number}.lines").write_text(text)
    name = "Gradients/Default/net-Net/Grad_Mul/Mul-op0"
    assert CallSites(process(folder=tmp_path), []).of(placed(name)) == [()]


def test_the_site_of_a_module_of_mindspore_is_the_line_of_the_program_that_calls_it():
    out = RankRows(0, 0, 0)
    layer, stem = "mindspore/nn/layer/conv.py(373): Conv2d.construct", "mindspore/nn/layer/container.py(9): C.construct"
    for frames in ((layer, stem, "n.py(7): Net.construct", "t.py(9): main"), (layer,)):
        out.stack_id(frames)
    columns = BY_NAME["stack"].column_names
    rows = [dict(zip(columns, row, strict=True)) for row in out.rows["stack"]]
    assert [row["site"] for row in rows] == ["t.py(9): main", *["n.py(7): Net.construct"] * 3, None]


def test_calls_of_cells_become_spans_in_the_cells_around_them():
    out = RankRows(0, 0, 100)
    kinds = [["Net", -1, "n.py(2): Net.construct"], ["fc-Dense", 0, ""], ["act-ReLU", 1, "m.py(5): ReLU.construct"]]
    add_cells(
        process({"e": "cells", "t": 1, "kinds": kinds, "rows": [[0, 110, 190], [1, 120, 150], [2, 130, 140]]}), out
    )
    columns = BY_NAME["span"].column_names
    rows = [dict(zip(columns, row, strict=True)) for row in out.rows["span"]]
    assert [(row["name"], row["scope"], row["start_ns"], row["dur_ns"]) for row in rows] == [
        ("Net", None, 10, 80), ("fc-Dense", "Net", 20, 30), ("act-ReLU", "Net/fc-Dense", 30, 10),
    ]  # fmt: skip
    assert {row["category"] for row in rows} == {"cell"}
    frames = {row[0]: (row[1], row[2]) for row in out.rows["stack"]}
    outer, text = frames[rows[2]["stack_id"]]
    assert (text, frames[outer][1]) == ("m.py(5): ReLU.construct", "n.py(2): Net.construct")
    assert rows[1]["stack_id"] == rows[0]["stack_id"]


def test_a_gradient_of_pytorch_has_the_line_of_the_last_operator_with_its_number():
    """What needs no gradient, such as an operator of a dataset, has the number of the next one that does."""
    led = [
        Execution("aten::sqrt", 12, 1, phase="data", sequence=7),
        Execution("aten::conv2d", 32, 9, sequence=7),
        Execution("aten::convolution_backward", 60, 5, phase="backward", sequence=7),
        Execution("torch::autograd::AccumulateGrad", 70, 5, phase="backward", sequence=99),
    ]
    later = [Placed(one, 0, one.phase or "forward", one.name) for one in led]
    assert [frames[0] for frames in CallSites(process(LINES), led).of(later)] == [
        "t.py(3): step", "t.py(4): step", "t.py(4): step", "t.py(9): main",
    ]  # fmt: skip
