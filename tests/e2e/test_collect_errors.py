"""What cannot be recorded is refused in one line that says what to do, before or after the command."""

import json
import os
import subprocess

import pytest

from pipeprof.record.run import load


def refused(done, status=2):
    """The hint of a refusal: one `error:` line, one `hint:` line, no traceback."""
    lines = done.stderr.strip().splitlines()
    assert done.returncode == status, done.stderr
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"], done.stderr
    assert done.stdout == ""
    return lines[0], lines[1]


def test_unknown_command_is_refused_and_leaves_no_run(pipeprof):
    recording = pipeprof.collect(["no-such-command"])
    error, _ = refused(recording.done)
    assert "`no-such-command`" in error
    assert not recording.path.exists()


def test_file_that_is_not_executable_is_refused(pipeprof, tmp_path):
    (tmp_path / "x.py").write_text("print(1)\n", encoding="utf-8")
    recording = pipeprof.collect([str(tmp_path / "x.py")])
    _, hint = refused(recording.done)
    assert "python" in hint
    assert not recording.path.exists()


def test_script_without_interpreter_is_refused(pipeprof, tmp_path):
    (tmp_path / "x").write_bytes(b"\x00\x01\x02")
    (tmp_path / "x").chmod(0o755)
    recording = pipeprof.collect([str(tmp_path / "x")])
    refused(recording.done)


def test_no_command_is_refused(pipeprof, tmp_path):
    refused(pipeprof.run("collect", "-o", str(tmp_path / "run")))
    assert not (tmp_path / "run").exists()


def test_existing_run_is_not_overwritten(pipeprof, tmp_path):
    first = pipeprof.collect(["true"], out=tmp_path / "run")
    before = first.manifest.run_id
    error, hint = refused(pipeprof.collect(["true"], out=tmp_path / "run").done)
    assert "exists" in error
    assert "--force" in hint
    assert load(tmp_path / "run").manifest.run_id == before


def test_force_replaces_a_run(pipeprof, tmp_path):
    before = pipeprof.collect(["true"], out=tmp_path / "run").manifest.run_id
    second = pipeprof.collect(["true"], "--force", out=tmp_path / "run")
    assert second.done.returncode == 0
    assert second.manifest.run_id != before


def test_force_does_not_touch_a_folder_that_is_no_run(pipeprof, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("all of it", encoding="utf-8")
    refused(pipeprof.collect(["true"], "--force", out=tmp_path / "work").done)
    assert (tmp_path / "work" / "thesis.txt").read_text(encoding="utf-8") == "all of it"


def test_force_with_a_wrong_command_keeps_the_old_run(pipeprof, tmp_path):
    before = pipeprof.collect(["true"], out=tmp_path / "run").manifest.run_id
    refused(pipeprof.collect(["no-such-command"], "--force", out=tmp_path / "run").done)
    assert load(tmp_path / "run").manifest.run_id == before


def test_file_in_the_place_of_the_run_is_refused(pipeprof, tmp_path):
    (tmp_path / "run").write_text("a file", encoding="utf-8")
    refused(pipeprof.collect(["true"], "--force", out=tmp_path / "run").done)
    refused(pipeprof.collect(["true"], out=tmp_path / "run" / "below").done)
    assert (tmp_path / "run").read_text(encoding="utf-8") == "a file"


def test_folder_that_cannot_be_written_is_refused(pipeprof):
    refused(pipeprof.collect(["true"], out="/proc/pipeprof/run").done)


def test_read_only_folder_is_refused(pipeprof, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    if os.access(tmp_path / "closed", os.W_OK):
        done = subprocess.run(["chattr", "+i", tmp_path / "closed"], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("root may write everywhere here")
    try:
        refused(pipeprof.collect(["true"], out=tmp_path / "closed" / "run").done)
    finally:
        subprocess.run(["chattr", "-i", tmp_path / "closed"], capture_output=True, check=False)


@pytest.mark.parametrize("words", ["active=x", "skip_first=2", "foo=1,active=1", "active=0", ""])
def test_schedule_that_cannot_be_read_is_refused(pipeprof, words):
    recording = pipeprof.collect(["true"], "--schedule", words)
    refused(recording.done)
    assert not recording.path.exists()


def test_failing_command_keeps_its_code_and_leaves_a_failed_run(pipeprof):
    recording = pipeprof.collect(["false"])
    assert recording.done.returncode == 1
    assert recording.manifest.state == "failed"
    assert "code 1" in recording.manifest.reason


SECRET = "c0ffee-do-not-keep"  # noqa: S105 - what must not be found


def everything(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("words", [
    ["--token", SECRET], [f"--token={SECRET}"], ["--api-key", SECRET], [f"--db-password={SECRET}"],
    [f"https://user:{SECRET}@example.org/data"], [f"WANDB_API_KEY={SECRET}"], ["--token", f"-{SECRET}"],
    ["-p", "x", "--auth", SECRET], [f"--header=Authorization: Bearer {SECRET}"], ["--header", f"Authorization: Bearer {SECRET}"],
    [f"--url=postgres://:{SECRET}@host/db"], ["bash", "-c", f"export AWS_SECRET_ACCESS_KEY={SECRET}"],
])  # fmt: skip
def test_secret_on_the_command_line_is_not_kept(pipeprof, words):
    recording = pipeprof.collect(["echo", *words], "--keep-spool")
    assert recording.done.returncode == 0
    assert "echo" in json.loads((recording.path / "run.json").read_text(encoding="utf-8"))["command"]
    assert SECRET.encode() not in everything(recording.path)


def test_secret_of_a_python_command_is_not_kept_in_the_spool(pipeprof):
    recording = pipeprof.collect([pipeprof.python, "-c", f"token = '{SECRET}'", "--token", SECRET], "--keep-spool")
    spool = everything(recording.path / "spool")
    assert spool
    assert SECRET.encode() not in spool


def test_environment_is_kept_by_an_allow_list(pipeprof):
    names = ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HOME_MADE_VARIABLE", "LD_LIBRARY_PATHS"]
    env = pipeprof.environment(**dict.fromkeys(names, SECRET), OMP_NUM_THREADS="1")
    recording = pipeprof.collect(["true"], "--keep-spool", env=env)
    assert SECRET.encode() not in everything(recording.path)
    assert recording.manifest.fingerprint["environment"]["OMP_NUM_THREADS"] == "1"


@pytest.mark.mindspore
@pytest.mark.parametrize("how", ["variable", "option"])
def test_points_that_name_nothing_are_warnings_with_near_names_and_the_exit_code_stands(pipeprof, how):
    command = pipeprof.script("loops.py", "train_one_step_cell_in_graph_mode")
    env = pipeprof.environment(FP_POINT="MatMull-op0", BP_POINT="Nothing") if how == "variable" else None
    options = ["--fp-point", "MatMull-op0", "--bp-point", "Nothing"] if how == "option" else []
    recording = pipeprof.collect(command, *options, "-q", env=env)
    first, second = recording.done.stderr.strip().splitlines()[-2:]
    assert recording.done.returncode == 0
    assert first.startswith("warning: FP_POINT `MatMull-op0` matches no operator")
    assert "MatMul-op0`" in first
    assert second.startswith("warning: BP_POINT `Nothing` matches no operator")
    assert len(recording.training()) == 12


@pytest.mark.mindspore
def test_wrong_point_does_not_hide_the_commands_own_failure(pipeprof):
    recording = pipeprof.collect(
        pipeprof.script("endings.py", "exit7", "6"), env=pipeprof.environment(BP_POINT="Nothing")
    )
    assert recording.done.returncode == 7


@pytest.fixture(scope="module")
def names(recorded):
    """Two forward and two backward operators, neither of them the automatic choice."""
    recording = recorded("loops.py", "train_one_step_cell_in_graph_mode")
    chosen = recording.manifest.options["points"]["rank 0"]
    found = recording.sql("SELECT name, phase FROM op_info WHERE phase IN ('forward', 'backward') ORDER BY name")
    return {
        phase: [
            row["name"] for row in found if row["phase"] == phase and row["name"] not in (chosen["fp"], chosen["bp"])
        ][:2]
        for phase in ("forward", "backward")
    }


@pytest.mark.mindspore
@pytest.mark.parametrize(("fp", "bp"), [("FP_POINT", "BP_POINT"), ("PROFILING_FP_START", "PROFILING_BP_END")])
def test_points_that_name_operators_are_used(pipeprof, names, fp, bp):
    env = pipeprof.environment(**{fp: names["forward"][0], bp: names["backward"][0]})
    recording = pipeprof.collect(pipeprof.script("loops.py", "train_one_step_cell_in_graph_mode"), env=env)
    assert recording.done.returncode == 0, recording.done.stderr
    forward, backward = names["forward"][0], names["backward"][0]
    query = (
        "SELECT step.step, fp_ns, bp_ns, min(o.start_ns) AS first, max(o2.start_ns + o2.dur_ns) AS last FROM step "
        "JOIN op AS o USING (rep, rank, step) JOIN op_info AS i ON i.op_id = o.op_id "
        "JOIN op AS o2 ON o2.step = step.step JOIN op_info AS i2 ON i2.op_id = o2.op_id "
        "WHERE i.name = 'FORWARD' AND i2.name = 'BACKWARD' GROUP BY ALL"
    )
    found = recording.sql(query.replace("FORWARD", forward).replace("BACKWARD", backward))
    assert found
    assert all(row["fp_ns"] == row["first"] for row in found)
    assert all(row["bp_ns"] in (row["last"], None) for row in found)


@pytest.mark.mindspore
def test_profiling_variables_win_over_the_others(pipeprof, names):
    one, other = names["forward"]
    recording = pipeprof.collect(
        pipeprof.script("loops.py", "train_one_step_cell_in_graph_mode"),
        env=pipeprof.environment(FP_POINT=one, PROFILING_FP_START=other),
    )
    assert recording.manifest.options["points"]["rank 0"]["fp"] == other
    assert "points_differ" in recording.warned()
