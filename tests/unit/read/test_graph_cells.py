"""Cells of graphs: intervals from the names of operators in a row."""

from __future__ import annotations

import pytest

from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.graph_cells import TRACK, add_graph_cells, cells_of
from pipeprof.read.spool.operators import Placed
from pipeprof.read.tables.rows import RankRows
from pipeprof.record.schema import BY_NAME

NET = "Default/network-WithLossCell/_backbone-Net"


def spans(*operators):
    out = RankRows(0, 0, 0)
    add_graph_cells([Placed(Execution(name, at, dur), step, "forward", name) for step, name, at, dur in operators], out)
    rows = [dict(zip(BY_NAME["span"].column_names, row, strict=True)) for row in out.rows["span"]]
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


def test_a_step_and_another_cell_end_an_interval():
    rows = spans((0, "Default/a-A/x-op0", 0, 1), (0, "Default/b-B/y-op0", 2, 1), (0, "Default/a-A/x-op1", 4, 1),
                 (1, "Default/a-A/x-op0", 8, 1))  # fmt: skip
    assert [(start, name) for start, _, _, name in rows] == [(0, "a-A"), (2, "b-B"), (4, "a-A"), (8, "a-A")]


def test_what_runs_side_by_side_is_cut_so_that_intervals_do_not_cross():
    rows = spans((0, "Default/a-A/x-op0", 0, 10), (0, "Default/b-B/y-op0", 4, 10))
    assert [(start, -length) for start, length, _, _ in rows] == [(0, 4), (4, 10)]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        (
            f"Gradients/{NET}/fc-Dense/Grad_MatMul/MatMul-op1",
            ["Gradients", "network-WithLossCell", "_backbone-Net", "fc-Dense"],
        ),
        ("Default/optimizer-Momentum/ApplyMomentum-op0", ["optimizer-Momentum"]),
        ("Default/BiasAdd-op0", []),
        ("MatMul#3", []),
    ],
)
def test_cells_of_a_name(name, cells):
    assert cells_of(name) == cells
