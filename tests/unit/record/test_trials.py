"""What `whatif` and `tune` measured of a training before, from their results beside a run."""

import json
import os

import pytest

from pipeprof.record.trials import trials_beside, trials_of

COMMAND = ["python", "train.py"]
OP = {"op_id": 2, "op_type": "MapOp", "name": "f"}
MEASURED = {"ratio": 1.31, "interval": [1.2, 1.4], "decided": "above"}
WHATIF = {"op": OP | {"node": 1}, "change": {"workers": [1, 4]}, "measured": MEASURED, "command": COMMAND}


def stored(folder, name, content):
    folder.mkdir()
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def trial(verdict="no_gain", new=("workers", [1, 4]), **more):
    what = [{"op": "MapOp 2", "op_id": 2, "name": "f", "change": dict([new])}]
    return {"what": what, "ratio": 1.0, "interval": None, "verdict": verdict} | more


def test_results_beside_the_run_are_read_and_those_of_others_are_not(make_run):
    run = make_run({})
    run.manifest.command, run.manifest.run_id = COMMAND, "mine"
    beside = run.path.parent
    stored(beside / "w1", "whatif.json", WHATIF | {"run": {"run_id": "mine"}})
    stored(beside / "w2", "whatif.json", WHATIF | {"run": {"run_id": "another"}, "command": ["other"]})
    stored(beside / "w3", "whatif.json", "{")
    stored(beside / "w4", "whatif.json", WHATIF | {"run": {"run_id": "mine"}, "measured": MEASURED | {"decided": None}})
    steps = [
        trial(), trial("undecided"), trial("accepted", new=("processes", [False, True])), trial(new=("prefetch", [16, 64]))
    ]  # fmt: skip
    stored(beside / "t1", "tune.json", {"command": COMMAND, "trials": steps})
    stored(beside / "t2", "tune.json", {"command": ["other"], "trials": steps})
    found = trials_of(run)
    assert sorted((one["verb"], *one["new"].items(), *one["old"].values(), one["times"], one["low"]) for one in found) == [
        ("tune", ("processes", True), False, 1.0, None), ("tune", ("workers", 4), 1, 1.0, None),
        ("whatif", ("workers", 4), 1, 1.31, 1.2),
    ]  # fmt: skip


@pytest.mark.parametrize(("later_s", "counts"), [(-60, True), (60, False)])
def test_what_was_measured_before_the_script_was_changed_counts_for_no_later_run(tmp_path, later_s, counts):
    stored(tmp_path / "w", "whatif.json", WHATIF | {"run": {"run_id": "another"}})
    measured = (tmp_path / "w" / "whatif.json").stat().st_mtime
    (tmp_path / "train.py").write_text("")
    os.utime(tmp_path / "train.py", (measured + later_s, measured + later_s))
    assert bool(trials_beside(tmp_path, COMMAND)) is counts
    assert trials_beside(tmp_path, COMMAND, run_id="another")
    assert trials_beside(tmp_path, COMMAND, run_id="another", but=tmp_path / "w") == []
