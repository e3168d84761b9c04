"""Traces with stacks, shapes, memory and operations against what torch said of them when it recorded them.

Two are stored; where torch is installed (`make test-torch`), it records a third.
"""

import gzip
import json
import math
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from every import every
from kineto_files import imported

import pipeprof

HERE = Path(__file__).resolve().parents[1] / "real" / "key_averages"
TRAINING = HERE.parents[2] / "lab" / "real" / "key_averages" / "train.py"
ASKED = {"key_averages": None, "python_functions": True, "no_python_functions": False}
GROUPS = ("name", "shape", "stack 1", "stack 5")
NUMBERS = ["count", "self_ns", "total_ns", "self_memory_bytes", "memory_bytes"]
KINDS = {"aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mul", "aten::add"}
PYTHON = re.compile(r"\(\d+\): |^<built-in |^nn\.Module: ")
UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9}


RECORDINGS = 8


def record(folder):
    """Let torch write a trace and what it makes of it.

    Torch 2.13 fails in one of four recordings on names of its own that are no UTF-8: then there is nothing to compare.
    """
    for _ in range(RECORDINGS):
        done = subprocess.run([sys.executable, TRAINING, "."], cwd=folder, check=False, capture_output=True, text=True)
        if done.returncode == 0 and is_json(folder / "trace.json"):
            folder.joinpath("trace.json").rename(folder / "trace.pt.trace.json")
            return
        assert "UnicodeDecodeError" in done.stderr or (folder / "trace.json").exists(), done.stderr
    pytest.fail(f"torch could not read its own trace in {RECORDINGS} recordings")


def is_json(path):
    try:
        json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return True


@pytest.fixture(scope="module", params=["torch-2.13", "torch-2.15", *(["live"] if find_spec("torch") else [])])
def recorded(request, tmp_path_factory):
    """A run made of the trace, and the folder of what torch said."""
    folder = HERE / request.param
    if request.param == "live":
        folder = tmp_path_factory.mktemp("live")
        record(folder)
    trace = next(folder.glob("trace.pt.trace.json*"))
    run = imported(tmp_path_factory.mktemp("torch") / "run", trace)
    assert run.manifest.state == "complete"
    with pipeprof.open(run.path) as opened:
        yield opened, folder


def said(folder, name):
    """What torch said, by group. A version without the parameter shows all it has, so without it is a part of that."""
    file = next(folder.glob(f"{name}.json*"), None)
    if file is None:
        rows = said(folder, "key_averages")
        return (
            rows
            if ASKED[name]
            else {group: [row for row in rows[group] if not PYTHON.search(row[0])] for group in rows}
        )
    content = file.read_bytes()
    return json.loads(gzip.decompress(content) if file.suffix == ".gz" else content)


def ours(run, name, group):
    """Numbers by name and shapes or frames."""
    frame = run.ops.key_averages(group, include_python_functions=ASKED[name])
    place = "in_shapes" if group == "shape" else "stack"
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    found = {
        (row["name"], str(json.loads(row[place])) if group == "shape" else row.get(place) or ""): row for row in rows
    }
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("name", ASKED)
@every(GROUPS)
def test_every_group_is_the_profilers(group, recorded, name):
    run, folder = recorded
    theirs = {(key, place): numbers[:5] for key, place, *numbers in said(folder, name)[group]}
    assert len(theirs) == len(said(folder, name)[group]) > 150
    assert {key: [row[column] for column in NUMBERS] for key, row in ours(run, name, group).items()} == theirs


@pytest.mark.parametrize("group", GROUPS)
def test_operations_are_the_profilers(recorded, group):
    run, folder = recorded
    found = {key: row["computation"] for key, row in ours(run, "key_averages", group).items() if row["computation"]}
    theirs = {(key, place): numbers[5] for key, place, *numbers in said(folder, "key_averages")[group] if numbers[5]}
    assert found == theirs
    assert {name for name, _ in theirs} == KINDS


@pytest.mark.parametrize("name", ASKED)
def test_own_times_add_up_to_the_line_below_the_profilers_table(recorded, name):
    run, folder = recorded
    theirs = said(folder, name)["name"]
    total = sum(row["self_ns"] for row in ours(run, name, "name").values())
    assert total == sum(numbers[3] for numbers in theirs)
    printed = json.loads((folder / "torch.json").read_text()).get("totals", {}).get(name)
    if printed:
        number, unit = re.fullmatch(r"([\d.]+)(\w+)", printed).groups()
        assert math.isclose(float(number) * UNITS[unit], total, rel_tol=1e-3)


def test_by_default_python_functions_count_as_in_the_version_that_wrote_the_trace(recorded):
    run, folder = recorded
    version = json.loads((folder / "torch.json").read_text())["version"]
    counted = version.startswith(("2.12.", "2.13."))
    default, all_, operators = (set(ours(run, name, "name")) for name in ASKED)
    assert operators < all_
    assert default == (all_ if counted else operators)
    assert {name for name, _ in all_ - operators} == {name for name, _ in all_ if PYTHON.search(name)}
