"""The state of a run after its recording, however it ended, and what was not measured."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pipeprof.errors import RunError
from pipeprof.read.spool import finish as finishing
from pipeprof.read.spool import lines
from pipeprof.read.spool.finish import finish, open_run
from pipeprof.read.spool.marks import Kind
from pipeprof.record import lock, store
from pipeprof.record.lock import QUIET_S
from pipeprof.record.run import load

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)


@pytest.fixture
def trained(spooled):
    """One repetition that ended well, with one process that trained three steps."""
    spooled.rep()
    spooled.process()
    return spooled


def state(run):
    return run.manifest.state, run.manifest.reason


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(0, ("complete", None), id="exit code zero"),
        pytest.param(3, ("failed", "the command exited with code 3"), id="an exit code"),
        *((-one, ("partial", f"the command was ended by {one.name}")) for one in SIGNALS),
        pytest.param(-63, ("partial", "the command was ended by signal 63"), id="a signal without a name"),
        pytest.param(None, ("partial", "the launcher was killed; what had been written was recovered"), id="no exit code"),
    ],
)  # fmt: skip
def test_how_the_command_ended_is_the_state_and_the_reason(spooled, status, expected):
    spooled.rep(status=status)
    spooled.process()
    assert state(finish(spooled.run)) == expected


def test_after_a_full_disk_the_hint_names_what_works(tmp_path):
    """Recording again would be refused, since the run is there."""
    capture = Path(__file__).parents[2] / "real" / "captures" / "2.10-pynative"
    shutil.copytree(capture, tmp_path / "run")
    ours = [sys.executable, "-m", "pipeprof"]
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); import signal; "
    limited += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from pipeprof.cli import main; main()"
    command = [sys.executable, "-B", "-c", limited, "report", "run"]  # without -B it would leave cut off bytecode
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "cannot write `run/" in done.stderr
    (hint,) = re.findall("hint: .*: pipeprof (.*)", done.stderr)
    again = subprocess.run([*ours, *hint.split()], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert load(tmp_path / "run").manifest.tables["step"]


def test_a_process_that_vanished_makes_the_run_partial_and_bounds_what_is_missing(spooled):
    spooled.rep(end=2_000_000_000)
    spooled.process(pid=4_000_001, bye=False)
    done = finish(spooled.run)
    assert done.manifest.state == "partial"
    assert done.manifest.reason.startswith(
        "process 4000001 (rank 0) ended without its exit handlers; at most the last 2.0 s"
    )
    (rank,) = done.manifest.reps[0].ranks
    assert rank.ended == "lost"
    assert rank.missing_steps_s == pytest.approx(2.0, abs=0.001)


@pytest.mark.parametrize("status", [None, 0], ids=["launcher killed", "command outlived"])
def test_what_a_kill_may_cost_is_never_less_than_what_waits_to_be_written(spooled, status):
    spooled.rep(status=status, end=100)
    spooled.process(bye=False)
    done = finish(spooled.run)
    (rank,) = done.manifest.reps[0].ranks
    assert rank.missing_steps_s == pytest.approx(1.0, abs=0.01)
    assert "at most the last 1.0 s of steps" in done.manifest.reason


def test_a_kill_before_the_first_marks_were_written_is_bounded_too(spooled):
    spooled.rep(status=None)
    spooled.process(marks=[], bye=False)
    assert finish(spooled.run).manifest.reason.endswith(
        "recovered; at most the last 1.0 s of steps are missing, and all queue samples"
    )


def test_the_bound_that_is_said_is_never_rounded_down(spooled):
    spooled.rep(end=2_040_000_000)
    spooled.process(bye=False)
    assert "at most the last 2.1 s of steps" in finish(spooled.run).manifest.reason


def test_the_worst_repetition_decides(spooled):
    for rep, status in ((0, 0), (1, 4)):
        spooled.rep(rep, status=status)
        spooled.process(rep=rep)
    done = finish(spooled.run)
    assert state(done) == ("failed", "the command exited with code 4")
    assert [rep.exit_code for rep in done.manifest.reps] == [0, 4]


def test_the_spool_goes_once_the_tables_are_there(trained):
    finish(trained.run)
    assert not trained.run.spool.exists()
    assert load(trained.run.path).manifest.tables["step"] == 3


def test_the_spool_stays_when_asked_to(trained):
    finish(trained.run, keep_spool=True)
    assert trained.run.spool.is_dir()


def test_what_a_limit_left_out_is_kept_and_read_once_more_is_allowed(spooled, monkeypatch):
    spooled.rep()
    spooled.process(steps=3)
    monkeypatch.setattr(lines, "MOST_BYTES", 26 * 5)  # marks
    done = finish(spooled.run)
    assert (done.manifest.state, done.spool.is_dir(), done.is_settled()) == ("partial", True, True)
    assert "set PIPEPROF_MAX_BYTES" in done.manifest.reason
    monkeypatch.setenv("PIPEPROF_MAX_BYTES", "100000")
    done = open_run(spooled.run.path)
    assert (state(done), done.manifest.tables["step"], done.spool.is_dir()) == (("complete", None), 3, False)


def test_the_spool_stays_while_a_recorded_process_still_runs(trained, monkeypatch):
    monkeypatch.setattr(finishing, "processes_alive", lambda _run: [77])
    done = finish(trained.run)
    assert state(done) == ("partial", "process 77 was still running when the command ended")
    assert done.spool.is_dir()


@pytest.fixture
def background(spooled):
    """A process that the command left behind, which has recorded nothing yet."""
    folder = spooled.rep()
    environment = os.environ | {"PIPEPROF_SPOOL": str(folder.resolve())}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=environment) as process:
        folder.joinpath("hello.jsonl").write_text(f'{{"pid": {process.pid}, "ppid": 1}}\n', encoding="utf-8")
        yield process
        process.kill()


def test_a_training_in_the_background_is_recorded_until_it_ends(spooled, background):
    done = finish(spooled.run)
    assert state(done) == ("partial", f"process {background.pid} was still running when the command ended")
    assert "--join=True" in missing(done)["step"]
    with pytest.raises(RunError, match="still being recorded"):
        open_run(spooled.run.path)
    spooled.process(pid=background.pid)
    background.kill()
    background.wait()
    whole = open_run(spooled.run.path)
    assert (state(whole), whole.manifest.tables["step"]) == (("complete", None), 3)
    assert "nothing_seen" not in {warning.code for warning in whole.manifest.warnings}


def test_where_a_training_was_recorded_other_pythons_may_run_on(spooled, background):
    spooled.process()
    assert state(finish(spooled.run)) == ("complete", None)


def test_the_spool_stays_when_the_tables_cannot_be_written(trained, monkeypatch):

    def refuse(*_words):
        raise RunError("no space")

    monkeypatch.setattr(store, "write_arrow", refuse)
    with pytest.raises(RunError):
        finish(trained.run)
    assert trained.run.spool.is_dir()
    assert state(load(trained.run.path)) == ("partial", "its tables could not be written: no space")
    monkeypatch.undo()
    assert open_run(trained.run.path).manifest.state == "complete"


def test_a_disk_without_room_for_the_folder_of_a_table_leaves_a_partial_run(trained):
    blocked = trained.run.path / "step"
    blocked.write_text("no folder can be made here", encoding="utf-8")
    with pytest.raises(RunError, match="cannot write"):
        finish(trained.run)
    assert load(trained.run.path).manifest.state == "partial"
    blocked.unlink()
    assert open_run(trained.run.path).manifest.state == "complete"


def test_opening_a_run_whose_launcher_died_recovers_it(spooled):
    spooled.rep(status=None)
    spooled.process(bye=False)
    done = open_run(spooled.run.path)
    assert done.manifest.state == "partial"
    assert len(store.read(done, "step")) == 3
    assert not done.spool.exists()
    assert load(done.path).manifest.state == "partial"


def test_a_recovered_run_keeps_whole_marks_of_a_file_that_was_cut_off(spooled):
    spooled.rep(status=None)
    folder = spooled.process(steps=3, bye=False)
    marks = folder / "marks.bin"
    marks.write_bytes(marks.read_bytes()[:-10])
    done = open_run(spooled.run.path)
    assert len(store.read(done, "step")) == 2
    assert "ends in the middle of a record" in done.manifest.warnings[0].message


def test_a_run_that_is_still_being_recorded_is_refused(spooled):
    me = psutil.Process()
    spooled.rep()
    spooled.run.manifest.launcher_pid, spooled.run.manifest.launcher_start = os.getpid(), me.create_time()
    spooled.run.save()
    with pytest.raises(RunError, match="is still being recorded"):
        open_run(spooled.run.path)
    assert load(spooled.run.path).manifest.state == "running"


def test_another_process_with_the_launchers_number_is_not_the_launcher(trained):
    trained.run.manifest.launcher_pid, trained.run.manifest.launcher_start = os.getpid(), 12345.0
    trained.run.save()
    assert open_run(trained.run.path).manifest.state == "complete"


@pytest.mark.parametrize(("age", "alive"), [(0.0, True), (2 * QUIET_S, False)])
def test_a_run_of_another_host_is_being_recorded_as_long_as_its_spool_is_written_to(spooled, age, alive):
    spooled.rep()
    folder = spooled.process()
    spooled.run.manifest.launcher_pid, spooled.run.manifest.launcher_start = os.getpid(), psutil.Process().create_time()
    spooled.run.manifest.fingerprint["host"] = "another host"
    spooled.run.save()
    for path in [*spooled.run.spool.rglob("*"), folder]:
        os.utime(path, (time.time() - age,) * 2)
    if alive:
        with pytest.raises(RunError, match="is still being recorded"):
            open_run(spooled.run.path)
    else:
        assert open_run(spooled.run.path).manifest.state == "complete"


def test_a_launcher_that_ended_but_was_never_reaped_records_nothing(trained):
    launcher = subprocess.Popen(["true"])
    started = psutil.Process(launcher.pid).create_time()
    os.waitid(os.P_PID, launcher.pid, os.WEXITED | os.WNOWAIT)
    try:
        trained.run.manifest.launcher_pid, trained.run.manifest.launcher_start = launcher.pid, started
        trained.run.save()
        assert open_run(trained.run.path).manifest.state == "complete"
    finally:
        launcher.wait()


def test_the_lock_says_whether_a_run_is_being_recorded(trained):
    lock.take(trained.run.path, trained.run.manifest.run_id)
    with pytest.raises(RunError, match="is still being recorded"):
        open_run(trained.run.path)
    finish(trained.run)
    assert not trained.run.path.joinpath(lock.LOCK).exists()
    assert open_run(trained.run.path).manifest.state == "complete"


def test_the_lock_of_a_launcher_that_was_killed_is_taken_over_and_removed(trained):
    holder = subprocess.Popen(["true"])
    holder.wait()
    mine = {"run_id": "x", "pid": holder.pid, "start_ticks": 1, "place": lock._place()}
    trained.run.path.joinpath(lock.LOCK).write_text(json.dumps(mine), encoding="utf-8")
    assert open_run(trained.run.path).manifest.state == "complete"
    assert not trained.run.path.joinpath(lock.LOCK).exists()


def test_a_run_that_another_process_recovered_meanwhile_is_taken_as_it_is(trained, monkeypatch):
    other = load(trained.run.path)

    def first(run):
        monkeypatch.undo()
        finish(other)

    monkeypatch.setattr(finishing, "_refuse_recorded", first)
    assert state(open_run(trained.run.path)) == ("complete", None)


@pytest.mark.parametrize("name", ["folder", "spool"])
def test_a_folder_or_spool_that_was_deleted_under_a_recording_is_a_failed_run(trained, name):
    shutil.rmtree({"folder": trained.run.path, "spool": trained.run.spool}[name])
    finish(trained.run)
    assert state(load(trained.run.path)) == ("failed", f"its {name} was deleted while it was recorded")


def test_a_folder_that_was_deleted_while_its_tables_were_made_is_a_failed_run(trained, monkeypatch):
    write = store.write_arrow

    def delete_first(run, table, *rest):
        if run.path.joinpath("run.json").exists():
            shutil.rmtree(run.path)
        return write(run, table, *rest)

    monkeypatch.setattr(store, "write_arrow", delete_first)
    finish(trained.run)
    assert state(load(trained.run.path)) == ("failed", "its folder was deleted while it was recorded")
    assert not trained.run.files("step")


def test_a_folder_that_holds_another_run_by_now_is_left_alone(trained):
    mine = load(trained.run.path)
    trained.run.manifest.run_id = "another"
    trained.run.save()
    before = {path: path.read_bytes() for path in trained.run.path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="found run_id another, expected 20260101T000000-abcdef"):
        finish(mine)
    assert {path: path.read_bytes() for path in trained.run.path.rglob("*") if path.is_file()} == before


def test_the_spool_of_another_run_is_not_claimed(spooled):
    launch = spooled.rep() / "launch.json"
    spooled.process()
    launch.write_text(json.dumps(json.loads(launch.read_bytes()) | {"run_id": "another"}), encoding="utf-8")
    with pytest.raises(RunError, match="is of another run: found run_id another, expected 20260101T000000-abcdef"):
        open_run(spooled.run.path)
    assert load(spooled.run.path).manifest.state == "running"
    assert launch.exists()


def test_a_training_of_the_run_that_was_replaced_is_left_out(spooled):
    spooled.rep()
    spooled.process(steps=2, run_id=spooled.run.manifest.run_id)
    spooled.process(pid=4_000_002, steps=5, run_id="replaced")
    done = finish(spooled.run)
    assert len(store.read(done, "step")) == 2
    assert [warning.code for warning in done.manifest.warnings] == ["other_run"]


def test_the_end_of_another_runs_command_is_not_ours(spooled):
    ended = spooled.rep() / "exit.json"
    spooled.process()
    ended.write_text(json.dumps(json.loads(ended.read_bytes()) | {"run_id": "replaced"}), encoding="utf-8")
    assert finish(spooled.run).manifest.reason == "the launcher was killed; what had been written was recovered"


def test_a_kill_while_the_spool_is_removed_costs_nothing(trained, monkeypatch):

    def killed(path, **_how):
        for inside in path.rglob("marks.bin"):
            inside.unlink()  # half of the work, and then no more
        if path.exists():
            raise KeyboardInterrupt

    monkeypatch.setattr(finishing.shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        finish(trained.run)
    monkeypatch.undo()
    done = open_run(trained.run.path)
    assert state(done) == ("complete", None)
    assert len(store.read(done, "step")) == 3
    assert not [path for path in done.path.iterdir() if "spool" in path.name]


def test_a_second_try_to_finish_takes_what_another_process_has_recovered(trained, monkeypatch):

    def refuse(*_words):
        raise RunError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_arrow", refuse)
        with pytest.raises(RunError):
            finish(trained.run)
    open_run(trained.run.path)
    assert state(finish(trained.run)) == ("complete", None)
    assert state(load(trained.run.path)) == ("complete", None)


def test_a_run_whose_training_outlived_the_launcher_is_refused_by_process(spooled, monkeypatch):
    spooled.rep()
    monkeypatch.setattr(finishing, "processes_alive", lambda _run: [88])
    with pytest.raises(RunError, match="process 88 runs on"):
        open_run(spooled.run.path)


def test_a_run_that_recorded_nothing_is_failed(spooled):
    assert state(open_run(spooled.run.path)) == ("failed", "the recording ended before anything was recorded")


def test_a_finished_run_is_opened_as_it_is(trained):
    finish(trained.run)
    before = trained.run.path.joinpath("run.json").read_bytes()
    open_run(trained.run.path)
    assert trained.run.path.joinpath("run.json").read_bytes() == before


def missing(run):
    return {item.what: item.why for item in run.manifest.not_measured}


def test_what_was_not_measured_says_why(spooled):
    spooled.rep()
    spooled.process(events=[{"e": "warning", "t": 1_300, "code": "queues_off", "message": "no manager"}])
    spooled.run.manifest.options["ops"] = "off"
    why = missing(finish(spooled.run))
    assert why["op"] == "switched off with --ops off"
    assert why["queue"] == "no manager"
    assert "step" not in why


@pytest.mark.parametrize(
    ("source", "op", "service"),
    [
        ("collect", "switched off with --ops off", "switched off with --no-service"),
        ("profile", *["not among the activities of the profile"] * 2),
    ],
)
def test_what_was_switched_off_says_how(spooled, source, op, service):
    spooled.run.manifest.source = source
    spooled.run.manifest.options |= {"ops": "off", "service": False}
    spooled.rep()
    spooled.process()
    why = missing(finish(spooled.run))
    assert (why["op"], why["op_service"]) == (op, service)


def test_a_command_without_python_is_explained(spooled):
    spooled.rep().joinpath("hello.jsonl").unlink()
    done = finish(spooled.run)
    assert missing(done)["step"].startswith("no Python of the command was watched")
    assert [warning.code for warning in done.manifest.warnings] == ["nothing_seen"]


def test_a_process_that_stopped_recording_says_why(spooled):
    hello = spooled.rep() / "hello.jsonl"
    spooled.process()
    with hello.open("a", encoding="utf-8") as file:
        file.write('{"pid": 4000001, "problem": "its files were removed or replaced"}\n')
    (warning,) = [one for one in finish(spooled.run).manifest.warnings if one.code == "recording_stopped"]
    assert warning.message == "process 4000001 recorded nothing more: its files were removed or replaced"


def test_a_python_without_mindspore_is_explained(spooled):
    spooled.rep()
    assert missing(finish(spooled.run))["step"].startswith("no training was seen")


def test_mindspore_without_training_is_explained(spooled):
    spooled.rep()
    spooled.process(marks=[])
    assert missing(finish(spooled.run))["step"].startswith("MindSpore or PyTorch was used, but no dataset was iterated")


def test_a_profiled_block_without_mindspore_is_explained(spooled):
    spooled.rep()
    file = spooled.process(marks=[]) / "events.jsonl"
    about = file.read_text(encoding="utf-8").splitlines()[0]
    file.write_text(about + "\n", encoding="utf-8")
    assert missing(finish(spooled.run))["step"].startswith("no training was seen")


def test_what_only_the_process_knew_reaches_the_fingerprint(spooled):
    spooled.rep()
    spooled.process(events=[{"e": "context", "t": 1_300, "device_target": "CPU", "mode": "1", "numpy": "2.0"}])
    found = finish(spooled.run).manifest.fingerprint
    assert (found["mindspore"], found["device"], found["mode"], found["numpy"]) == ("2.10.0", "CPU", "pynative", "2.0")


def test_the_table_counts_are_those_of_all_repetitions(spooled):
    for rep in (0, 1):
        spooled.rep(rep)
        spooled.process(rep=rep)
    done = finish(spooled.run)
    assert done.manifest.tables["step"] == len(store.read(done, "step")) == 6


@pytest.mark.parametrize("kept", [False, True])
def test_what_a_process_recorded_after_the_launcher_ended_is_there_when_the_run_is_opened(spooled, monkeypatch, kept):
    spooled.run.manifest.options["keep_spool"] = kept
    spooled.rep()
    folder = spooled.process(started=1_100, steps=1)
    with monkeypatch.context() as patch:
        patch.setattr(finishing, "processes_alive", lambda _run: [77])
        finish(spooled.run, keep_spool=kept)
    spooled.marks(folder, spooled.loop(1_300, 2))
    assert len(store.read(open_run(spooled.run.path), "step")) == 2


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        (
            "host.jsonl",
            '{"t": 5}\n',
            "damaged line 1 of `rep=0/host.jsonl` was left out: Object missing required field",
        ),
        ("exit.json", '{"status": "0"}', "`rep=0/exit.json` was left out: Expected `int | null`, got `str`"),
        ("failed.jsonl", "", ""),
        ("proc-4000001-1100/events.jsonl", '{"e": "closed", "t": 9, "number": "x"}\n', "damaged line 5 of"),
    ],
)
def test_a_damaged_spool_is_partial_and_says_where(spooled, file, text, named):
    folder = spooled.rep()
    spooled.process()
    with folder.joinpath(file).open("w" if file == "exit.json" else "a", encoding="utf-8") as out:
        out.write(text)
    done = finish(spooled.run)
    assert done.manifest.state == ("partial" if named else "complete")
    assert len(store.read(done, "step")) == 3
    assert not named or any(named in warning.message for warning in done.manifest.warnings)
    assert file == "exit.json" or named in (done.manifest.reason or "")


def test_processes_that_descend_from_each_other_are_no_endless_story(spooled):
    folder = spooled.rep()
    spooled.process()
    about = {"user": 1.0, "sys": 0.0, "rss": 1, "born": 1.0, "ended": 0.0}
    sample = {"user": 1.0, "sys": 1.0, "idle": 1.0, "steal": 0.0, "used": 1,
              "procs": [{"pid": 7, "ppid": 8, **about}, {"pid": 8, "ppid": 7, **about}]}  # fmt: skip
    lines = "".join(json.dumps({"t": 1000 + at} | sample) + "\n" for at in range(2))
    folder.joinpath("host.jsonl").write_text(lines, encoding="utf-8")
    assert finish(spooled.run).manifest.state == "complete"


def test_folders_of_other_names_are_no_repetitions(trained):
    for name in ("rep=x", "rep=-1", "rep=²", "rep=" + "9" * 30):
        trained.run.spool.joinpath(name).mkdir()
    assert [rep.rep for rep in finish(trained.run).manifest.reps] == [0]


APPLIED = {"override": {"site": "train.py:9", "changes": [{"node": 0, "op_type": "BatchOp", "workers": 2}]}}


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([], "no iterator was made at `train.py:9`"),
        ([{"e": "override_missed", "t": 1_300, "number": 0, "why": "operator 0 is a MapOp, expected BatchOp"}],
         "operator 0 is a MapOp, expected BatchOp"),
    ],
)  # fmt: skip
def test_settings_that_were_not_applied_are_a_warning(spooled, events, why):
    spooled.rep()
    spooled.process(events=events)
    spooled.run.manifest.options.update(APPLIED)
    found = [one.message for one in finish(spooled.run).manifest.warnings if one.code == "not_applied"]
    assert found == [f"the settings of the data pipeline were not applied: {why}"]


def test_settings_that_were_applied_are_none(spooled):
    spooled.rep()
    spooled.process(events=[{"e": "override", "t": 1_300, "number": 0, "node": 0, "before": {}, "after": {}}])
    spooled.run.manifest.options.update(APPLIED)
    assert [one.code for one in finish(spooled.run).manifest.warnings if one.code == "not_applied"] == []


@pytest.mark.parametrize(("rows", "length"), [(3, 95), (1, 3_500)])
def test_a_loop_that_was_left_does_not_wait_for_the_threads_of_its_iterator(spooled, rows, length):
    """MindSpore waits up to 5 s for them. A single batch may still be used after its iterator is gone."""
    spooled.rep()
    marks = [(Kind.FETCH, 0, 0, row, 1_300 + 100 * row, 1_320 + 100 * row) for row in range(rows)]
    last = marks[-1][4]
    marks += [(Kind.FETCH, 0, 1, row, last + 3_500 + 100 * row, last + 3_520 + 100 * row) for row in range(3)]
    spooled.process(started=1_100, marks=marks, events=[{"e": "closed", "t": last + 95, "number": 0}])
    steps = store.read(finish(spooled.run), "step").to_pylist()
    assert steps[rows - 1]["end_ns"] - steps[rows - 1]["start_ns"] == length
