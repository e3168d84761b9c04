"""`pipeprof baseline`: what its verbs print, and how they end."""

import json
import subprocess
import sys
import types
from functools import partial

import pytest
from histories import FINGERPRINT
from in_process import ended

from pipeprof.cli.baseline import baseline as verbs
from pipeprof.record.measures import Measures, Repetition
from pipeprof.units import format_minute


def made(number=0, **other):
    given = {
        "label": "run",
        "reps": {rep: Repetition(order=rep, job=f"job{number}") for rep in range(3)},
        "values": {
            "step_time_median": {rep: 1e7 * (1.5 if number >= 8 else 1) + rep + 1000 * number for rep in range(3)},
            "op/MatMul": dict.fromkeys(range(3), 3e6),
        },
        "facts": {"op MatMul": "MatMul"},
        "fingerprint": dict(FINGERPRINT),
        "git": {"revision": f"{number:040x}", "dirty": False},
        "created_at": f"2026-11-{number + 1:02d}T10:00:00+00:00",
    }
    return Measures(**(given | other))


@pytest.fixture
def given(monkeypatch):
    """Stands in for the run that is opened."""
    found = {}
    module = types.ModuleType("pipeprof.query.side")
    module.open_measures = lambda path: found[str(path)]
    monkeypatch.setitem(sys.modules, "pipeprof.query.side", module)
    found["RUN"] = made()
    return found


@pytest.fixture
def call(tmp_path, monkeypatch):
    """The verb's exit code, stdout and stderr; errors as the one place that catches them would end them."""
    monkeypatch.chdir(tmp_path)
    return partial(ended, command=verbs)


@pytest.fixture
def write(call, given):
    """`write(measures, *words)` as the baseline of `demo`."""

    def run(measures=None, *words, workload="demo"):
        given["RUN"] = measures or given["RUN"]
        return call("write", "RUN", "--workload", workload, *words)

    return run


@pytest.fixture
def kept(tmp_path):
    """`kept(name)` is that file of the one baseline of `demo`."""

    def find(name):
        (path,) = tmp_path.joinpath("baselines", "demo").glob(f"*/{name}")
        return path

    return find


def as_json(call, *words):
    return json.loads(call(*words, "--format", "json")[1])


def history(kept):
    return [json.loads(line) for line in kept("history.jsonl").read_text().splitlines()]


def test_written_listed_shown_checked_and_dropped(call, write):
    status, out, err = write()
    assert status == 0
    assert out.startswith("baselines/demo/test-2c-8g-cpu-")
    assert "wrote 3 repetitions of 1 job, 2 metrics" in err
    machine = out.strip().rpartition("/")[2]
    title, _, *listing = call("list")[1].splitlines()
    assert title == "1 baseline in baselines"
    assert listing[0].split()[:2] == ["workload", "machine"]
    at = format_minute("2026-11-01T10:00:00+00:00").split()
    assert listing[2].split() == ["demo", machine, "3", "1", "2", "000000000000", *at, "ok"]
    assert ["step_time_median", "10.0", "ms"] in [line.split()[:3] for line in call("show")[1].splitlines()]
    assert call("check") == (0, f"1 baseline in baselines\ndemo/{machine}: ok\n", "")
    assert call("drop", "--workload", "demo")[0] == 0
    assert call("list")[:2] == (0, "")


def test_json_has_its_version_first(call, write):
    written, listed, shown, checked = documents = [
        json.loads(write(None, "--format", "json")[1]), *(as_json(call, verb) for verb in ("list", "show", "check"))
    ]  # fmt: skip
    assert [next(iter(document)) for document in documents] == ["schema_version"] * 4
    assert (written["replaced"], written["reps"], written["metrics"]) == (False, 3, 2)
    assert listed["baselines"] == checked["baselines"]
    assert listed["baselines"][0]["state"] == "ok"
    (row,) = [row for row in shown["metrics"] if row["name"] == "step_time_median"]
    assert row == {
        "name": "step_time_median", "unit": "ns", "reps": 3, "median": 1e7 + 1, "lowest": 1e7, "highest": 1e7 + 2,
        "spread": pytest.approx(1.4826e-7),
    }  # fmt: skip


def test_a_damaged_baseline_fails_the_check_by_name_and_is_still_listed(call, write, kept):
    write()
    write(workload="other")
    facts, document, lines = (kept(name) for name in ("facts.json", "baseline.json", "history.jsonl"))
    before = {path: path.read_text() for path in (facts, document, lines)}
    facts.write_text("{}")
    status, out, message = call("check")
    assert status == 3
    assert "facts.json` is damaged" in out
    assert message.startswith("1 of 2 baselines in `baselines` cannot be used: `demo/test-2c")
    assert [line.split()[-1] for line in call("list")[1].splitlines()[4:]] == ["damaged", "ok"]
    assert call("show", "--workload", "demo")[0] == 3
    facts.write_text(before[facts])
    lines.write_text("nonsense\n")
    assert (call("check")[0], call("list")[0]) == (3, 0)
    lines.write_text(before[lines])
    document.write_text(before[document].replace('"schema_version": 1', '"schema_version": 2'))
    assert [row["state"] for row in as_json(call, "list")["baselines"]] == ["newer", "ok"]
    assert call("check")[0] == 3
    document.write_text(before[document])
    assert call("check")[0] == 0


def test_a_check_of_nothing_is_no_pass_and_a_list_of_a_place_that_is_not_there_fails(call):
    assert call("check", "--root", "nowhere") == (3, "", "no baselines in `nowhere`")
    assert call("list", "--root", "nowhere") == (3, "", "there is no `nowhere`: no baselines are kept there")


def test_show_asks_which_of_several(call, write):
    write(workload="a")
    write(workload="b")
    status, _, message = call("show")
    assert status == 2
    assert "2 baselines to choose from: a/test" in message
    assert [call("show", "--workload", name)[0] for name in "ac"] == [0, 3]


def test_history_names_the_change_and_the_drift(call, write):
    for number in range(16):
        write(made(number), "--force", *(["--tag", "v1"] if number == 5 else []))
    status, out, _ = call("show", "--history")
    assert status == 0
    out = " ".join(out.split())
    since = format_minute("2026-11-09T10:00:00+00:00")
    assert f"step_time_median: +50.1 % from 000000000000 ({since}) on, 8 writes before" in out
    assert "step_time_median: +50.1 % since v1 (two single measurements, 10 writes apart" in out
    document = as_json(call, "show", "--history")
    assert next(iter(document)) == "schema_version"
    assert len(document["entries"]) == 16
    (metric,) = document["metrics"]
    assert [change["index"] for change in metric["changes"]] == [8]
    assert metric["drift"]["tag"] == "v1"


def test_few_writes_are_not_said_to_have_no_change(call, write):
    write()
    said = " ".join(call("show", "--history")[1].split())
    assert "changes of level are looked for from 10 writes on, and no earlier write has a release tag" in said
    assert "no change of level" not in said
    for number in range(1, 8):
        write(made(number), "--force")
    write(made(8, fingerprint=FINGERPRINT | {"mindspore": "2.10"}, values=made().values), "--force")
    assert "from 10 writes on" in " ".join(call("show", "--history")[1].split())


def test_the_tag_of_a_clean_revision_is_taken_from_git(write, kept, tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["tag", "v7"], ["tag", b"v7-\xe9"]):
        subprocess.run([*git, *words], check=True)
    revision = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    for dirty in (False, True):
        write(made(int(dirty), git={"revision": revision, "dirty": dirty}), "--force")
    assert [entry["tag"] for entry in history(kept)] == ["v7", None]


def test_append_anchor_and_drop_reach_the_baseline(call, write, given, kept):
    write()
    given["BASE"] = made(2)
    status, _, err = write(made(1), "--append", "--drop", "op/*", "--anchor", "BASE")
    assert status == 0
    assert "appended: 6 repetitions of 2 jobs, 1 metric" in err
    assert "holds repetitions of several revisions" in call("show")[1]
    last = history(kept)[-1]
    assert last["anchor"] == f"{2:040x}"
    assert last["ratios"]["step_time_median"] == pytest.approx(0.9999, abs=1e-5)
    err = write(made(3, facts={"op Add": "Add"}), "--append", "--restart")[2]
    assert "started over: " in err
    assert "wrote 3 repetitions of 1 job" in err


def test_a_bad_name_or_root_is_a_usage_error(call, write, tmp_path):
    (tmp_path / "file").write_text("")
    assert write(workload="../x")[0] == write(None, "--root", "file")[0] == call("list", "--root", "nosuch://x")[0] == 2


def test_another_run_does_not_replace_a_baseline_without_force(write, kept):
    write()
    path = kept("baseline.json")
    before = path.read_text()
    status, _, message = write(made(1))
    assert status == 2
    assert "holds another baseline already" in message
    assert path.read_text() == before
    assert write(None, "--force")[0] == 0
    assert path.read_text() != before
    path.write_text("{}")
    assert (write()[0], write(None, "--force")[0]) == (2, 0)


def test_the_same_run_is_written_to_the_history_once(call, write, given, kept):
    write()
    status, _, said = write()
    assert status == 0
    assert "its history holds this run already" in said
    given["RUN"].label = "moved"
    write(None, "--force")
    assert len(history(kept)) == 1
    write(None, "--force", "--tag", "v1")
    assert len(history(kept)) == 2
    (entry,) = as_json(call, "show", "--history")["entries"]
    assert entry["tag"] == "v1"


def test_show_takes_the_folder_of_a_baseline_that_of_its_workload_an_address_and_a_run(call, write, tmp_path):
    folder = write()[1].strip()
    shown = call("show")[1]
    assert "Baseline of demo" in shown
    for source in (folder, "baselines/demo", f"file://{tmp_path}/{folder}"):
        assert call("show", source) == (0, shown, "")
    assert call("show", folder, "--history") == call("show", "--history")
    assert "000000000000" in call("show", "baselines/demo", "--history")[1]
    run = call("show", "RUN")[1]
    assert run.startswith("Run")
    assert "step_time_median   10.0 ms" in run
    assert "facts.json" not in run
    assert call("show", folder, "--workload", "demo")[0] == 2
    assert call("show", "RUN", "--history")[0] == 2
    write(made(fingerprint=FINGERPRINT | {"cpu_cores": 4}))
    status, _, message = call("show", "baselines/demo", "--history")
    assert (status, "`baselines/demo` is not one baseline" in message) == (2, True)


def test_the_root_can_come_from_the_environment(write, monkeypatch, tmp_path):
    monkeypatch.setenv("PIPEPROF_BASELINES", str(tmp_path / "else"))
    write()
    assert (tmp_path / "else" / "demo").is_dir()
