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
from stored_rows import rows, warnings

from pipeprof.errors import RunError
from pipeprof.read.spool import finish as finishing
from pipeprof.read.spool import lines
from pipeprof.read.spool.finish import finish, open_run
from pipeprof.read.spool.marks import Kind
from pipeprof.record import lock, store
from pipeprof.record.lock import QUIET_S
from pipeprof.record.run import load

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)
RECOVERED = "the launcher was killed; what had been written was recovered"


@pytest.fixture
def trained(spooled):
    """One repetition that ended well, with one process that trained three steps."""
    spooled.trained()
    return spooled


@pytest.fixture
def opened(trained):
    """`opened()`: the state of the run once it is opened."""
    return lambda: open_run(trained.run.path).manifest.state


def state(run):
    return run.manifest.state, run.manifest.reason


def missing(run):
    return {item.what: item.why for item in run.manifest.not_measured}


def steps(run):
    return len(store.read(run, "step"))


def of_launcher(run, pid, start, host=None):
    run.manifest.launcher_pid, run.manifest.launcher_start = pid, start
    if host:
        run.manifest.fingerprint["host"] = host
    run.save()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (0, ("complete", None)),
        (3, ("failed", "the command exited with code 3")),
        *((-one, ("partial", f"the command was ended by {one.name}")) for one in SIGNALS),
        (-63, ("partial", "the command was ended by signal 63")),
        (None, ("partial", RECOVERED)),
    ],
)
def test_how_the_command_ended_is_the_state_and_the_reason(spooled, status, expected):
    spooled.trained(status=status)
    assert state(finish(spooled.run)) == expected


def test_after_a_full_disk_the_hint_names_what_works(tmp_path):
    """Recording again would be refused, since the run is there."""
    capture = Path(__file__).parents[2] / "real" / "captures" / "2.10-pynative"
    shutil.copytree(capture, tmp_path / "run")
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); import signal; "
    limited += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from pipeprof.cli import main; main()"
    command = [sys.executable, "-B", "-c", limited, "report", "run"]  # without -B it would leave cut off bytecode
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "cannot write `run/" in done.stderr
    (hint,) = re.findall("hint: .*: pipeprof (.*)", done.stderr)
    again = [sys.executable, "-m", "pipeprof", *hint.split()]
    done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "run").manifest.tables["step"]


@pytest.mark.parametrize(
    ("how", "missing_s", "said"),
    [
        (
            {"end": 2_000_000_000},
            2.0,
            "process 4000001 (rank 0) ended without its exit handlers; at most the last 2.0 s",
        ),
        ({"end": 2_040_000_000}, 2.04, "at most the last 2.1 s of steps"),  # what is said is never rounded down
        # never less than what waits to be written, and also before the first marks were
        ({"status": None, "end": 100}, 1.0, "at most the last 1.0 s of steps"),
        ({"end": 100}, 1.0, "at most the last 1.0 s of steps"),
        (
            {"status": None, "marks": []},
            None,
            "recovered; at most the last 1.0 s of steps are missing, and all queue samples",
        ),
    ],
)
def test_a_process_that_vanished_makes_the_run_partial_and_bounds_what_is_missing(spooled, how, missing_s, said):
    spooled.trained(**how, bye=False)
    done = finish(spooled.run)
    assert done.manifest.state == "partial"
    assert said in done.manifest.reason
    ranks = [(rank.ended, rank.missing_steps_s) for rank in done.manifest.reps[0].ranks]
    assert ranks == ([] if missing_s is None else [("lost", pytest.approx(missing_s, abs=0.001))])


def test_the_worst_repetition_decides_and_all_of_them_count(spooled):
    for rep, status in ((0, 0), (1, 4)):
        spooled.trained(rep, status=status)
    done = finish(spooled.run)
    assert state(done) == ("failed", "the command exited with code 4")
    assert [rep.exit_code for rep in done.manifest.reps] == [0, 4]
    assert done.manifest.tables["step"] == steps(done) == 6


@pytest.mark.parametrize("kept", [False, True])
def test_the_spool_goes_once_the_tables_are_there_and_a_finished_run_is_opened_as_it_is(trained, kept):
    finish(trained.run, keep_spool=kept)
    assert trained.run.spool.is_dir() == kept
    assert load(trained.run.path).manifest.tables["step"] == 3
    before = trained.run.path.joinpath("run.json").read_bytes()
    open_run(trained.run.path)
    assert trained.run.path.joinpath("run.json").read_bytes() == before


def test_what_a_limit_left_out_is_kept_and_read_once_more_is_allowed(trained, monkeypatch):
    monkeypatch.setattr(lines, "MOST_BYTES", 26 * 5)  # marks
    done = finish(trained.run)
    assert (done.manifest.state, done.spool.is_dir(), done.is_settled()) == ("partial", True, True)
    assert "set PIPEPROF_MAX_BYTES" in done.manifest.reason
    monkeypatch.setenv("PIPEPROF_MAX_BYTES", "100000")
    done = open_run(trained.run.path)
    assert (state(done), done.manifest.tables["step"], done.spool.is_dir()) == (("complete", None), 3, False)


def test_the_spool_stays_while_a_recorded_process_still_runs(trained, monkeypatch):
    monkeypatch.setattr(finishing, "processes_alive", lambda _run: [77])
    with pytest.raises(RunError, match="process 77 runs on"):
        open_run(trained.run.path)
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
    assert warnings(whole, "nothing_seen") == []


def test_where_a_training_was_recorded_other_pythons_may_run_on(spooled, background):
    spooled.process()
    assert state(finish(spooled.run)) == ("complete", None)


def refuse(*_words):
    raise RunError("no space")


def test_the_spool_stays_when_the_tables_cannot_be_written(trained, opened, monkeypatch):
    monkeypatch.setattr(store, "write_arrow", refuse)
    with pytest.raises(RunError):
        finish(trained.run)
    assert trained.run.spool.is_dir()
    assert state(load(trained.run.path)) == ("partial", "its tables could not be written: no space")
    monkeypatch.undo()
    assert opened() == "complete"
    assert state(finish(trained.run)) == ("complete", None)  # what another process has recovered is taken
    assert state(load(trained.run.path)) == ("complete", None)


def test_a_disk_without_room_for_the_folder_of_a_table_leaves_a_partial_run(trained, opened):
    blocked = trained.run.path / "step"
    blocked.write_text("no folder can be made here", encoding="utf-8")
    with pytest.raises(RunError, match="cannot write"):
        finish(trained.run)
    assert load(trained.run.path).manifest.state == "partial"
    blocked.unlink()
    assert opened() == "complete"


def test_a_recovered_run_keeps_whole_marks_of_a_file_that_was_cut_off(spooled):
    marks = spooled.trained(status=None, bye=False) / "marks.bin"
    marks.write_bytes(marks.read_bytes()[:-10])
    done = open_run(spooled.run.path)
    assert (done.manifest.state, steps(done), done.spool.exists()) == ("partial", 2, False)
    assert load(done.path).manifest.state == "partial"
    assert "ends in the middle of a record" in done.manifest.warnings[0].message


@pytest.mark.parametrize(
    ("start", "host", "age", "alive"),
    [
        (None, None, 0.0, True),
        (12345.0, None, 0.0, False),  # another process with the launcher's number
        (None, "another host", 0.0, True),  # as long as its spool is written to
        (None, "another host", 2 * QUIET_S, False),
    ],
)
def test_a_run_that_is_still_being_recorded_is_refused(trained, opened, start, host, age, alive):
    of_launcher(trained.run, os.getpid(), start or psutil.Process().create_time(), host)
    for path in trained.run.spool.rglob("*"):
        os.utime(path, (time.time() - age,) * 2)
    if alive:
        with pytest.raises(RunError, match="is still being recorded"):
            opened()
    assert (load(trained.run.path).manifest.state if alive else opened()) == ("running" if alive else "complete")


def test_a_launcher_that_ended_but_was_never_reaped_records_nothing(trained, opened):
    launcher = subprocess.Popen(["true"])
    started = psutil.Process(launcher.pid).create_time()
    os.waitid(os.P_PID, launcher.pid, os.WEXITED | os.WNOWAIT)
    try:
        of_launcher(trained.run, launcher.pid, started)
        assert opened() == "complete"
    finally:
        launcher.wait()


def test_the_lock_says_whether_a_run_is_being_recorded(trained, opened):
    lock.take(trained.run.path, trained.run.manifest.run_id)
    with pytest.raises(RunError, match="is still being recorded"):
        opened()
    finish(trained.run)
    assert not trained.run.path.joinpath(lock.LOCK).exists()
    assert opened() == "complete"


def test_the_lock_of_a_launcher_that_was_killed_is_taken_over_and_removed(trained, opened):
    holder = subprocess.Popen(["true"])
    holder.wait()
    mine = {"run_id": "x", "pid": holder.pid, "start_ticks": 1, "place": lock._place()}
    trained.run.path.joinpath(lock.LOCK).write_text(json.dumps(mine), encoding="utf-8")
    assert opened() == "complete"
    assert not trained.run.path.joinpath(lock.LOCK).exists()


def test_a_run_that_another_process_recovered_meanwhile_is_taken_as_it_is(trained, monkeypatch):
    other = load(trained.run.path)

    def first(run):
        monkeypatch.undo()
        finish(other)

    monkeypatch.setattr(finishing, "_refuse_recorded", first)
    assert state(open_run(trained.run.path)) == ("complete", None)


@pytest.mark.parametrize("name", ["folder", "spool", "folder, while its tables were made"])
def test_a_folder_or_spool_that_was_deleted_under_a_recording_is_a_failed_run(trained, monkeypatch, name):
    write, path = store.write_arrow, trained.run.path

    def delete_first(run, table, *rest):
        if path.joinpath("run.json").exists():
            shutil.rmtree(path)
        return write(run, table, *rest)

    if "while" in name:
        monkeypatch.setattr(store, "write_arrow", delete_first)
    else:
        shutil.rmtree(path if name == "folder" else trained.run.spool)
    finish(trained.run)
    assert state(load(path)) == ("failed", f"its {name.partition(',')[0]} was deleted while it was recorded")
    assert not trained.run.files("step")


def test_a_folder_that_holds_another_run_by_now_is_left_alone(trained):
    mine = load(trained.run.path)
    trained.run.manifest.run_id = "another"
    trained.run.save()
    before = {path: path.read_bytes() for path in trained.run.path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="found run_id another, expected 20260101T000000-abcdef"):
        finish(mine)
    assert {path: path.read_bytes() for path in trained.run.path.rglob("*") if path.is_file()} == before


def of_run(path, run_id):
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"run_id": run_id}), encoding="utf-8")


def test_the_spool_of_another_run_is_not_claimed(trained):
    launch = trained.run.spool / "rep=0" / "launch.json"
    of_run(launch, "another")
    with pytest.raises(RunError, match="is of another run: found run_id another, expected 20260101T000000-abcdef"):
        open_run(trained.run.path)
    assert load(trained.run.path).manifest.state == "running"
    assert launch.exists()


def test_a_training_of_the_run_that_was_replaced_is_left_out(spooled):
    spooled.trained(steps=2, run_id=spooled.run.manifest.run_id)
    spooled.process(pid=4_000_002, steps=5, run_id="replaced")
    done = finish(spooled.run)
    assert steps(done) == 2
    assert [warning.code for warning in done.manifest.warnings] == ["other_run"]


def test_the_end_of_another_runs_command_is_not_ours(trained):
    of_run(trained.run.spool / "rep=0" / "exit.json", "replaced")
    assert finish(trained.run).manifest.reason == RECOVERED


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
    assert (state(done), steps(done)) == (("complete", None), 3)
    assert not [path for path in done.path.iterdir() if "spool" in path.name]


def test_a_run_that_recorded_nothing_is_failed(spooled):
    assert state(open_run(spooled.run.path)) == ("failed", "the recording ended before anything was recorded")


@pytest.mark.parametrize(
    ("source", "op", "service"),
    [
        ("collect", "switched off with --ops off", "switched off with --no-service"),
        ("profile", *["not among the activities of the profile"] * 2),
    ],
)
def test_what_was_not_measured_says_why(spooled, source, op, service):
    spooled.trained(events=[{"e": "warning", "t": 1_300, "code": "queues_off", "message": "no manager"}])
    spooled.run.manifest.source = source
    spooled.run.manifest.options |= {"ops": "off", "service": False}
    why = missing(finish(spooled.run))
    assert (why["op"], why["op_service"], why["queue"]) == (op, service, "no manager")
    assert "step" not in why


def test_a_command_without_python_is_explained(spooled):
    spooled.rep().joinpath("hello.jsonl").unlink()
    done = finish(spooled.run)
    assert missing(done)["step"].startswith("no Python of the command was watched")
    assert [warning.code for warning in done.manifest.warnings] == ["nothing_seen"]


def test_a_process_that_stopped_recording_says_why(trained):
    with (trained.run.spool / "rep=0" / "hello.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"pid": 4000001, "problem": "its files were removed or replaced"}\n')
    (said,) = warnings(finish(trained.run), "recording_stopped")
    assert said == "process 4000001 recorded nothing more: its files were removed or replaced"


@pytest.mark.parametrize(
    ("events", "why"), [(0, "no training"), (1, "no training"), (3, "MindSpore or PyTorch was used")]
)
def test_a_python_without_training_is_explained_by_what_it_recorded(spooled, events, why):
    """Nothing, that it was there, as in a profiled block, and that MindSpore was imported."""
    spooled.rep()
    if events:
        file = spooled.process(marks=[]) / "events.jsonl"
        told = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join(told[:1] if events == 1 else told), encoding="utf-8")
    assert missing(finish(spooled.run))["step"].startswith(why)


def test_what_only_the_process_knew_reaches_the_fingerprint(spooled):
    spooled.trained(events=[{"e": "context", "t": 1_300, "device_target": "CPU", "mode": "1", "numpy": "2.0"}])
    found = finish(spooled.run).manifest.fingerprint
    assert (found["mindspore"], found["device"], found["mode"], found["numpy"]) == ("2.10.0", "CPU", "pynative", "2.0")


@pytest.mark.parametrize("kept", [False, True])
def test_what_a_process_recorded_after_the_launcher_ended_is_there_when_the_run_is_opened(spooled, monkeypatch, kept):
    spooled.run.manifest.options["keep_spool"] = kept
    folder = spooled.trained(steps=1)
    with monkeypatch.context() as patch:
        patch.setattr(finishing, "processes_alive", lambda _run: [77])
        finish(spooled.run, keep_spool=kept)
    spooled.marks(folder, spooled.loop(1_300, 2))
    assert steps(open_run(spooled.run.path)) == 2


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
def test_a_damaged_spool_is_partial_and_says_where(trained, file, text, named):
    path = trained.run.spool / "rep=0" / file
    with path.open("w" if file == "exit.json" else "a", encoding="utf-8") as out:
        out.write(text)
    done = finish(trained.run)
    assert (done.manifest.state, steps(done)) == ("partial" if named else "complete", 3)
    assert not named or any(named in warning.message for warning in done.manifest.warnings)
    assert file == "exit.json" or named in (done.manifest.reason or "")


def test_processes_that_descend_from_each_other_are_no_endless_story(trained):
    about = {"user": 1.0, "sys": 0.0, "rss": 1, "born": 1.0, "ended": 0.0}
    procs = [{"pid": pid, "ppid": parent, **about} for pid, parent in ((7, 8), (8, 7))]
    sample = {"user": 1.0, "sys": 1.0, "idle": 1.0, "steal": 0.0, "used": 1, "procs": procs}
    trained.host([{"t": 1000 + at} | sample for at in range(2)])
    assert finish(trained.run).manifest.state == "complete"


def test_folders_of_other_names_are_no_repetitions(trained):
    for name in ("rep=x", "rep=-1", "rep=²", "rep=" + "9" * 30):
        trained.run.spool.joinpath(name).mkdir()
    assert [rep.rep for rep in finish(trained.run).manifest.reps] == [0]


WRONG = "operator 0 is a MapOp, expected BatchOp"


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([], ["no iterator was made at `train.py:9`"]),
        ([{"e": "override_missed", "t": 1_300, "number": 0, "why": WRONG}], [WRONG]),
        ([{"e": "override", "t": 1_300, "number": 0, "node": 0, "before": {}, "after": {}}], []),
    ],
)
def test_settings_that_were_not_applied_are_a_warning(spooled, events, why):
    change = {"node": 0, "op_type": "BatchOp", "workers": 2}
    spooled.trained(events=events)
    spooled.run.manifest.options["override"] = {"site": "train.py:9", "changes": [change]}
    found = warnings(finish(spooled.run), "not_applied")
    assert found == [f"the settings of the data pipeline were not applied: {one}" for one in why]


@pytest.mark.parametrize(("rows_", "length"), [(3, 95), (1, 3_500)])
def test_a_loop_that_was_left_does_not_wait_for_the_threads_of_its_iterator(spooled, rows_, length):
    """MindSpore waits up to 5 s for them. A single batch may still be used after its iterator is gone."""
    marks = [(Kind.FETCH, 0, 0, row, 1_300 + 100 * row, 1_320 + 100 * row) for row in range(rows_)]
    last = marks[-1][4]
    marks += [(Kind.FETCH, 0, 1, row, last + 3_500 + 100 * row, last + 3_520 + 100 * row) for row in range(3)]
    spooled.trained(marks=marks, events=[{"e": "closed", "t": last + 95, "number": 0}])
    start, end = rows(finish(spooled.run), "step", "start_ns end_ns")[rows_ - 1]
    assert end - start == length
