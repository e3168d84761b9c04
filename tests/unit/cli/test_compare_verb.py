"""`pipeprof compare`: formats, exit codes, and what it refuses."""

import json
import os
import shutil
import subprocess
import sys

import pytest


def test_a_regression_is_exit_1_and_one_sentence_leads_and_the_same_passes(recorded, verb):
    code, out, err = verb("compare", recorded(), recorded(12_000))
    assert code == 1, err
    assert out.startswith("Regressed: step time +20.")
    assert "\x1b[" not in out
    code, out, _ = verb("compare", recorded(), recorded(10_001))
    assert (code, "unchanged" in out) == (0, True)


@pytest.mark.parametrize(("words", "is_red"), [([], True), (["--no-color"], False)])
def test_a_terminal_gets_colours_unless_they_are_not_wanted(recorded, verb, monkeypatch, words, is_red):
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm-256color"), ("NO_COLOR", "")):
        monkeypatch.setenv(name, value)
    _, out, _ = verb(*words, "compare", recorded(), recorded(12_000))
    assert ("\x1b[1;31m" in out) is is_red


def test_a_run_is_not_compared_with_itself(recorded, verb, tmp_path):
    """Nor with a copy under another name and id."""
    run = recorded()
    code, out, err = verb("compare", run, run)
    assert (code, out) == (2, "")
    assert "both sides hold the run 20260101T000000-abcdef" in err
    shutil.copytree(run, tmp_path / "copy")
    assert verb("compare", run, "copy")[0] == 2
    manifest = tmp_path / "copy" / "run.json"
    manifest.write_text(manifest.read_text().replace("20260101T000000-abcdef", "20270101T000000-000000"))
    code, out, err = verb("compare", run, "copy")
    assert (code, out) == (2, "")
    assert "a copy of one of" in err


def test_nor_with_a_baseline_that_holds_it(recorded, verb):
    first, second = recorded(), recorded(10_001)
    assert verb("baseline", "write", first, "--workload", "mnist", "--root", "kept", "--drop", "step_time_p90")[0] == 0
    assert verb("baseline", "write", second, "--workload", "mnist", "--root", "kept", "--append")[0] == 0
    for run in (first, second):
        code, _, err = verb("compare", "kept/mnist", run)
        assert code == 2
        assert "both sides hold the run" in err
    assert verb("compare", "kept/mnist", recorded(10_002))[0] == 0


def test_json_is_the_documented_shape_which_python_gives_too(recorded, verb):
    import pipeprof

    base, new = recorded(), recorded(12_000)
    code, out, _ = verb("compare", base, new, "--format", "json")
    content = json.loads(out)
    assert pipeprof.compare(base, new) == content
    assert list(content)[:5] == ["schema_version", "verdict", "exit_code", "headline", "metrics"]
    assert content["exit_code"] == code == 1
    expected = {
        "name", "unit", "direction", "family", "verdict", "base", "new", "ratio", "ci_low", "ci_high", "p_value",
        "alpha", "min_effect", "reps_base", "reps_new", "reps_needed",
    }  # fmt: skip
    assert expected <= set(content["metrics"][0])
    assert set(content["fingerprint"]) == {"same", "differences"}


def test_what_cannot_be_judged_has_its_exit_code_and_says_why(recorded, verb, tmp_path):
    base, other = recorded(), recorded(10_001, cpu="B")
    code, out, _ = verb("compare", base, other)
    assert (code, "cpu_model" in out) == (3, True)
    assert verb("compare", base, other, "--allow-cross-machine")[0] == 0
    code, out, _ = verb("compare", recorded(spread=(1.0,)), recorded(10_001, spread=(1.0,)))
    assert (code, "at least 3 repetitions per side are needed" in out) == (4, True)
    code, out, err = verb("compare", "nothing", base)
    assert (code, out, err[:7]) == (3, "", "error: ")
    (tmp_path / "p.toml").write_text("alhpa = 0.01\n")
    code, _, err = verb("compare", base, base, "--policy", "p.toml")
    assert (code, "alhpa" in err) == (2, True)


@pytest.mark.parametrize(("form", "start"), [("markdown", ""), ("junit", "<?xml")])
def test_other_formats_go_to_a_file(recorded, verb, tmp_path, form, start):
    code, out, _ = verb("compare", recorded(), recorded(10_001), "--format", form, "-o", str(tmp_path / "x"))
    assert (code, out) == (0, "")
    text = (tmp_path / "x").read_text()
    assert text.startswith(start)
    assert "step_time_median" in text or "step time" in text


def test_the_baseline_of_this_machine_is_found_by_its_workload_and_one_of_another_is_named(recorded, verb):
    for base, root in ((recorded(), "kept"), (recorded(cpu="Other CPU"), "others")):
        assert verb("baseline", "write", base, "--workload", "mnist", "--root", root)[0] == 0
    code, out, err = verb("compare", "kept/mnist", recorded(12_000), "--format", "json")
    assert code == 1, err
    assert json.loads(out)["base"]["kind"] == "baseline"
    code, out, err = verb("compare", "others/mnist", recorded())
    assert (code, out) == (3, "")
    assert "no baseline of `mnist` for this machine" in err
    assert "other-2c" in err


@pytest.mark.parametrize("form", ["terminal", "json", "markdown", "junit"])
@pytest.mark.parametrize(("dur_us", "code"), [(10_001, 0), (12_000, 1)])
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
