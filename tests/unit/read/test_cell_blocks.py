"""Intervals within steps: cells of graphs, from names of operators in a row, and calls that waited for the network."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.operators import Placed
from pipeprof.read.spool.process import Process
from pipeprof.read.spool.spans import TRACK, add_cell_blocks, add_syncs, cells_of
from pipeprof.read.spool.step_rows import Step
from pipeprof.read.tables.rows import RankRows
from pipeprof.record.schema import BY_NAME

NET = "Default/network-WithLossCell/_backbone-Net"


def phase_of(name):
    return "backward" if name.startswith("Gradients") else "optimizer" if "Apply" in name else "forward"


def table(out, name):
    return [dict(zip(BY_NAME[name].column_names, row, strict=True)) for row in out.rows[name]]


def spans(*operators, events=(), parameters=None):
    out = RankRows(0, 0, 0)
    placed = [Placed(Execution(name, at, dur), step, phase_of(name), name) for step, name, at, dur in operators]
    process = SimpleNamespace(all=lambda _: events)
    add_cell_blocks(
        process, placed, SimpleNamespace(parameters_of=lambda item: (parameters or {}).get(item.name, ())), out
    )
    rows = table(out, "span")
    assert all(row["track"] == TRACK and row["category"] == "cell" for row in rows)
    return sorted((row["start_ns"], -row["dur_ns"], row["scope"] or "", row["name"]) for row in rows)


def test_operators_in_a_row_are_in_one_call_of_their_cells():
    assert spans(
        (0, f"{NET}/conv1-Conv2d/Conv2D-op0", 10, 5), (0, f"{NET}/conv1-Conv2d/BiasAdd-op0", 16, 2),
        (0, f"{NET}/fc-Dense/MatMul-op0", 20, 10),
    ) == [
        (10, -20, "", "network-WithLossCell"), (10, -20, "network-WithLossCell", "_backbone-Net"),
        (10, -8, "network-WithLossCell/_backbone-Net", "conv1-Conv2d"),
        (20, -10, "network-WithLossCell/_backbone-Net", "fc-Dense"),
    ]  # fmt: skip


def test_a_step_and_another_cell_end_an_interval_also_where_operators_run_side_by_side():
    rows = spans((0, "Default/a-A/x-op0", 0, 1), (0, "Default/b-B/y-op0", 2, 1), (0, "Default/a-A/x-op1", 4, 1),
                 (1, "Default/a-A/x-op0", 8, 1))  # fmt: skip
    assert [(start, name) for start, _, _, name in rows] == [(0, "a-A"), (2, "b-B"), (4, "a-A"), (8, "a-A")]
    rows = spans((0, "Default/a-A/x-op0", 0, 10), (0, "Default/b-B/y-op0", 4, 10))
    assert [(start, -length) for start, length, _, _ in rows] == [(0, 4), (4, 10)]


def test_operators_of_a_compiled_function_are_in_the_cells_whose_parameters_they_read():
    rows = spans(
        (0, "Default/Conv2D-op0", 0, 10), (0, "Default/BiasAdd-op0", 10, 2), (0, "Default/ReLU-op0", 12, 1),
        (0, "Gradients/Default/Grad_Conv2D/Conv2DBackpropInput-op0", 20, 9), (0, "Default/ApplyMomentum-op0", 30, 1),
        parameters={
            "Default/Conv2D-op0": ("net.c1.weight",), "Default/BiasAdd-op0": ("net.c1.bias",),
            "Gradients/Default/Grad_Conv2D/Conv2DBackpropInput-op0": ("net.c1.weight",),
            "Default/ApplyMomentum-op0": ("net.c1.weight",),
        },
    )  # fmt: skip
    assert rows == [
        (0, -12, "", "net"), (0, -12, "net", "c1"),
        (20, -9, "", "Gradients"), (20, -9, "Gradients", "net"), (20, -9, "Gradients/net", "c1"),
    ]  # fmt: skip


def test_pynative_steps_have_the_cells_of_the_step_whose_calls_were_recorded():
    """The third step launches other operators, and has none."""
    event = {"kinds": [("Net", -1, ""), ("fc-Dense", 0, "")], "rows": [(0, 0, 50), (1, 10, 30)]}
    rows = spans(
        (0, "ReLU#1", 5, 1), (0, "MatMul#1", 15, 5), (0, "Mul#1", 60, 5),
        (1, "ReLU#1", 105, 1), (1, "MatMul#1", 115, 5), (1, "Mul#1", 160, 5),
        (2, "ReLU#1", 205, 1), (2, "MatMul#1", 215, 5), (2, "MatMul#2", 225, 5),
        events=[event],
    )  # fmt: skip
    assert rows == [(105, -15, "", "Net"), (115, -5, "Net", "fc-Dense")]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        (f"Gradients/{NET}/fc-Dense/Grad_MatMul/MatMul-op1", "Gradients network-WithLossCell _backbone-Net fc-Dense"),
        ("Default/optimizer-Momentum/ApplyMomentum-op0", "optimizer-Momentum"),
        ("Default/BiasAdd-op0", ""),
        ("Gradients/Default/Grad_Conv2D/Conv2DBackpropInput-op0", ""),
        ("MatMul#3", ""),
    ],
)
def test_cells_of_a_name(name, cells):
    assert list(cells_of(name)) == cells.split()


def test_calls_that_waited_for_the_network_go_to_the_step_they_began_in():
    waits = [(5, 9), (110, 115), (120, 150), (195, 230), (250, 260)]
    marks = [*(Mark(Kind.SYNC, 0, 1, 0, *wait) for wait in waits), Mark(Kind.SYNC, 0, 7, 0, 111, 112)]  # 7: no line
    event = {"e": "sync_site", "t": 0, "number": 1, "call": "item", "site": "train.py:3", "via": ""}
    out = RankRows(0, 0, 0)
    add_syncs(
        Process(Path("proc"), {}, marks, [event]),
        [Step("train", 100, 150), Step("train", 150, 200)],
        out,
        first_step=10,
    )
    rows = table(out, "sync")
    assert [(row["step"], row["call"], row["count"], row["total_ns"], row["max_ns"]) for row in rows] == [
        (None, "item", 2, 14, 10), (10, "item", 2, 35, 30), (11, "item", 1, 35, 35), (10, None, 1, 1, 1),
    ]  # fmt: skip
    assert (rows[0]["site"], rows[0]["via"]) == ("train.py:3", None)
