"""Which sections of a PyNative step are marked while an op window is open, and from which line operators come."""

import json
import os
import sys
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

FORWARD, BACKWARD, PASS = 1, 2, 3


class Cell:
    """A cell as MindSpore's: callable, with cells and parameters of its own."""

    def __init__(self, parameters=(), cells=(), body=lambda: None):
        self.parameters, self.children, self.body = list(parameters), list(cells), body

    def __call__(self):
        return self.construct()

    def construct(self):
        for cell in self.children:
            cell()
        return self.body()

    def cells(self):
        return self.children

    def cells_and_names(self):
        first = {cell: str(at) for at, cell in reversed(list(enumerate(self.children)))}
        return [("", self), *((name, cell) for cell, name in first.items())]

    def get_parameters(self):
        return iter(self.parameters + [item for cell in self.children for item in cell.get_parameters()])


class Executor:
    def new_graph(self, what, *args):
        pass

    end_graph = grad = new_graph

    def value_and_grad(self, what):
        self.new_graph(what)
        what()
        self.end_graph(what)
        self.grad(what)


@pytest.fixture
def watched(probe, rec, mindspore, monkeypatch):
    """The probe's sections on fresh copies of the classes above, with an open window; `marks()` closes it."""
    mindspore.get_context = {"mode": 1}.get
    cell = type("Cell", (Cell,), {"__call__": Cell.__call__})
    executor = type("Executor", (Executor,), dict(vars(Executor)))
    sections, settled = probe.sections.Sections(), []
    monkeypatch.setattr(probe.sections, "SECTIONS", sections)
    sections.install_cell(cell)
    probe.sections.install_gradients(executor)
    rec.open()
    sections.open(lambda: settled.append(True))

    def marks():
        sections.close()
        rec._pack()
        found = [probe.marks.MARK.unpack(mark) for mark in rec._pending]
        calls = [json.loads(line) for line in rec._lines]
        return [(flag, depth) for kind, flag, _, depth, _, _ in found if kind == probe.recorder.SECTION], calls

    return SimpleNamespace(Cell=cell, executor=executor(), sections=sections, marks=marks, settled=settled)


def test_a_gradient_function_is_a_forward_and_a_backward_pass(watched):
    net = watched.Cell(["weight"])

    def forward():
        return net()

    watched.executor.value_and_grad(forward)
    marks, calls = watched.marks()
    assert marks == [(PASS, 1), (FORWARD, 0), (BACKWARD, 0)]
    assert [(call["cell"], call["own"]) for call in calls] == [("", False), ("Cell", True)]
    assert all(Path(call["site"].rpartition(":")[0]).name == Path(__file__).name for call in calls)


def test_what_a_network_calls_is_part_of_it_and_cells_without_parameters_are_no_passes(watched):
    net = watched.Cell(cells=[watched.Cell(["weight"]), watched.Cell(["bias"])])
    watched.executor.value_and_grad(net)
    net()
    watched.Cell()()
    assert watched.marks()[0] == [(FORWARD, 0), (BACKWARD, 0), (PASS, 0)]


@pytest.fixture
def cells(told):
    """The event of the calls of cells, if there is one: kinds by name and outer kind, and the kinds in order of calls."""
    return lambda: [([(name, around) for name, around, _ in one["kinds"]], one["rows"]) for one in told("cells")]


def test_calls_of_cells_lie_in_each_other_and_wait(probe, cells, watched):
    inner = watched.Cell(["bias"])
    net = watched.Cell(["weight"], cells=[inner, watched.Cell(), inner])
    waits = []
    probe.cells.CELLS.start(lambda: waits.append(True))
    watched.executor.value_and_grad(net)
    probe.cells.CELLS.stop()
    net()
    ((kinds, rows),) = cells()
    assert kinds == [("Cell", -1), ("0-Cell", 0), ("1-Cell", 0)]
    assert [kind for kind, _, _ in rows] == [0, 1, 2, 1]
    (_, begin, end), *inside = rows
    assert all(begin < one and other < end for _, one, other in inside)
    assert all(before[2] < after[1] for before, after in pairwise(inside))
    assert len(waits) == 2 * len(rows)


@pytest.mark.parametrize("mode", [0, 1])
def test_a_cell_that_raises_has_an_end_and_leaves_the_next_one_whole_where_python_launches_the_operators(
    probe, cells, watched, mindspore, mode
):
    mindspore.get_context = {"mode": mode}.get
    probe.cells.CELLS.start(lambda: None)
    with pytest.raises(ZeroDivisionError):
        watched.Cell(["weight"], body=lambda: 1 / 0)()
    watched.Cell(["weight"])()
    assert watched.marks()[0] == [(PASS, 0), (PASS, 0)]
    probe.cells.CELLS.stop()
    assert [(kinds, len(rows)) for kinds, rows in cells()] == [([("Cell", -1)], 2)][:mode]


def test_without_a_window_cells_are_called_as_before(watched):
    inside = watched.Cell.__call__
    watched.marks()
    assert watched.Cell.__call__ is not inside
    assert watched.Cell.__call__ is Cell.__call__
    before = len(watched.settled)
    net = watched.Cell(["weight"])
    watched.executor.value_and_grad(net)
    net()
    assert len(watched.settled) == before


@pytest.fixture
def launched(probe, rec, watched, tmp_path, monkeypatch, told):
    """`launched(text)` runs the text's function `step` line by line; returns the line of each launch, and callers."""
    monkeypatch.setattr(probe.recorder, "now", count(1).__next__)  # one that has no line of its own

    def launched(text):
        lines, now = probe.lines.Lines(), []
        program = tmp_path / "program.py"
        program.write_text(text)
        library = "def launch(name):\n    seen.append((name, clock()))\n"
        spaces = {}, {"seen": now, "clock": probe.recorder.now, "__name__": "mindspore.ops"}
        for code, path, space in zip(
            (text, library), (program, tmp_path / "mindspore" / "ops.py"), spaces, strict=True
        ):
            exec(compile(code, str(path), "exec"), space)  # noqa: S102 - the program of this test
        rec.open()
        lines.start(lambda: None)
        spaces[0]["step"](spaces[1]["launch"])
        lines.stop()
        assert sys.gettrace() is None
        (event,) = told("lines")
        at = {name: max(row for row in event["rows"] if row[0] <= time)[1] for name, time in now}
        sites = [*event["sites"], None]
        places = " ".join(f"{name}{(sites[row] or '').removeprefix(str(program))}" for name, row in at.items())
        return places, {sites[event["callers"][row]].rpartition(": ")[2] for row in at.values() if sites[row]}

    return launched


def test_operators_come_from_the_line_that_ran(launched):
    places, callers = launched("def step(launch):\n    launch('a')\n    for name in 'bc':\n        launch(name)\n")
    assert places == "a(2): step b(4): step c(4): step"
    assert callers == {"launched.<locals>.launched"}


PYTHON_FIRST = """\
def iou(at):
    return at
def targets(launch):
    for at in range(9):
        iou(at)
    launch('late')
def step(launch):
    launch('a')
    targets(launch)
    launch('b')
"""


@pytest.mark.parametrize(
    ("limit", "value", "found"),
    [
        ("MOST_OF_ONE", 5, "a(8): step late(9): step b(10): step"),  # as the line that calls what runs long in Python
        ("MOST", 8, "a(8): step late b"),
    ],
)
def test_behind_the_most_lines_of_a_function_or_a_step_none_is_known(launched, probe, monkeypatch, limit, value, found):
    monkeypatch.setattr(probe.lines, limit, value)
    assert launched(PYTHON_FIRST)[0] == found


def test_a_process_that_is_forked_in_a_step_is_not_run_line_by_line(probe, rec, watched):
    lines = probe.lines.Lines()
    rec.open()
    lines.start(lambda: None)
    child = os.fork()
    if child == 0:
        os._exit(0 if sys.gettrace() is None else 1)
    traced = sys.gettrace() is not None
    lines.stop()
    assert (traced, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) == (True, 0)


def test_what_is_written_into_a_function_while_its_line_is_waited_for_stays(probe, rec, watched):
    """By a handler of a signal, or a thread: `stop = True`."""
    handlers, lines = [], probe.lines.Lines()

    def train():
        stop = False

        def handler():
            nonlocal stop
            stop = True

        handlers.append(handler)
        return stop

    rec.open()
    lines.start(lambda: handlers and handlers.pop()())
    stopped = train()
    lines.stop()
    assert stopped
