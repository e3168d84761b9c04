"""Stages of one repetition, from each kind of source, and commands that are really started."""

import json
import os
import subprocess
import sys
import types

import psutil
import pytest

from pipeprof.errors import MeasureError, UsageError, WorkloadError
from pipeprof.experiment.sweep import bench as sweep_bench
from pipeprof.experiment.sweep.bench import (
    HOOK,
    PREPARING,
    Order,
    SweepBench,
    _note_of,
    from_load_and_run,
    from_run,
    from_text,
    hook_variables,
    override_of,
)
from pipeprof.experiment.sweep.hook.sitecustomize import force
from pipeprof.experiment.sweep.spec import Capture, Context, DatasetChange, read_spec
from pipeprof.read.megengine.load_and_run import parse_log

LOG = """load model: 198.030ms
=== prepare: 5.846ms; going to warmup
warmup 0: 581.284ms
=== going to run input for 2 times
iter 0/2: 245.000ms (exec=10.574,device=242.226)
iter 1/2: 247.000ms (exec=10.574,device=242.226)
=== finished test #0: time=492.000ms avg_time=246.000ms sd=1.414ms minmax=245.000,247.000
"""


def step(number, start_ms, end_ms, kind="train", rank=0):
    times = {"start_ns": int(start_ms * 1e6), "end_ns": int(end_ms * 1e6)}
    return {"rank": rank, "kind": kind, "kind_step": number, "step": number, **times}


def compiled(start_ms, dur_ms):
    return {"rank": 0, "stage": "compile", "start_ns": int(start_ms * 1e6), "dur_ns": int(dur_ms * 1e6)}


def test_a_run_is_split_into_configure_warm_up_and_steady():
    steps = [step(0, 3000, 3500), step(1, 3500, 3520), step(0, 5000, 5900, "eval")]
    steps += [step(at, 3520 + 10 * (at - 2), 3530 + 10 * (at - 2)) for at in range(2, 18)]
    found = from_run(steps, [compiled(3100, 300), compiled(1000, 100)], {"peak_memory": 1e9})
    times = {"configure": 3300e6, "warmup_first": 200e6, "warmup_second": 20e6, "setup": 3520e6, "steady": 10e6}
    expected = times | {"throughput": 100.0, "peak_memory": 1e9}
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_of_several_ranks_the_slowest_counts_and_the_set_up_is_that_of_one():
    steps = [step(at, 1000 + 10 * at, 1010 + 10 * at) for at in range(10)]
    steps += [step(at, 2000 + 20 * at, 2020 + 20 * at, rank=1) for at in range(10)]
    found = from_run(steps, [], {})
    assert (found["configure"], found["steady"]) == (2000e6, 20e6)
    assert from_run([], [], {}) == {}
    steps = [step(0, 1000, 9000), step(1, 9000, 9010), step(0, 6000, 7000, rank=1), step(1, 7000, 7010, rank=1)]
    found = from_run(steps, [], {})
    assert (found["configure"], found["warmup_first"], found["setup"]) == (6000e6, 8000e6, 9010e6)


def test_a_log_of_load_and_run(tmp_path):
    found = from_load_and_run(parse_log(LOG.splitlines()), tmp_path)
    assert (found["configure"], found["setup"], found["steady"]) == (5_846_000, 5_846_000 + 581_284_000, 246e6)
    with pytest.raises(MeasureError, match="ends before"):
        from_load_and_run(parse_log(LOG.splitlines()[:-1]), tmp_path)


@pytest.mark.parametrize(
    ("take", "value"), [("first", 3), ("last", 2), ("median", 2), ("mean", 2), ("min", 1), ("max", 3), ("sum", 6)]
)
def test_a_pattern_finds_a_stage(take, value):
    captures = {"steady": Capture(pattern="^t=(.*)$", unit="s", take=take)}
    found = from_text("t=3\nt=1\nother\nt=2", captures, "steady")
    assert found == {"steady": value * 1e9, "throughput": 1 / value}


@pytest.mark.parametrize(
    ("text", "words"),
    [("c=1", "matches nothing"), ("t=soon", "`soon`"), *((f"t=1\nt={number}", f"`{number}`") for number in
     ("nan", "inf", "1e999", "-3", "1,5", ""))],
)  # fmt: skip
def test_a_pattern_that_finds_nothing_or_no_time_is_an_error(text, words):
    captures = {"steady": Capture(pattern="^t=(.*)$"), "configure": Capture(pattern="c=(.*)")}
    with pytest.raises(MeasureError, match=words):
        from_text(text, captures, "steady")
    assert "configure" not in from_text("t=1", captures, "steady")


def test_throughput_follows_from_the_step_time_unless_it_was_said():
    captures = {"steady": Capture(pattern="t=(.*)", unit="ms")}
    assert from_text("t=4\nr=7", captures, "throughput")["throughput"] == 250.0
    captures["throughput"] = Capture(pattern="r=(.*)", unit="1/s")
    assert from_text("t=4\nr=7", captures, "throughput")["throughput"] == 7.0


def spec_of(measure):
    stages = {"stages": {"steady": {"pattern": "t=(.*)"}}} if measure == "regex" else {}
    return read_spec({"measure": measure, "variant": [{"name": "x", "env": {"A": "1"}}]} | stages, "`s.toml`")


@pytest.fixture
def run(tmp_path):
    def call(script, measure="regex", **more):
        (tmp_path / "script.py").write_text(script)
        order = Order(tmp_path / "run", [sys.executable, "script.py"], workdir=tmp_path, env={"KIND": "fast"}, **more)
        return SweepBench().run(order, spec_of(measure))

    return call


def test_a_command_is_run_with_its_variables_and_read_by_patterns(run):
    found = run("import os; print('t=%d' % (5 if os.environ['KIND'] == 'fast' else 9))")
    assert found["steady"] == 5e6
    assert found["total"] > 1e6
    assert found["peak_memory"] > 2**20
    assert "KIND" not in os.environ


LOOKED_AT = """
import pathlib, time
for _ in range(3):  # the first look may have begun before this, and be two: of the command, and of this
    pathlib.Path("looked").unlink(missing_ok=True)
    while not pathlib.Path("looked").exists():
        time.sleep(0.005)
"""


def test_memory_is_that_of_the_command_and_not_of_the_program_that_started_it(run, tmp_path, monkeypatch):
    """The commands end when they were looked at, however seldom that is."""

    def look(pid, high_water=sweep_bench._high_water):
        found = high_water(pid)
        (tmp_path / "looked").touch()
        return found

    monkeypatch.setattr(sweep_bench, "_high_water", look)
    held = bytearray(200 << 20)  # this process is larger than the command
    inner = f"x = bytearray(100 << 20)\n{LOOKED_AT}"
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}])\nprint('t=1')"
    scripts = (f"print('t=1')\n{LOOKED_AT}", f"print('t=1')\n{inner}", child)
    small, large, below = (run(script)["peak_memory"] for script in scripts)
    assert len(held) > small
    assert small < 60 << 20
    assert 100 << 20 < large < 160 << 20
    assert 100 << 20 < below < 160 << 20


def test_a_log_of_load_and_run_failures_and_time_limits_are_told(run):
    assert run(f"print({LOG!r})", "load_and_run")["steady"] == 246e6
    with pytest.raises(MeasureError, match="no line of load_and_run"):
        run("print('hello')", "load_and_run")
    with pytest.raises(WorkloadError, match=r"exit code 3; it said `bad`"):
        run("import sys; print('bad'); sys.exit(3)")
    with pytest.raises(WorkloadError, match=r"longer than 0\.3 s"):
        run("import time; time.sleep(60)", longest_s=0.3)


@pytest.mark.parametrize("measure", ["regex", "run"])
def test_a_script_that_names_no_interpreter_is_told(tmp_path, measure):
    (tmp_path / "script").write_text("t=1\n")
    (tmp_path / "script").chmod(0o755)
    with pytest.raises(UsageError, match=r"cannot start .*: Exec format error"):
        SweepBench().run(Order(tmp_path / "run", [str(tmp_path / "script")], workdir=tmp_path), spec_of(measure))


def test_a_change_of_a_dataset_becomes_what_the_probe_is_told():
    assert override_of(None) is None
    told = override_of(DatasetChange(op="Map", nth=2, workers=4))
    assert (told["op_type"], told["ordinal"], told["workers"], told["processes"]) == ("MapOp", 1, 4, None)
    kinds = [override_of(DatasetChange(op=op, workers=1))["op_type"] for op in ("MapOp", "GeneratorDataset", "Batch")]
    assert kinds == ["MapOp", "GeneratorOp", "BatchOp"]


def test_the_context_is_handed_over_in_variables(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "mine")
    found = hook_variables(Context(mode="graph", threads=2), {})
    assert found["PYTHONPATH"].split(os.pathsep) == [str(HOOK), "mine"]
    assert json.loads(found["PIPEPROF_CONTEXT"]) == {"mode": "graph", "threads": 2}
    assert found["OMP_NUM_THREADS"] == "2"
    assert "OMP_NUM_THREADS" not in hook_variables(Context(threads=2), {"OMP_NUM_THREADS": "4"})


def test_the_context_stays_what_was_wanted():
    calls = []
    module = types.SimpleNamespace(GRAPH_MODE=0, PYNATIVE_MODE=1, context=types.SimpleNamespace())
    module.set_context = lambda **given: calls.append(given)
    force(module, {"mode": "graph", "jit_level": "O1", "threads": 2})
    module.context.set_context(mode=1, device_target="CPU")
    module.set_context(jit_config={"jit_level": "O0", "infer_boost": "on"})
    assert calls == [
        {"mode": 0, "jit_config": {"jit_level": "O1"}, "runtime_num_threads": 2},
        {"mode": 0, "device_target": "CPU"},
        {"jit_config": {"jit_level": "O1", "infer_boost": "on"}},
    ]


def test_a_command_that_outlived_a_kill_is_known(tmp_path):
    bench = SweepBench()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        began = psutil.Process(child.pid).create_time()
        (tmp_path / "run-0001.pid").write_text(f"{child.pid} {began}\n")
        (tmp_path / "run-0002.pid").write_text(f"{child.pid} {began - 100}\n")  # another one had that number before
        (tmp_path / "run-0003.pid").write_text("damaged")
        found = [bench.still_running(tmp_path / f"run-000{number}") for number in (0, 1, 2, 3)]
        child.kill()
        (tmp_path / "run-0004.pid").write_text("")
        assert _note_of(tmp_path / f"run-0004{PREPARING}1") == tmp_path / "run-0004.pid"
    assert found == [[], [child.pid], [], []]
    assert bench.still_running(tmp_path / "run-0001") == []


NOTED = """
import os, pathlib, time
note = pathlib.Path("run.pid")
while not (note.exists() and note.read_text().endswith("\\n")):  # it is written when this has started
    time.sleep(0.005)
print("t=%d" % (int(note.read_text().split()[0]) == os.getpid()))
"""


def test_while_a_command_runs_its_process_is_noted(run, tmp_path):
    assert run(NOTED)["steady"] == 1e6
    assert not (tmp_path / "run.pid").exists()
