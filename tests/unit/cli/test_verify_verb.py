"""`pipeprof verify`: every file as it was written, or which are not; and other verbs refuse a run that was rewritten."""

import json

import pytest
from copies import files_of, flip
from in_process import ask
from table_rows import MS, steps

from pipeprof.errors import RunError
from pipeprof.record import checksums
from pipeprof.record.run import load


@pytest.fixture
def run(make_run):
    stage = [{"stage": "start", "start_ns": 0, "dur_ns": 5}]
    made = make_run({"step": steps(*["train"] * 9, length=MS), "stage": stage}, state="complete")
    checksums.seal(made)
    made.save()
    return made


def as_json(run):
    done = ask("verify", run.path, "--format", "json")
    found = json.loads(done.stdout)
    assert found["exit_code"] == done.exit_code
    return found


def test_a_run_that_was_left_alone_is_intact_and_stays_as_it_is(run):
    before = files_of(run.path)
    done = ask("verify", run.path)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"`{run.path}` is as it was written: 2 files, ")
    found = as_json(run)
    assert (found["schema_version"], found["verdict"], found["files"], found["changes"]) == (1, "intact", 2, [])
    assert found["bytes"] == sum(path.stat().st_size for path in run.path.rglob("*.parquet"))
    assert files_of(run.path) == before
    assert load(run.path).manifest == run.manifest


def test_a_changed_byte_is_named_with_what_was_found_and_expected(run):
    flip(run.files("step")[0], 10)
    done = ask("verify", run.path)
    assert done.exit_code == 3
    assert "step/rep=0/rank=0/part-00000.parquet" in done.stdout
    assert " ".join(done.stdout.split()).startswith(f"1 file of `{run.path}` is not as written")
    (change,) = as_json(run)["changes"]
    noted = run.manifest.parts["step/rep=0/rank=0/part-00000.parquet"].sha256
    assert (change["code"], change["expected"]) == ("content", f"SHA-256 {noted}")
    assert change["found"] not in ("", change["expected"])


def test_a_run_of_an_older_pipeprof_has_no_checksums_and_that_is_no_pass(run):
    run.manifest.parts = None
    run.save()
    done = ask("verify", run.path)
    assert done.exit_code == 3
    assert "has no checksums" in done.stdout
    assert as_json(run)["verdict"] == "no_checksums"
    assert ask("sql", run.path, "SELECT count(*) FROM step").exit_code == 0


@pytest.mark.parametrize("words", [["report"], ["ops"], ["sql"], ["timeline", "-o", "t.json"], ["memory"]])
def test_other_verbs_refuse_a_file_that_was_rewritten(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    path = run.files("step")[0]
    flip(path, -20)
    with pytest.raises(RunError) as caught:
        ask(words[0], run.path, *words[1:], *(["SELECT 1"] if words[0] == "sql" else []))
    assert caught.value.message.startswith(f"damaged file `{path}`: it was rewritten after the run was made: found ")


def test_verify_names_all_changes_in_a_line_each_however_wide_the_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    for path in run.path.rglob("*.parquet"):
        path.write_bytes(path.read_bytes() + b"x")
    assert [change["code"] for change in as_json(run)["changes"]] == ["size", "size"]
    lines = [line for line in ask("verify", run.path).stdout.splitlines() if "rewritten" in line]
    assert sorted(line.split("parquet")[0] + "parquet" for line in lines) == sorted(run.manifest.parts)
    assert all(", expected " in line for line in lines)
    with pytest.raises(RunError, match="is not a pipeprof run"):
        ask("verify", run.path.parent)
