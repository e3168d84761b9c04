"""A replaced operator gives as many rows as before, of the same shapes and types, and does no more work."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIMIT_S

from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.process import load_processes

WORKLOADS = Path(__file__).parent / "workloads"
sys.path.insert(0, str(WORKLOADS))

pytestmark = pytest.mark.mindspore
ROWS, REMEMBERED = 90, 16
NODES = {
    0: ["decoding_map", "mixing_batch"],
    1: ["python_map", "several_columns", "native_map", "mixed_map", "process_map", "text_map", "type_map",
        "random_source", "sharded_source"],
    2: ["repeated", "zipped"],
}  # fmt: skip
BY_NODE = [(node, name) for node, names in NODES.items() for name in names]
STARTS = """
import json, sys
from pathlib import Path
from pipeprof.collect.launch import run_command
from pipeprof.experiment.runs import changed_probe
spool, spec = Path(sys.argv[1]), json.loads(sys.argv[2])
sys.exit(run_command(sys.argv[3:], spool, changed_probe(override=spec), 5.0).status)
"""


class Read:
    """What a script printed under an intervention, and what the probe recorded."""

    def __init__(self, home, spec, *command):
        spool = home.out()
        spool.mkdir()
        words = [home.python, "-c", STARTS, str(spool), json.dumps(spec), *command]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=LIMIT_S, env=home.environment(), check=False
        )
        assert done.returncode == 0, done.stderr
        self.told = json.loads(done.stdout.splitlines()[-1])
        self.processes = load_processes(spool, SpoolNotes())

    def events(self, name):
        return [event for process in self.processes for event in process.all(name)]


def spec(node, mode="alone", rows=None):
    return {"stand_in": mode, "node": node, "site": None, "rows": rows}


@pytest.fixture(scope="module")
def read(pipeprof_in):
    """`read(spec or None, *names)`: datasets of `replaced.py`, read under an intervention; each once."""
    home, known = pipeprof_in("replaced"), {}

    def under(wish, *names):
        key = (json.dumps(wish), names)
        if key not in known:
            known[key] = Read(home, wish, *home.script("replaced.py", *names))
        return known[key]

    return under


@pytest.fixture(scope="module")
def plain(read):
    return read(None)


@pytest.mark.parametrize(("node", "name"), BY_NODE)
@pytest.mark.parametrize("mode", ["alone", "up_to"])
def test_rows_shapes_and_types_stay(read, plain, node, name, mode):
    found, real = read(spec(node, mode), *NODES[node]).told[name], plain.told[name]
    assert real["node"] == node
    assert found["epochs"] == real["epochs"]
    assert all(real["epochs"])


@pytest.mark.parametrize("node", NODES)
def test_every_dataset_was_changed(read, node):
    found = read(spec(node), *NODES[node])
    assert len(found.events("stood_in")) == len(NODES[node])
    assert not found.events("stand_in_failed")
    assert not [event for event in found.events("warning") if "probe_failed" in event["code"]]


@pytest.mark.parametrize(
    ("node", "name"),
    [(1, "python_map"), (1, "mixed_map"), (1, "several_columns"), (2, "repeated"), (0, "mixing_batch")],
)
def test_the_work_is_done_for_the_first_rows_only(read, plain, node, name):
    calls = read(spec(node), *NODES[node]).told[name]["calls"]
    assert calls <= 2 * REMEMBERED  # its workers may begin the last ones together; whole and last batches
    assert plain.told[name]["calls"] > calls


def test_a_generator_is_as_long_as_it_was_counted(read, plain):
    """Its length is known only to those who read it: the unchanged run counts, the changed one is told."""
    counting = read({"stand_in": "count"}, "generator", "limited_generator")
    assert counting.told["generator"] == plain.told["generator"]
    assert [event["rows"] for event in counting.events("source_rows")] == [ROWS, ROWS, 30, 30]
    for name, rows in (("generator", ROWS), ("limited_generator", 30)):
        found = read(spec(1, rows=rows), name).told[name]
        assert found["epochs"] == plain.told[name]["epochs"]
        assert found["calls"] < plain.told[name]["calls"]


def test_an_operator_without_a_function_is_left_alone_and_said(read, plain):
    found = read(spec(0), "native_map", "generator")
    assert {name: found.told[name]["epochs"] for name in found.told} == {
        name: plain.told[name]["epochs"] for name in found.told
    }
    assert ["runs no function" in event["why"] for event in found.events("override_missed")] == [True, True]


@pytest.mark.slow
def test_every_dataset_class_can_be_replaced(pipeprof):
    command = pipeprof.script("every_source.py")
    plain, found = Read(pipeprof, None, *command), Read(pipeprof, spec(1), *command)
    assert found.told["read"] == plain.told["read"]
    assert len(found.events("stood_in")) == len(plain.told["read"])
    assert not found.events("stand_in_failed")
