"""What is compared of a run."""

import json

import msgspec
import pytest
from kineto_files import training, write_trace
from typed_rows import of_dicts

import pipeprof
from pipeprof.errors import RunError
from pipeprof.query import measure as measures
from pipeprof.query.measure import MOST_OPS, OTHERS, measure, op_name, workload_of
from pipeprof.query.side import open_measures
from pipeprof.read.foreign import import_path
from pipeprof.record import baseline
from pipeprof.record.run import Manifest, Rep

names = of_dicts(measures.stage_names)


def steps(rep=0, dur=10, number=4):
    rows = []
    for step in range(number):
        kind = "warmup" if step == 0 else "train"
        times = {"start_ns": step * dur, "fp_ns": step * dur + 2, "end_ns": (step + 1) * dur}
        rows.append({"rep": rep, "step": step, "kind": kind, "kind_step": step, "in_window": False, **times})
    return rows


@pytest.fixture
def recorded(make_run):
    """A run of `tables` with one manifest entry for each of `codes`, the exit codes of its repetitions."""

    def make(tables, codes=(0,), **facts):
        reps = [
            Rep(rep=rep, zero_realtime_ns=1000 + rep, zero_monotonic_ns=0, exit_code=code)
            for rep, code in enumerate(codes)
        ]
        usual = {"state": "complete", "job": "boot:1", "command": ["python", "/x/train.py"]}
        return make_run(tables, reps=reps, **usual | facts)

    return make


def test_step_metrics_of_every_repetition(recorded):
    run = recorded({"step": steps() + steps(1, 20)}, (0, 0))
    run.manifest.reps[1].calibration_ns = 200_000  # how fast the machine was
    run.save()
    found = measure(run)
    assert found.values["step_time_median"] == {0: 10.0, 1: 20.0}
    assert found.values["first_step_time"] == {0: 10.0, 1: 20.0}
    assert found.values["phase/data_wait"] == {0: 2.0, 1: 2.0}
    assert (found.workload, found.jobs) == ("train", {"boot:1"})
    assert found.steps == {0: 3, 1: 3}
    assert [(rep.order, rep.calibration_ns) for rep in found.reps.values()] == [(1000, None), (1001, 200_000)]
    assert not [name for name in found.values if name.startswith("communication/")]
    assert open_measures(run.path).kind == "run"


def test_what_is_the_same_in_every_repetition_is_counted(recorded):
    pipeline = {"pipeline_id": 0, "pipeline_key": "a", "role": "train"}
    there = {
        "step": steps(),
        "run_part": [{"part": "compile", "count": 2}],
        "pipeline": [pipeline | {"epoch_batches": 50, "batch_size": 4, "batch_bytes": 96}],
        "pipeline_op": [{"pipeline_id": 0, "op_id": 0, "op_type": "GeneratorOp", "name": "Rows", "source_rows": 200}],
        "op_service": [{"pipeline_id": 0, "op_id": 0, "out_bytes": 8, "avg_ns": 5, "rows": 4, "batches": 1}],
    }
    found = {name: by_rep[0] for name, by_rep in measure(recorded(there)).values.items()}
    assert {name: value for name, value in found.items() if name.startswith(("count/", "bytes/"))} == {
        "count/compilations": 2, "count/batches_per_epoch": 50, "count/rows_per_batch": 4, "bytes/batch": 96,
        "count/rows/Rows": 200, "bytes/row/Rows": 8,
    }  # fmt: skip


def test_exposed_communication_is_a_metric_where_it_is_known(recorded):
    there = {
        "collective": [{"step": step, "start_ns": step * 10 + 6, "dur_ns": 3} for step in range(4)],
        "op": [{"op_id": 0, "step": step, "start_ns": step * 10 + 2, "dur_ns": 5, "track": "0"} for step in range(4)],
        "op_info": [{"op_id": 0, "phase": "forward"}],
    }
    seen = [dict(row, bp_ns=row["start_ns"] + 8) for row in steps()]
    values = measure(recorded({"step": seen, **there})).values
    assert (values["communication/exposed"], values["communication/tail"]) == ({0: 2.0}, {0: 1.0})


def test_a_repetition_that_failed_or_was_cut_off_is_left_out_and_said_so(recorded):
    why = {"code": "exit_code", "exit_code": 1}
    failed = recorded({"step": steps() + steps(1, 20)}, (0, 1), state="failed", reason_facts=why)
    cut_off = recorded({"step": steps() + steps(1, 20, number=2)}, (0, None), state="partial")
    for run in (failed, cut_off):
        found = measure(run)
        assert found.values["step_time_median"] == {0: 10.0}
        assert [note["code"] for note in found.notes] == ["run_state", "failed_left_out"]
    imported = recorded({"step": steps() + steps(1, 20)}, (None, None))
    assert measure(imported).values["step_time_median"] == {0: 10.0, 1: 20.0}


def test_a_run_that_lost_a_file_is_not_compared(recorded):
    run = recorded({"step": steps() + steps(1, 20)}, (0, 0))
    run.manifest.tables = {"step": 8}
    assert measure(run).values["step_time_median"] == {0: 10.0, 1: 20.0}
    run.files("step")[1].unlink()
    with pytest.raises(RunError, match=r"`step` .* has 4 rows, 8 were written"):
        measure(run)


def test_a_run_without_steps_cannot_be_compared(recorded):
    ops = [{"op_id": 0, "step": None, "start_ns": 11, "dur_ns": 1, "self_ns": 1}]
    for tables in ({}, {"op": ops, "op_info": [{"op_id": 0, "name": "net/op", "type": "Add"}]}):
        with pytest.raises(RunError, match="nothing to compare"):
            measure(recorded(tables))


def test_operators_beyond_the_largest_are_summed_up(recorded):
    number = MOST_OPS + 5
    info = [{"op_id": n, "name": f"net/op{n}-op{n}", "type": "Add"} for n in range(number)]
    ops = [{"op_id": n, "step": 1, "start_ns": 11, "dur_ns": n + 1, "self_ns": n + 1} for n in range(number)]
    found = measure(recorded({"step": steps(), "op": ops, "op_info": info}))
    names = [metric for metric in found.values if metric.startswith("op/")]
    assert len(names) == MOST_OPS + 1
    assert found.values[f"op/{OTHERS}"] == {0: 1.0 + 2 + 3 + 4 + 5}
    assert found.values[f"count/net/op{number - 1}"] == {0: 1.0}
    assert found.facts["op net/op7"] == "Add"


def test_own_time_that_was_not_measured_is_no_zero(recorded):
    ops = [{"op_id": at, "step": 1, "start_ns": 11, "dur_ns": 5, "self_ns": None if at else 5} for at in range(2)]
    info = [{"op_id": at, "name": f"net/{at}", "type": "Add"} for at in range(2)]
    found = measure(recorded({"step": steps(), "op": ops, "op_info": info})).values
    assert found["op/net/0"] == {0: 5.0}
    assert "op/net/1" not in found
    assert found["count/net/1"] == {0: 1.0}


def test_a_process_wide_number_is_no_part_of_a_name():
    assert op_name("Default/net/Conv2D-op12") == "Default/net/Conv2D"
    assert op_name("Default/BiasAddGrad-op0#2") == "Default/BiasAddGrad"
    assert op_name("Default/top-op/Add") == "Default/top-op/Add"


def test_names_of_stages_are_unique():
    rows = [
        {"pipeline_key": "a", "op_id": 0, "op_type": "BatchOp", "name": None},
        {"pipeline_key": "a", "op_id": 1, "op_type": "MapOp", "name": "decode"},
        {"pipeline_key": "a", "op_id": 2, "op_type": "MapOp", "name": "decode"},
    ]
    assert list(names(rows).values()) == ["BatchOp", "decode 1", "decode 2"]
    two = [*rows, {"pipeline_key": "b", "op_id": 0, "op_type": "BatchOp", "name": None}]
    assert names(two)["b", 0] == "1: BatchOp"


@pytest.mark.parametrize(("command", "name"), [
    (["python", "-u", "/x/train.py", "--lr", "1"], "train"), (["python", "-m", "pkg.fit"], "pkg.fit"),
    (["bash", "run.sh"], "run"), (["/bin/sh", "-eo", "pipefail", "/x/run.sh", "a"], "run"),
    (["zsh", "launch", "b.txt"], "launch"), (["bash", "-c", "exec ./anything | tee log"], "bash"),
    (["./run.sh", "a"], "run"), ([], "run"),
])  # fmt: skip
def test_a_workload_is_named_for_its_script(command, name):
    manifest = Manifest(run_id="x", started_at="", pipeprof_version="0", command=command)
    assert workload_of(manifest) == name


def test_a_folder_of_benchmark_files_is_one_side_and_what_is_none_is_refused(tmp_path):
    for number in range(3):
        content = {
            "machine_info": {"node": "box"}, "benchmarks": [{"fullname": "a", "stats": {"median": 1.0 + number}}],
            "datetime": f"2026-01-0{number + 1}T00:00:00+00:00",
        }  # fmt: skip
        (tmp_path / f"{number}.json").write_text(json.dumps(content))
    assert open_measures(tmp_path).values == {"benchmark/a": {0: 1.0, 1: 2.0, 2: 3.0}}
    cut = tmp_path / "cut.json"
    cut.write_text('{"benchmarks": [')
    with pytest.raises(RunError, match=r"cut\.json` is not a complete JSON file of pytest-benchmark"):
        open_measures(tmp_path)
    with pytest.raises(RunError, match=r"cut\.json.*pytest-benchmark"):
        open_measures(cut)
    with pytest.raises(RunError):
        open_measures(tmp_path / "nothing")


def test_a_run_says_which_it_is_what_it_measured_and_how(recorded):
    run, same, other, off = (
        recorded({"step": steps(0, dur)}, options={"ops": ops})
        for dur, ops in ((10, "all"), (10, "all"), (20, "all"), (10, "off"))
    )
    found = measure(run)
    assert (found.run_ids, found.command) == ([run.manifest.run_id], run.manifest.command)
    assert len(found.digests) == len(found.reps)
    assert measure(same).digests == found.digests
    assert measure(other).digests != found.digests
    assert measure(off).fingerprint["recording"] != found.fingerprint["recording"]


def test_the_folder_of_a_workload_is_its_only_baseline(recorded, tmp_path):
    facts = {"cpu_model": "A", "cpu_cores": 2}
    found = measure(recorded({"step": steps()}, fingerprint=facts))
    root = tmp_path / "baselines"
    for cores in (2, 4):
        saved = msgspec.structs.replace(found, fingerprint={**found.fingerprint, "cpu_cores": cores})
        baseline.save(saved, str(root), "w")
        if cores == 2:
            assert open_measures(root / "w").values == found.values
    with pytest.raises(RunError, match=r"baselines of 2 machines: `a-2c-.*`, `a-4c-.*`"):
        open_measures(root / "w")


@pytest.mark.parametrize("before", ["cpu_op", "user_annotation"])
@pytest.mark.parametrize("after", ["cpu_op", "user_annotation"])
def test_a_stall_of_the_data_loader_explains_the_growth_of_a_trace(tmp_path, before, after):
    """Whatever the trace files it as."""
    for name, wait_us, cat in (("base", 100, before), ("new", 900, after)):
        trace = write_trace(tmp_path / f"{name}.pt.trace.json", training(wait_us=wait_us, cat=cat))
        import_path(trace, tmp_path / name)
    found = pipeprof.compare(tmp_path / "base", tmp_path / "new")["explanation"]
    waits = [item for item in found if item["what"] == "time before the forward pass"]
    assert [0.9 <= item["share"] <= 1.1 for item in waits] == [True]
    named = [item["kind"] for item in found if "DataLoader" in str(item)]
    assert named == ["pipeline_op"]  # and no operator that appeared or vanished
