"""The same profile in other dress: packed, with CRLF, with a mark in front, with other names and orders of columns."""

import gzip
import json
import re

import pytest
from ascend_files import EPOCH_US, us, write, write_cluster, write_cpu, write_gpu, write_graph, write_output, write_prof
from stored_rows import rows, warnings

from pipeprof.read.foreign import import_path
from pipeprof.record import store
from pipeprof.record.schema import BY_NAME

MAKERS = {"graph": write_graph, "output": write_output, "prof": write_prof, "cpu": write_cpu, "gpu": write_gpu,
          "cluster": write_cluster}  # fmt: skip


def tables(run):
    return {table: store.read(run, table).to_pylist() for table in BY_NAME if run.files(table)}


def packed(path):
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def crlf(path):
    if path.suffix in (".csv", ".txt"):
        path.write_bytes(re.sub(rb"\r?\n", b"\r\n", path.read_bytes()))


def marked(path):
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def spread(path):
    if path.suffix == ".json":
        path.write_text(json.dumps(json.loads(path.read_text()), indent=4).replace("\n", "\r\n"))


@pytest.mark.parametrize("dress", [packed, crlf, marked, spread])
@pytest.mark.parametrize("kind", MAKERS)
def test_the_dress_of_a_file_changes_nothing(tmp_path, kind, dress):
    MAKERS[kind](tmp_path / "plain")
    plain = import_path(tmp_path / "plain", tmp_path / "one")
    MAKERS[kind](tmp_path / "other")
    for path in sorted((tmp_path / "other").rglob("*")):
        if path.is_file():
            dress(path)
    other = import_path(tmp_path / "other", tmp_path / "two")
    assert tables(other) == tables(plain)
    assert other.manifest.state == "complete"
    assert other.manifest.warnings == []


@pytest.mark.parametrize(
    "names",
    [
        {"Step Id": "Step ID", "Input Shapes": "Input Shapes"},  # MindSpore
        {"Name": "Op Name", "Type": "OP Type", "Accelerator Core": "Task Type", "Start Time(us)": "Task Start Time(us)",
         "Duration(us)": "Task Duration(us)", "Wait Time(us)": "Task Wait Time(us)"},  # CANN's op_summary
    ],
)  # fmt: skip
def test_kernels_are_the_same_under_the_names_of_every_writer(tmp_path, names):
    path = write_output(tmp_path / "plain") / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    plain = import_path(path, tmp_path / "one")
    header, rest = path.read_text().split("\n", 1)
    path.write_text(",".join(names.get(name, name) for name in header.split(",")) + "\n" + rest)
    assert tables(import_path(path, tmp_path / "two")) == tables(plain)
    assert rows(plain, "op", "step dur_ns wait_ns track") == [(0, 40_000, 0, "stream 2")]


KERNELS = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim"


def kernels(tmp_path, text):
    """The run of a file of kernels."""
    path = tmp_path / "kernel_details.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_path(path, tmp_path / "run")


def test_a_short_row_of_kernels_counts_when_all_that_is_read_is_there(tmp_path):
    body = f"A,T,AI_CORE,{us(0)}\t,1.5,0,0,0,1\nB,T,AI_CORE,{us(5)}\t,2.5,1,0\nC,T,AI_CORE,{us(9)}\t,2.5"
    run = kernels(tmp_path, f"{KERNELS},Mix Block Dim,counter\n{body}")
    assert rows(run, "op", "start_ns dur_ns wait_ns") == [(0, 1500, 0), (5000, 2500, 1000)]
    (said,) = warnings(run, "bad_value")
    assert said.endswith("which has 9 (first: 5 fields)")


def test_names_that_are_not_utf_8_are_kept_readable(tmp_path):
    row = b"\ncaf\xe9,T,AI_CORE,%d.000\t,1.5,0,0\nshort\xff,T,AI_CORE\n" % EPOCH_US
    run = kernels(tmp_path, KERNELS.encode() + row)
    assert rows(run, "op_info", "name") == [("caf\ufffd",)]
    assert len(rows(run, "op", "step")) == 1


def test_times_with_other_digits_are_exact(tmp_path):
    lines = [
        ("1736408883704643.2125", "0.0005"),
        ("1736408883704643", "1e-3"),
        ('"1736408883704643.5\t"', "1E1"),
        ("-", "1"),
    ]
    run = kernels(tmp_path, KERNELS + "".join(f"\nA,T,AI_CORE,{start},{dur},0,0" for start, dur in lines) + "\n")
    zero = run.manifest.reps[0].zero_realtime_ns
    assert [(zero + start, dur) for start, dur in rows(run, "op", "start_ns dur_ns")] == [
        (1736408883704643213, 1), (1736408883704643000, 1), (1736408883704643500, 10_000),
    ]  # fmt: skip


def test_a_tree_with_every_generation_is_one_run_with_its_ranks(tmp_path):
    job = tmp_path / "job"
    write_output(job / "rank0_ascend_pt", rank=0)
    write_graph(job / "mindinsight" / "profiler", rank=1)
    write_cpu(job / "host_1_ascend_ms", rank=2)
    write_gpu(job / "gpu", rank=3)
    write_prof(job / "device", device=4)
    write(job / "notes.md", "# nothing\n")
    run = import_path(job, tmp_path / "run")
    assert [rank.rank for rank in run.manifest.reps[0].ranks] == [0, 1, 2, 3, 4]
    assert {rank for (rank,) in rows(run, "step", "rank")} == {0, 1, 2, 3, 4}
    assert warnings(run, "left_out") == ["files of unknown kinds were left out: notes.md"]


def test_the_data_files_of_mindspore_are_totals(tmp_path):
    text = 'Operation,Stage,Occurrences,Avg. time (us),Custom Info\nMapOp(ID:1),Process,8,5.5,"a\nb"\nBatchOp,Process,0,0,\n'
    run = import_path(write(tmp_path / "dataset.csv", text), tmp_path / "run")
    assert rows(run, "op_total", "source name type count total_ns mean_ns") == [
        ("dataset", "MapOp(ID:1)", "Process", 8, 44_000, 5500), ("dataset", "BatchOp", "Process", None, None, 0),
    ]  # fmt: skip


def test_raw_files_left_beside_the_output_add_nothing(tmp_path):
    folder = write_output(tmp_path / "x_ascend_pt", rank=2)
    alone = import_path(folder, tmp_path / "one")
    raw = folder / "PROF_000001_1_A"
    for name in ("op_statistic", "api_statistic", "kernel_details"):
        text = (folder / "ASCEND_PROFILER_OUTPUT" / f"{name}.csv").read_text()
        other = name.replace("kernel_details", "op_summary")
        write(raw / "mindstudio_profiler_output" / f"{other}_20240101.csv", text)
        write(raw / "device_5" / "summary" / f"{other}_0_1_1.csv", text)
    both = import_path(folder, tmp_path / "two")
    assert tables(both) == tables(alone)
    said = warnings(both, "left_out")
    assert len(said) == 4
    assert all("ASCEND_PROFILER_OUTPUT" in message.partition(" was left out")[2] for message in said)


TOTAL, SHARE = "an operator's count and total = its executions", "the shares of 1 rows add up to 1"


@pytest.mark.parametrize(
    ("count", "total", "share", "said"),
    [(3, "0.0003", "1", []), (4, "0.0003", "1", [TOTAL]), (3, "0.0005", "1", [TOTAL]), (3, "0.0003", "0.4", [SHARE])],
)
def test_totals_of_the_cpu_profiler_are_held_against_its_executions(tmp_path, count, total, share, said):
    folder = write_cpu(tmp_path / "x")
    head = "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time(ms),op_avg_time(ms),total_proportion,subgraph,pid"
    row = f"Host,MatMul,MatMul-op1,Default/network/MatMul-op1,{count},{total},0.0001,{share},Default,1"
    write(folder / "FRAMEWORK" / "cpu_op_detail_info_0.csv", f"{head}\n{row}\n")
    found = warnings(import_path(folder, tmp_path / "run"), "self_check")
    assert [message.split(": ", 1)[1].partition(", found")[0] for message in found] == said


@pytest.fixture
def output(tmp_path):
    """`output(name, text)`: the run of an output folder in which that file says this."""

    def of(name, text):
        folder = write_output(tmp_path / "x_ascend_pt")
        write(folder / "ASCEND_PROFILER_OUTPUT" / name, text)
        return import_path(folder, tmp_path / "run")

    return of


@pytest.mark.parametrize(
    "said", ["{}", '{"step7": {}}', '{"step7": {"p2p": {}, "collective": {}}, "step8": {"p2p": {}}}']
)
@pytest.mark.parametrize("name", ["communication", "communication_matrix"])
def test_a_job_that_communicates_nothing_is_whole(output, name, said):
    run = output(f"{name}.json", said)
    assert (run.manifest.state, run.manifest.warnings) == ("complete", [])
    assert bool(rows(run, "collective_cost", "name")) == (name != "communication")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        *(("communication.json", f'{{"step7": {form}}}', "no communication operator")
          for form in ('{"collective": 1}', "[]", '{"collective": null}')),
        ("trace_view.json", "", "trace_view.json` is empty, expected a list"),
        ("communication.json", "", "communication.json` is empty, expected an object"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_not_taken_for_one_of_nothing_and_an_empty_one_is_called_empty(
    output, name, text, said
):
    run = output(name, text)
    assert run.manifest.state == "partial"
    assert said in run.manifest.warnings[0].message
