"""The examples of the API run as they are printed, notebook included."""

import importlib.metadata
import json
import os
from pathlib import Path

import pytest

from pipeprof.record.run import load

pytestmark = [pytest.mark.mindspore]
EXAMPLES = Path(__file__).parents[2] / "examples"
PLUGIN = "pipeprof.inprocess.pytest_plugin"

# Runs the code cells of a notebook in order, and shows the last expression of each, as a kernel does.
CELLS = """
import ast, json, sys
space = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), space)
        if last is not None:
            print(repr(eval(compile(ast.Expression(last.value), "cell", "eval"), space)))
"""


@pytest.fixture
def here(pipeprof):
    """Runs words of the command line in a folder of its own; the example must end well."""

    def run(*words):
        done = pipeprof.plain([pipeprof.python, *map(str, words)], cwd=pipeprof.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return pipeprof.folder, done.stdout

    return run


def test_the_schedule_example_profiles_two_cycles(here):
    folder, text = here(EXAMPLES / "api_schedule.py")
    assert [line for line in text.splitlines() if line.startswith("after step")] == [
        "after step 18: cycle-0",
        "after step 27: cycle-1",
    ]
    assert text.count("\nforward and backward ") == 2  # most of a step by its total, whatever the machine does besides
    assert sorted(path.name for path in folder.joinpath("profiled").glob("*.gz")) == [
        "cycle-0.json.gz",
        "cycle-1.json.gz",
    ]


def test_the_callback_example_tells_the_epochs_apart(here):
    folder, text = here(EXAMPLES / "api_callback.py")
    assert "peak of the memory pool" in text
    assert load(folder / "profiled-model").manifest.tables["step"] == 40


def test_the_decorator_example_makes_a_run_per_call(here):
    _, text = here(EXAMPLES / "api_decorator.py")
    assert "['profiled-inference', 'profiled-inference-2']" in text
    assert "model_inference" in text


def test_the_pytest_example_leaves_runs_and_numbers(here, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # nothing runs beside it: benchmarks count
    known = any(point.value == PLUGIN for point in importlib.metadata.entry_points(group="pytest11"))
    plugin = () if known else ("-p", PLUGIN)
    options = ("-q", "-p", "no:cacheprovider", "--rootdir", ".", "-c", os.devnull)
    folder, _ = here("-m", "pytest", *plugin, *options, EXAMPLES / "api_pytest.py")
    assert sorted(path.name for path in folder.glob(".pipeprof/*/*")) == ["benchmark", "run", "run"]


def test_every_cell_of_the_notebook_runs(here):
    notebook = EXAMPLES / "runs_as_dataframes.ipynb"
    assert all(not cell.get("outputs") for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"])
    _, text = here("-c", CELLS, notebook)
    assert "mean_ms" in text
    assert "'complete'" in text
