"""`pipeprof compare`: formats, exit codes, and what it refuses."""

import json
import os
import subprocess
import sys

import pytest

from pipeprof.record.run import Rep

SPREAD = (1.0, 1.004, 0.997, 1.002, 0.999, 1.001)


def steps(rep, dur_us):
    rows = []
    for step in range(12):
        times = {"start_ns": step * dur_us * 1000, "end_ns": (step + 1) * dur_us * 1000}
        rows.append({"rep": rep, "step": step, "kind": "train", "kind_step": step, "in_window": False, **times})
    return rows


@pytest.fixture
def recorded(make_run):
    def make(dur_us=10_000, cpu="A", spread=SPREAD):
        rows = [row for rep, factor in enumerate(spread) for row in steps(rep, round(dur_us * factor))]
        run = make_run({"step": rows})
        manifest = run.manifest
        manifest.state, manifest.job, manifest.command = "complete", "boot:1", ["python", "train.py"]
        manifest.fingerprint = {"cpu_model": cpu, "cpu_cores": 2}
        manifest.reps = [
            Rep(rep=rep, zero_realtime_ns=rep, zero_monotonic_ns=0, exit_code=0) for rep in range(len(spread))
        ]
        run.save()
        return str(run.path)

    return make


@pytest.fixture
def verb(capsys, monkeypatch, tmp_path):
    from pipeprof import cli

    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr("sys.argv", ["pipeprof", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out = capsys.readouterr()
        return ended.value.code, out.out, out.err

    return call


def test_a_regression_is_exit_1_and_one_sentence_leads(recorded, verb):
    code, out, err = verb("compare", recorded(), recorded(12_000))
    assert code == 1, err
    assert out.startswith("Regressed: step time +20.")
    assert out.splitlines()[0].startswith("Regressed: ")
    assert "\x1b[" not in out


def test_the_same_passes(recorded, verb):
    run = recorded()
    code, out, _ = verb("compare", run, run)
    assert code == 0
    assert "unchanged" in out


def test_json_is_the_documented_shape(recorded, verb):
    code, out, _ = verb("compare", recorded(), recorded(12_000), "--format", "json")
    content = json.loads(out)
    assert list(content)[:5] == ["schema_version", "verdict", "exit_code", "headline", "metrics"]
    assert content["exit_code"] == code == 1
    expected = {
        "name", "unit", "direction", "family", "verdict", "base", "new", "ratio", "ci_low", "ci_high", "p_value",
        "alpha", "min_effect", "reps_base", "reps_new", "reps_needed",
    }  # fmt: skip
    assert expected <= set(content["metrics"][0])
    assert set(content["fingerprint"]) == {"same", "differences"}


def test_other_conditions_are_exit_3(recorded, verb):
    code, out, _ = verb("compare", recorded(), recorded(cpu="B"))
    assert code == 3
    assert "cpu_model" in out
    assert verb("compare", recorded(), recorded(cpu="B"), "--allow-cross-machine")[0] == 0


def test_too_few_repetitions_are_exit_4_and_say_how_many(recorded, verb):
    one = recorded(spread=(1.0,))
    code, out, _ = verb("compare", one, one)
    assert code == 4
    assert "at least 3 repetitions per side are needed" in out


def test_no_baseline_is_exit_3(recorded, verb):
    code, out, err = verb("compare", "nothing", recorded())
    assert (code, out) == (3, "")
    assert err.startswith("error: ")


def test_a_policy_with_an_unknown_key_is_exit_2(recorded, verb, tmp_path):
    (tmp_path / "p.toml").write_text("alhpa = 0.01\n")
    run = recorded()
    code, _, err = verb("compare", run, run, "--policy", "p.toml")
    assert code == 2
    assert "alhpa" in err


@pytest.mark.parametrize(("form", "start"), [("markdown", ""), ("junit", "<?xml")])
def test_other_formats_go_to_a_file(recorded, verb, tmp_path, form, start):
    run = recorded()
    code, out, _ = verb("compare", run, run, "--format", form, "-o", str(tmp_path / "x"))
    assert (code, out) == (0, "")
    text = (tmp_path / "x").read_text()
    assert text.startswith(start)
    assert "step_time_median" in text or "step time" in text


def test_python_gives_the_same(recorded, verb):
    import pipeprof

    base, new = recorded(), recorded(12_000)
    assert pipeprof.compare(base, new) == json.loads(verb("compare", base, new, "--format", "json")[1])


def test_the_baseline_of_this_machine_is_found_by_its_workload(recorded, verb, tmp_path):
    base = recorded()
    assert verb("baseline", "write", base, "--workload", "mnist", "--root", "kept")[0] == 0
    code, out, err = verb("compare", "kept/mnist", recorded(12_000), "--format", "json")
    assert code == 1, err
    assert json.loads(out)["base"]["kind"] == "baseline"


def test_a_baseline_of_another_machine_only_is_exit_3_and_named(recorded, verb):
    assert verb("baseline", "write", recorded(cpu="Other CPU"), "--workload", "mnist", "--root", "kept")[0] == 0
    code, out, err = verb("compare", "kept/mnist", recorded())
    assert (code, out) == (3, "")
    assert "no baseline of `mnist` for this machine" in err
    assert "other-2c" in err


@pytest.mark.parametrize("form", ["terminal", "json", "markdown", "junit"])
@pytest.mark.parametrize(("dur_us", "code"), [(10_000, 0), (12_000, 1)])
def test_the_exit_code_is_the_verdict_when_nobody_reads_to_the_end(recorded, form, dur_us, code):
    words = [sys.executable, "-m", "pipeprof", "compare", recorded(), recorded(dur_us), "--format", form]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, b"")


def test_what_should_never_happen_is_not_called_a_regression(recorded, verb, monkeypatch):
    from pipeprof.experiment import compare

    monkeypatch.setattr(compare, "compare_sides", lambda *_, **__: 1 / 0)
    code, out, err = verb("compare", recorded(), recorded())
    assert (code, out) == (70, "")
    assert "ZeroDivisionError" in err
