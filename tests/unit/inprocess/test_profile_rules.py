"""The rules of `profile` that need no training: who records, where runs go, how blocks end."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pipeprof
from pipeprof.collect.probe import recorder, windows
from pipeprof.errors import RunError, UsageError
from pipeprof.inprocess import place
from pipeprof.inprocess.averages import user_spans
from pipeprof.inprocess.profiler import HERE
from pipeprof.read.tables.rows import RankRows
from pipeprof.record import store
from pipeprof.record.run import load


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(place._STATE, "told", set())
    yield tmp_path
    assert place._STATE["owner"] is None
    assert recorder.REC is None or recorder.REC.off


def state(path):
    manifest = load(path).manifest
    return manifest.state, manifest.reason


def spans(path, category):
    with pipeprof.open(path) as run:
        return [name for name, kind in zip(run.span.name, run.span.category, strict=True) if kind == category]


def recorded(steps=0, **settings):
    """A profile of so many steps."""
    with pipeprof.profile(**({"out": "run"} | settings)) as profile:
        for _ in range(steps):
            profile.step()
    return profile


def test_a_block_without_mindspore_is_a_complete_run_that_says_what_is_missing(folder):
    with pipeprof.profile(out="run") as profile, pipeprof.record_function("part"):
        pass
    assert state(profile.path) == ("complete", None)
    assert load("run").manifest.source == "profile"
    assert {item.what for item in load("run").manifest.not_measured} >= {"step", "op", "queue"}
    assert spans("run", "user") == ["part"]
    assert list(profile.run.memory.device.unique()) == ["host", "process"]


def test_without_a_name_the_run_is_named_for_the_time(folder):
    profile = recorded(out=None)
    assert profile.path.parent == folder
    assert profile.path.name.startswith("pipeprof-profile-")


def test_each_cycle_is_handed_over_after_its_last_step_and_own_functions_are_schedules_too(folder):
    given = []
    plan = pipeprof.schedule(wait=1, warmup=1, active=2, repeat=2)
    p = recorded(20, out="runs", schedule=plan, on_trace_ready=lambda p: given.append((p.step_num, p.path.name)))
    assert given == [(4, "cycle-0"), (8, "cycle-1")]
    assert [path.name for path in p.paths] == ["cycle-0", "cycle-1"]
    assert spans("runs/cycle-1", "step") == ["ProfilerStep#5", "ProfilerStep#6", "ProfilerStep#7"]
    actions = dict.fromkeys((2, 3), pipeprof.ProfilerAction.RECORD)
    p = recorded(6, out="own", schedule=lambda step: actions.get(step, pipeprof.ProfilerAction.NONE))
    assert spans(p.path, "step") == ["ProfilerStep#2", "ProfilerStep#3"]


def test_a_cycle_without_a_whole_active_step_leaves_nothing(folder):
    assert recorded(1, out="runs", schedule=pipeprof.schedule(warmup=2, active=1)).paths == []
    assert not list(folder.glob("runs/*"))


def test_spans_of_warmup_steps_do_not_count(folder):
    with pipeprof.profile(out="runs", schedule=pipeprof.schedule(warmup=2, active=1, repeat=1)) as p:
        for _ in range(3):
            with pipeprof.record_function("step"):
                pass
            p.step()
    assert [(row.name, row.count) for row in p.key_averages()] == [("step", 1)]


def test_a_decorated_function_keeps_its_result_and_its_spans(folder):
    @pipeprof.record_function("again")
    def double(number):
        return double(number - 1) + 2 if number else 0

    with pipeprof.record_function("alone"):  # outside of a profile
        pass
    with pipeprof.profile(out="run"):
        assert double(2) == 4
    assert spans("run", "user") == ["again"] * 3


def test_the_users_error_goes_on_and_the_run_names_it_and_that_of_a_callback_frees_the_recorder(folder):
    with pytest.raises(ZeroDivisionError), pipeprof.profile(out="run"):
        1 / 0  # noqa: B018
    assert state("run") == ("failed", "ZeroDivisionError in the profiled block: division by zero")

    def fails(_profile):
        raise LookupError("callback")

    with pytest.raises(LookupError):
        recorded(out="other", on_trace_ready=fails)
    assert state("other")[0] == "complete"


def test_inside_another_profile_there_is_no_second_run(folder, capfd):
    with pipeprof.profile(out="outer") as outer, pipeprof.profile(out="inner") as inner:
        inner.step()
    assert not folder.joinpath("inner").exists()
    assert (spans("outer", "profile"), spans("outer", "step")) == (["profile"], ["ProfilerStep#0"])
    assert "writes no run of its own" in capfd.readouterr().err
    with pytest.raises(UsageError, match="nothing has been recorded: this profile is inside another one"):
        _ = inner.path
    assert len(inner.key_averages()) == 0
    assert "this profile is inside another one" in inner.key_averages().table()
    with pytest.raises(UsageError, match="it is a folder"):
        outer.export_chrome_trace(".")
    inner.export_chrome_trace(folder / "inner.json")
    assert not folder.joinpath("inner.json").exists()
    assert "no timeline" in capfd.readouterr().err
    assert outer.step_num == 0


def test_a_profile_can_be_used_again_and_numbers_its_runs(folder):
    profile = pipeprof.profile(out="run")
    for _ in range(2):
        with profile:
            pass
    assert [path.name for path in profile.paths] == ["run", "run-2"]


def test_a_run_that_exists_is_kept_unless_it_may_be_replaced(folder):
    recorded()
    before = load("run").manifest.run_id
    with pytest.raises(UsageError, match=r"`.*run` exists"), pipeprof.profile(out="run"):
        pytest.fail("the block must not begin")
    assert load("run").manifest.run_id == before
    recorded(force=True)
    assert load("run").manifest.run_id != before


def test_a_process_of_a_distributed_job_has_a_folder_of_its_own(folder, monkeypatch):
    monkeypatch.setenv("RANK_ID", "3")
    monkeypatch.setenv("RANK_SIZE", "8")
    assert recorded().path.name == "run-rank3"
    for _ in range(2):  # in the same second, perhaps
        assert recorded(out=None).path.name.endswith("-rank3")
    made = folder / "here"
    made.mkdir()
    monkeypatch.chdir(made)
    assert recorded(out=".").path == folder / "here-rank3"


def test_step_and_results_belong_to_a_block():
    profile = pipeprof.profile(out="never")
    with pytest.raises(UsageError, match="outside the profile's block"):
        profile.step()
    with pytest.raises(UsageError, match="nothing has been recorded"):
        _ = profile.path


def test_starting_twice_is_refused(folder):
    with pipeprof.profile(out="run") as profile, pytest.raises(UsageError, match="already running"):
        profile.start()


def test_a_forked_child_leaves_the_run_to_its_parent_and_steps_may_come_from_another_thread(folder):
    with pipeprof.profile(out="run") as profile:
        child = os.fork()
        if child == 0:
            try:
                profile.step()
                profile.stop()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert load("run").manifest.state == "running"
        threads = [threading.Thread(target=profile.step) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert state("run") == ("complete", None)
    assert profile.step_num == 4
    assert sorted(spans("run", "step")) == [f"ProfilerStep#{number}" for number in range(4)]


@pytest.mark.parametrize(("settings", "words"), [
    ({"activities": ["tpu"]}, "unknown activity `tpu`"), ({"activities": []}, "no activity is left"),
    ({"queue_interval_ms": 0}, "expected 1 to 60000"), ({"sample_rate": -1}, "-1, expected a number of operators"),
    ({"sample_rate": 0.5}, "0.5, expected a number of operators"),
    ({"queue_interval_ms": 10**9}, "expected 1 to 60000"),
    ({"queue_interval_ms": "100"}, "'100', expected 1 to 60000"),
    ({"queue_interval_ms": 1.5}, "1.5, expected 1 to 60000"),
    ({"on_trace_ready": "traces"}, "on_trace_ready is not a function"),
    ({"schedule": 3}, "schedule is not a function"),
    ({"force": True, "add": True}, "force replaces a run, add adds to it"),
    ({"formats": ["chrome_timeline.jsn"]}, "unknown format `chrome_timeline.jsn`"),
])  # fmt: skip
def test_impossible_settings_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        pipeprof.profile(**settings)


def test_each_wanted_format_is_written_beside_each_run_and_what_cannot_be_is_said(folder, capfd):
    wanted = ["report.html", "memory_flow.svg", "report.json", "report.json"]
    recorded(2, out="runs", schedule=pipeprof.schedule(active=1, repeat=2), formats=wanted)
    written = {str(path.relative_to(folder)) for path in folder.glob("runs/*.*.*")}
    assert written == {f"runs/cycle-{cycle}.report.{form}" for cycle in range(2) for form in ("html", "json")}
    assert json.loads((folder / "runs/cycle-1.report.json").read_text())["run"]["path"].endswith("cycle-1")
    said = capfd.readouterr().err
    assert said.count("no `cycle-0.memory_flow.svg`: no lifetime chart") == 1
    assert load("runs/cycle-0").manifest.options["memory"]


def test_a_callback_finds_the_formats_and_can_ask_for_more(folder):
    seen = []

    def ready(profile):
        assert Path("run.report.md").is_file()
        seen.extend(profile.export("report.json"))

    profile = recorded(formats="report.md", on_trace_ready=ready)
    assert [path.name for path in seen] == ["run.report.json"]
    with pytest.raises(UsageError, match="no lifetime chart"):
        profile.export(["memory_flow.svg"])


def test_a_device_that_is_not_recorded_here_is_said(folder):
    recorded(activities=["CPU", "NPU", pipeprof.ProfilerActivity.CUDA])
    said = [warning.message for warning in load("run").manifest.warnings]
    assert [any(f"activity {name}" in message for message in said) for name in ("NPU", "CUDA")] == [True, True]


def test_settings_of_a_program_for_torch_are_taken_and_what_they_do_not_do_is_said(folder):
    recorded(use_cuda=True, with_modules=True, experimental_config=object())
    found = load("run").manifest
    assert any("activity CUDA" in warning.message for warning in found.warnings)
    assert found.options["ops"] == "all"


def test_without_an_activity_its_tables_are_off(folder):
    recorded(activities=["host"])
    options = load("run").manifest.options
    assert (options["ops"], options["queue_interval"], options["service"]) == ("off", 0, False)
    recorded(out="single", activities="host", use_cuda=True)  # a single one may be named beside a device
    assert load("single").manifest.options["activities"] == ["host"]


@pytest.mark.parametrize(("ending", "words"), [
    ("os.kill(os.getpid(), 9)", "the process was killed; what had been written was recovered"),
    ("sys.exit(0)", "the program ended inside the profiled block"),
])  # fmt: skip
def test_a_program_that_ends_inside_the_block_leaves_a_partial_run(folder, ending, words):
    text = f"import os, sys, pipeprof\np = pipeprof.profile(out='run')\np.start()\np.step()\n{ending}\n"
    subprocess.run([sys.executable, "-c", text], env=dict(os.environ), check=False)  # not what C code set
    assert load("run").manifest.state == "running"
    with pipeprof.open("run") as run:
        assert (run.manifest.state, run.manifest.reason[: len(words)]) == ("partial", words)


def test_one_execution_of_the_program_is_one_repetition_of_the_same_settings(folder):
    recorded(add=True)
    with pytest.raises(UsageError, match="recorded by this process"), pipeprof.profile(out="run", add=True):
        pytest.fail("the block must not begin")
    elsewhere("import pipeprof\nwith pipeprof.profile(out='other', add=True):\n    pass\n")
    with (
        pytest.raises(UsageError, match="recorded with other settings"),
        pipeprof.profile(out="other", add=True, profile_memory=True),
    ):
        pytest.fail("the block must not begin")
    assert load("other").manifest.state == "complete"


def elsewhere(text):
    """Run lines of a program in another process."""
    return subprocess.run([sys.executable, "-c", text], env=dict(os.environ), check=False)  # not what C code set


def adding(lines):
    return elsewhere(f"import os, pipeprof\nwith pipeprof.profile(out='run', add=True) as p:\n    {lines}\n")


def counts(run):
    """The rows of each table that the manifest names."""
    return {name: len(getattr(run, name)) for name in run.manifest.tables}


def test_a_repetition_without_a_whole_active_step_leaves_those_before_as_they_were(folder):
    settings = "out='runs', add=True, schedule=pipeprof.schedule(warmup=1, active=1, repeat=1)"
    elsewhere(f"import pipeprof\nwith pipeprof.profile({settings}) as p:\n    p.step()\n    p.step()\n")
    before = load("runs/cycle-0").manifest
    plan = pipeprof.schedule(warmup=1, active=1, repeat=1)
    assert recorded(1, out="runs", add=True, schedule=plan).paths == []
    with pipeprof.open("runs/cycle-0") as run:
        assert (run.manifest.state, run.manifest.reps) == ("complete", before.reps)
        assert run.manifest.tables == before.tables == counts(run)
    assert not folder.joinpath("runs/cycle-0/spool").exists()
    assert not folder.joinpath("runs/cycle-0/lock").exists()


def test_a_repetition_that_was_killed_adds_what_it_had_and_keeps_those_before(folder):
    adding("p.step()")
    before = load("run").manifest
    run = load("run")
    run.manifest.begin_again()  # and its process dies before it wrote anything
    run.save()
    with pipeprof.open("run") as opened:
        assert (opened.manifest.state, opened.manifest.tables) == ("complete", before.tables)
    adding("os.kill(os.getpid(), 9)")
    assert load("run").manifest.state == "running"
    with pipeprof.open("run") as run:
        assert run.manifest.state == "partial"
        assert [rep.rep for rep in run.manifest.reps] == [0, 1]
        assert run.manifest.tables == counts(run)
        assert sorted(set(run.memory.rep)) == [0, 1]
        assert run.report()["run"]["state"] == "partial"


def test_the_worst_repetition_decides_and_keeps_its_reason(folder):
    adding("raise SystemExit(3)")
    failed = state("run")
    assert failed[0] == "failed"
    adding("p.step()")
    assert state("run") == failed


def test_a_full_disk_while_a_repetition_is_converted_keeps_those_before(folder, monkeypatch):
    adding("p.step()")
    before = load("run").manifest.tables

    def full(*_args):
        raise RunError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("pipeprof.read.spool.finish.convert_rep", full)
        recorded(add=True)
    assert (load("run").manifest.state, load("run").manifest.tables) == ("partial", before)
    with pipeprof.open("run") as run:
        assert (run.manifest.state, run.manifest.tables) == ("complete", counts(run))
        assert sorted(set(run.memory.rep)) == [0, 1]


def test_spans_of_repetitions_and_ranks_do_not_mix(folder):
    recorded()
    run = load("run")
    at = {"track": "main", "category": "user", "start_ns": 0, "dur_ns": 100}
    for rep, (frame, dur) in enumerate((("a.py(1): f", 10), ("b.py(2): g", 30))):
        out = RankRows(rep, 0, 0)
        out.add("stack", stack_id=0, frame=frame)
        out.add("span", **at, name="part", stack_id=0)
        out.add("op", op_id=0, start_ns=5, dur_ns=dur, self_ns=dur, track="CPU")
        out.add("allocation", bytes=2 * dur, produced_ns=-5, released_ns=50)
        out.add("allocation", bytes=3 * dur, produced_ns=50)
        for table, rows in out.rows.items():
            store.write(run, table, rep, 0, rows)
    assert user_spans(run, 1) == {("part", "a.py(1): f"): (1, 90, 100, 10), ("part", "b.py(2): g"): (1, 70, 100, 30)}
    assert user_spans(run) == {("part", ""): (2, 160, 200, 40)}


@pytest.mark.parametrize("plan", [None, pipeprof.schedule(active=1)])
def test_an_error_of_the_training_met_when_the_recording_ends_is_in_the_run(folder, plan):
    def train():
        with pipeprof.profile(out="run", schedule=plan) as profile, pipeprof.record_function("part"):
            windows.WINDOWS.error = ArithmeticError("launched before, failed late")
            profile.step()

    with pytest.raises(ArithmeticError, match="failed late"):
        train()
    path = "run" if plan is None else "run/cycle-0"
    assert state(path) == ("failed", "ArithmeticError in the profiled block: launched before, failed late")
    assert not any(one.name == "pipeprof-host" for one in threading.enumerate())


@pytest.mark.parametrize("name", [*HERE, "recrod_shapes", "zzz"])
def test_a_setting_of_another_profiler_is_answered_with_the_one_here(name):
    with pytest.raises(UsageError, match=f"no setting {name}") as caught:
        pipeprof.profile(**{name: True})
    assert caught.value.hint
    assert ("record_shapes" in caught.value.hint) == (name == "recrod_shapes")
