"""`pipeprof runs`, and the run that a verb takes when none is named."""

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from in_process import ask
from table_rows import MS, op, steps

from pipeprof.cli import cli
from pipeprof.errors import RunError, UsageError
from pipeprof.experiment import history
from pipeprof.record import checksums
from pipeprof.report import run_verdict
from pipeprof.report.build import build

pytestmark = pytest.mark.usefixtures("own_cache")

WITH_RUN = (
    ["report"], ["ops"], ["sql"], ["timeline", "-o", "t.json"], ["memory"],
    ["stacks", "-o", "s.folded", "--by", "scope"],
)  # fmt: skip


@pytest.fixture
def recorded(make_run, tmp_path, monkeypatch):
    """`recorded(name, minute)`: a run in the current folder that began at that minute, with steps of 3 ms."""
    monkeypatch.chdir(tmp_path)

    def make(name, minute, command=("python", "train.py"), state="complete", sealed=False):
        info = {"op_id": 0, "name": "Default/Add-op0", "type": "Add", "phase": "forward"}
        tables = {"step": steps(*["train"] * 6, length=3 * MS), "op": [op(0, 10, 1, 3 * MS)], "op_info": [info]}
        run = make_run(tables, state=state, command=list(command))
        run.path = run.path.rename(tmp_path / name)
        run.manifest.run_id = name
        run.manifest.started_at = f"2026-01-02T03:{minute:02}:00+00:00"
        if sealed:
            checksums.seal(run)
        run.save()
        return run

    return make


def listed(*words):
    return json.loads(ask("runs", *words, "--format", "json").stdout)["runs"]


def test_runs_are_listed_newest_first_with_what_they_are(recorded):
    run = recorded("older", 1)
    recorded("newer", 2, command=["python", "other.py", "--lr", "0.1"], state="failed")
    rows = listed()
    assert [(row["path"], row["state"], row["started_at"]) for row in rows] == [
        ("newer", "failed", "2026-01-02T03:02:00+00:00"), ("older", "complete", "2026-01-02T03:01:00+00:00"),
    ]  # fmt: skip
    assert rows[0]["command"] == ["python", "other.py", "--lr", "0.1"]
    report = build(run)
    assert rows[1]["verdict"] == report["diagnosis"]["verdict"]
    assert [row["step_ns"] for row in rows] == [report["steps"]["summary"][0]["median_ns"]] * 2 == [3 * MS] * 2
    shown = ask("runs").stdout
    assert all(word in shown for word in ("older", "complete", "3.00 ms", "host-bound", "python train.py"))
    _, line = csv.DictReader(io.StringIO(ask("runs", "--format", "csv").stdout))
    assert (line["path"], line["step_ns"], line["command"]) == ("older", str(3.0 * MS), "python train.py")


def test_damaged_runs_are_listed_with_what_is_wrong(recorded):
    manifest = recorded("cut", 1).path / "run.json"
    manifest.write_text(manifest.read_text(encoding="utf-8")[:40], encoding="utf-8")
    table = recorded("torn", 2).files("step")[0]
    table.write_bytes(table.read_bytes()[:-20])
    found = {row["path"]: row for row in listed()}
    assert {row["state"] for row in found.values()} == {"damaged"}
    assert "run.json" in found["cut"]["problem"]
    assert "part-00000.parquet" in found["torn"]["problem"]
    assert "cut: damaged manifest" in ask("runs").stdout


@pytest.mark.parametrize("started_at", ["yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_run_that_began_at_no_time_is_listed(recorded, started_at):
    run = recorded("odd", 0)
    run.manifest.started_at = started_at
    run.save()
    assert [row["path"] for row in listed()] == ["odd"]


def test_a_run_that_was_cut_off_is_partial_and_stays_as_it_is_unless_its_training_goes_on(recorded, monkeypatch):
    """As `status` says, and the verbs that will not open it."""
    run = recorded("run", 1, state="running")
    before = run.path.joinpath("run.json").read_bytes()
    (row,) = listed()
    assert (row["state"], row["verdict"]) == ("partial", None)
    assert "cut off" in row["problem"]
    assert "run: the recording was cut off" in " ".join(ask("runs").stdout.split())
    assert run.path.joinpath("run.json").read_bytes() == before
    monkeypatch.setattr("pipeprof.record.lock._recorded_alive", lambda _run: {77})
    (row,) = listed()
    assert (row["state"], row["problem"]) == ("running", None)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_run_is_asked_once_and_again_when_it_changes(recorded, monkeypatch, sealed):
    run, asked = recorded("run", 1, sealed=sealed), []
    real = run_verdict.Engine.open
    monkeypatch.setattr(run_verdict.Engine, "open", lambda run, **words: asked.append(run.path) or real(run, **words))
    before = listed()
    with monkeypatch.context() as patch:
        if sealed:  # no table is opened either
            patch.setattr(checksums, "_opened", None)
        assert listed() == before
    assert len(asked) == 1
    table = run.files("step")[0]
    if sealed:
        table.rename(table.with_name("part-00001.parquet"))
    else:
        table.write_bytes(table.read_bytes()[:-20])
    assert listed()[0]["state"] == "damaged"


@pytest.mark.parametrize(
    "name", ["step/rep=0/rank=0/part-00001", "step/rep=0/rank=1/part-00000", "step/rep=1/rank=0/part-00000",
             "fetch/rep=0/rank=0/part-00000"]
)  # fmt: skip
def test_a_file_that_was_added_after_a_run_was_listed_is_told(recorded, name):
    run = recorded("run", 1, sealed=True)
    assert listed()[0]["state"] == "complete"
    added = run.path / f"{name}.parquet"
    added.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run.files("step")[0], added)
    assert f"`run/{name}.parquet`: it was added" in listed()[0]["problem"]


@pytest.mark.parametrize(("name", "pasted"), [("inner", "inner"), ("my runs", "'my runs'")])
def test_a_folder_without_runs_says_where_there_are_some(recorded, name, pasted):
    run = recorded("run", 1)
    os.mkdir(name)  # noqa: PTH102 - in the current folder
    run.path.rename(run.path.parent / name / "run")
    answer = ask("runs")
    assert answer.stdout == ""
    assert answer.stderr.splitlines() == ["no runs in `.`", f"hint: pipeprof runs {pasted}"]
    with pytest.raises(UsageError) as refused:
        ask("report")
    assert refused.value.hint == f"pipeprof runs {pasted}"
    assert [row["path"] for row in (*listed(name), *listed(f"{name}/run"))] == [f"{name}/run"] * 2


def test_a_file_is_written_though_there_are_none_and_a_missing_folder_is_an_error(tmp_path):
    for number, verb in enumerate((["runs", str(tmp_path)], ["baseline", "list", "--root", str(tmp_path)])):
        said = tmp_path / f"{number}.txt"
        ask(*verb, "-o", str(said))
        assert said.read_text().strip()
    with pytest.raises(RunError, match="`/no/such`"):
        ask("runs", "/no/such")


@pytest.mark.parametrize("words", WITH_RUN, ids=lambda words: words[0])
def test_a_verb_without_a_run_takes_the_newest_and_says_so(recorded, words):
    recorded("older", 1)
    recorded("newer", 2)
    answer = ask(*words)
    assert answer.exit_code == 0
    assert answer.stderr.splitlines()[0] == "pipeprof: using the newest run, `newer`"
    assert answer.stdout == ask(words[0], "newer", *words[1:], *(["--force"] if "-o" in words else [])).stdout


@pytest.mark.parametrize("words", WITH_RUN, ids=lambda words: words[0])
def test_without_any_run_it_is_an_error(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no RUN was given"):
        ask(*words)


def test_the_newest_is_not_a_damaged_one_and_inside_a_run_it_is_the_run(recorded, monkeypatch):
    older = recorded("older", 1)
    recorded("newer", 2).path.joinpath("run.json").write_text("{", encoding="utf-8")
    assert ask("sql").stderr == "pipeprof: using the newest run, `older` (1 damaged left out)\n"
    monkeypatch.chdir(older.path)
    assert "newest run, `.`" in ask("sql").stderr


@pytest.mark.parametrize("words", [["--", "python", "x.py"], []])
def test_whatif_takes_the_newest_run_also_in_front_of_a_command(recorded, words):
    recorded("run", 1)
    answer = CliRunner().invoke(cli, ["whatif", "--op", "1", "--workers", "2", *words])
    assert "newest run, `run`" in answer.stderr
    assert "`run` holds no dataset pipeline" in str(answer.exception)


@pytest.mark.parametrize("sql", ["SELECT count(*) AS n FROM step", "from step select count(*) as n", "-"])
def test_sql_alone_is_asked_of_the_newest_run(recorded, sql):
    recorded("run", 1)
    answer = CliRunner().invoke(cli, ["sql", sql, "--format", "csv"], input="SELECT count(*) AS n FROM step")
    assert answer.stdout == "n\n6\n"


def test_a_path_alone_is_a_run_also_when_it_reads_as_sql(recorded):
    recorded("select 1", 1)
    recorded("newer", 2)
    assert ask("sql", "select 1").stderr == ""
    assert ask("sql", "SELECT 7 // 2 AS a", "--format", "csv").stdout == "a\n3\n"  # SQL keeps its characters
    with pytest.raises(RunError, match="no such run: `step`"):
        ask("sql", "step")
    with pytest.raises(UsageError, match="expected RUN and SQL, found 5 words"):
        ask("sql", "run", "SELECT", "*", "FROM", "step")
    with pytest.raises(RunError) as refused:
        ask("ops", "newr")
    assert refused.value.hint == "did you mean `newer`?"


def test_a_folder_that_may_not_be_looked_into_hides_no_run(recorded, tmp_path, monkeypatch):
    recorded("run", 1)
    private, stat = tmp_path / "private", Path.stat
    private.mkdir()

    def refused(path, **words):
        if path.parent in (private, Path(private.name)):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **words)

    monkeypatch.setattr(Path, "stat", refused)
    found = {row["path"]: row for row in listed()}
    assert (found["run"]["state"], found["private"]["state"]) == ("complete", "damaged")
    assert "cannot read `private/run.json`" in found["private"]["problem"]
    assert "using the newest run, `run` (1 damaged left out)" in ask("report").stderr
    _, left_out = history._of_runs(Path(), lambda _: None, recover=True)
    assert "private" in [one["path"] for one in left_out]
