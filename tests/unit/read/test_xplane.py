"""Profiles of XLA (`*.xplane.pb`): the host's threads, and a device's lines of steps and operators."""

import gzip
import json
from pathlib import Path

import pytest
from stored_rows import rows
from xplane_files import plane, space, training

from pipeprof.errors import SourceError
from pipeprof.read.chrome import xplane_wire
from pipeprof.read.chrome.xplane_wire import Space
from pipeprof.read.foreign import import_path, recognise
from pipeprof.report.run_verdict import verdict_of

CAPTURES = Path(__file__).parents[2] / "real" / "xplane"
STEPPED = 0.27  # seconds of its steps, as the recorded script's own clock had them


def written(path, content):
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["here.xplane.pb", "here.xplane.pb.gz"])
def test_the_steps_and_operators_of_a_device_win_over_a_host_that_is_ahead_of_it(tmp_path, name):
    path = written(tmp_path / name, training())
    assert recognise(path) == "xplane"
    run = import_path(path, tmp_path / "run")
    assert (run.manifest.state, run.manifest.reps[0].ranks[0].host) == ("complete", "here")
    assert rows(run, "step", "step", "source_step", "start_ns", "end_ns") == [
        (number, number, 19_000_000 * number, 19_000_000 * number + 16_000_000) for number in range(3)
    ]
    names = dict(rows(run, "op_info", "op_id", "name"))
    device = [
        (names[op], *more) for op, side, *more in rows(run, "op", "op_id side track step dur_ns") if side == "device"
    ]
    assert device == [("fusion.1", "/device:TPU:0 / XLA Ops", number, 15_000_000) for number in range(3)]
    assert verdict_of(run).verdict.lead.detail == "between_steps"


def test_without_a_device_the_steps_are_the_hosts_and_its_operators_of_xla_are_the_work(tmp_path):
    host = {
        "python": [("train", at, 80, {"step_num": number}) for at, number in ((100, 4), (200, 5))]
        + [("$train.py:3 main", 90, 200)],
        "tf_XLAEigen/1": [("dot.1", 110, 20, {"hlo_op": 3}), ("Execute", 105, 40), ("StopRegion", 150, 0)],
    }
    run = import_path(written(tmp_path / "a.xplane.pb", space(plane("/host:CPU", host))), tmp_path / "run")
    assert rows(run, "step", "source_step") == [(4,), (5,)]
    kinds = dict(rows(run, "op_info", "name", "category"))
    assert kinds["dot.1"] == "xla_op"
    assert (kinds["train.py:3 main"], kinds["Execute"]) == ("python_function", "user_annotation")


def events_of(path):
    """(name, thread, length in ns) of each event of the trace that the profiler itself made of the profile."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    threads = {event["tid"]: event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    found = [event for event in events if event.get("ph") == "X"]
    return sorted((event["name"], threads[event["tid"]], round(event["dur"] * 1000)) for event in found)


def test_its_own_recording_has_the_events_of_the_profilers_own_trace_and_the_scripts_steps(tmp_path):
    path = CAPTURES / "steps.xplane.pb"
    threads, found = {}, []
    for event in (event for batch in Space(path).batches() for event in batch.events):
        if event.name == "thread_name":
            threads[event.tid] = event.args.name
        elif event.ph in "Xi":
            name = "train" if event.name.startswith("ProfilerStep#") else event.name
            found.append((name, threads[event.tid], round(float(event.dur) * 1000)))
    expected = events_of(CAPTURES / "steps.trace.json.gz")
    assert [one[:2] for one in sorted(found)] == [one[:2] for one in expected]
    off = [abs(one[2] - other[2]) for one, other in zip(sorted(found), expected, strict=True)]
    assert max(off) <= 1  # their trace says 1 ns for an event without length
    run = import_path(path, tmp_path / "run")
    steps = rows(run, "step", "source_step", "start_ns", "end_ns")
    assert [row[0] for row in steps] == list(range(8))
    lead = verdict_of(run).verdict.lead  # its batches are made between the compiled steps
    assert (lead.code, lead.advice.code) == ("host_gap", "python_out_of_step")
    assert sum(end - start for _, start, end in steps) / 1e9 == pytest.approx(STEPPED, rel=0.01)


@pytest.mark.parametrize("at", [20, 100, 200])
def test_a_file_without_anything_whole_is_one_error_that_names_it(tmp_path, at):
    path = written(tmp_path / "cut.xplane.pb", training()[:at])
    assert recognise(path) == "xplane"
    with pytest.raises(SourceError, match=r"cut\.xplane\.pb") as raised:
        import_path(path, tmp_path / "run")
    assert "\n" not in raised.value.message


def test_planes_before_the_damage_are_kept(tmp_path):
    host = plane("/host:CPU", {"python": [("train", 100, 80, {"step_num": 4})]})
    run = import_path(written(tmp_path / "a.xplane.pb", space(host) + b"\x0a\xff\x01x"), tmp_path / "run")
    assert run.manifest.state == "partial"
    assert len(rows(run, "step", "step")) == 1


def test_a_very_large_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(xplane_wire, "LARGEST", 100)
    with pytest.raises(SourceError, match="larger than"):
        import_path(written(tmp_path / "a.xplane.pb", training()), tmp_path / "run")
