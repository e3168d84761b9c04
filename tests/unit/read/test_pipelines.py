"""A process's dataset iterators: operators, queues, service times, and what to say when there are none."""

import json

import pytest

from pipeprof.read.spool.convert import convert_rep
from pipeprof.read.spool.marks import Kind, Marks
from pipeprof.read.spool.process import load_processes
from pipeprof.record import store

MS = 1_000_000
GRAPH = {
    "type": "BatchOp", "workers": 2, "name": "", "python": False, "processes": False, "batch": 4,
    "children": [
        {"type": "MapOp", "workers": 1, "name": "double", "python": True, "processes": True,
         "children": [{"type": "GeneratorOp", "workers": 1, "name": "Source", "python": True, "processes": False, "children": []}]}
    ],
}  # fmt: skip
BEGIN = 5 * MS


@pytest.fixture
def tree(spooled):
    """`tree(saves, queues="")`: a process with one iterator made at 5 ms, a batch fetched at 40 ms, and these saves."""

    def make(saves, queues="", graph=GRAPH, service=(), fetch_end=40 * MS, events=()):
        spooled.rep(end=100 * MS)
        iterator = {"e": "iterator", "t": BEGIN + 10, "number": 1, "begin": BEGIN, "end": BEGIN + 10, "hidden": False,
                    "site": "train.py:9", "epochs": 2, "queues": queues, "graph": graph}  # fmt: skip
        lines = (
            [{"e": "service", "t": fetch_end, "pipeline": 1, "ops": [list(one) for one in service]}] if service else []
        )
        marks = [(1, 0, 1, 0, fetch_end - 1000, fetch_end), (10, 0, 2, 0, fetch_end, fetch_end + 100)]
        folder = spooled.process(events=[iterator, *lines, *events], marks=marks)
        for name, (ops, stamps) in saves.items():
            write_save(folder / "tree-1" / name, ops, stamps)
        convert_rep(spooled.run, 0)
        return spooled.run

    return make


def write_save(folder, ops, stamps):
    folder.mkdir(parents=True)
    folder.joinpath("pipeline_profiling_0.json").write_text(json.dumps({"op_info": ops}), encoding="utf-8")
    cpu = {"time_stamp": stamps, "op_info": []}
    folder.joinpath("minddata_cpu_utilization_0.json").write_text(json.dumps(cpu), encoding="utf-8")


def sampled(sizes, kinds=("BatchOp", "MapOp", "GeneratorOp")):
    ops = []
    for number, kind in enumerate(kinds):
        children = [number + 1] if number + 1 < len(kinds) else None
        metrics = {"output_queue": {"length": 8, "size": sizes}}
        ops.append({"op_id": number, "op_type": kind, "num_workers": 3, "children": children, "metrics": metrics})
    return ops


def rows(run, table, pipeline=1):
    return [row for row in store.read(run, table).to_pylist() if row["pipeline_id"] == pipeline]


def said(run):
    (row,) = rows(run, "pipeline")
    return row["queues"]


def test_sampled_operators_get_the_names_of_the_described_ones(tree):
    run = tree({"final-1": (sampled([1, 2, 3]), [10, 20, 30])})
    assert said(run) == "recorded"
    assert [(row["op_type"], row["name"], row["workers"], row["capacity"], row["is_python"]) for row in rows(run, "pipeline_op")] == [
        ("BatchOp", None, 3, 8, False), ("MapOp", "double", 3, 8, True), ("GeneratorOp", "Source", 3, 8, True),
    ]  # fmt: skip
    assert [(row["producer_id"], row["consumer_id"]) for row in rows(run, "pipeline_edge")] == [(1, 0), (2, 1)]


def test_a_reader_has_mindspores_name_and_a_map_of_mindspores_own_does_not_take_the_users_name(tree):
    made = {"site": "train.py:3", "callers": "train.py:9\ntrain.py:20"}
    source = {"type": "TFRecordOp", "workers": 1, "name": "", **made, "children": []}
    graph = {"type": "MapOp", "workers": 1, "name": "double", "python": True, "children": [source]}
    run = tree({"final-1": (sampled([1, 2, 3], ("MapOp", "MapOp", "TFReaderOp")), [10, 20, 30])}, graph=graph)
    assert said(run) == "recorded"
    found = [(row["op_type"], row["name"], row["site"]) for row in rows(run, "pipeline_op")]
    assert found == [("MapOp", "double", None), ("MapOp", None, None), ("TFReaderOp", None, "train.py:3")]
    assert [row["callers"] for row in rows(run, "pipeline_op")] == [None, None, "train.py:9\ntrain.py:20"]


def test_samples_have_their_own_stamps(tree):
    run = tree({"final-1": (sampled([1, 2, 3]), [10, 21, 30])})
    found = [(row["t_ns"] + 1_000, row["depth"], row["capacity"]) for row in rows(run, "queue") if row["op_id"] == 0]
    assert found == [(10 * MS, 1, 8), (21 * MS, 2, 8), (30 * MS, 3, 8)]


def test_samples_before_the_iterator_and_long_after_its_last_batch_are_left_out(tree):
    run = tree({"final-1": (sampled([1, 2, 3, 4, 5, 6, 7]), [3, 13, 23, 33, 43, 53, 63])})
    assert [row["depth"] for row in rows(run, "queue") if row["op_id"] == 0] == [2, 3, 4, 5]


def test_only_thenewest_save_counts_whatever_its_kind(tree):
    run = tree(
        {
            "part-2": (sampled([1]), [10]),
            "part-9": (sampled([1, 2]), [10, 20]),
            "final-10": (sampled([1, 2, 3]), [10, 20, 30]),
        }
    )
    assert len([row for row in rows(run, "queue") if row["op_id"] == 0]) == 3


def test_a_save_that_was_not_finished_is_ignored(tree):
    run = tree({"part-1": (sampled([1]), [10]), ".final-2": (sampled([1, 2]), [10, 20])})
    assert len([row for row in rows(run, "queue") if row["op_id"] == 0]) == 1


@pytest.mark.parametrize(
    ("saves", "text"),
    [
        ({}, "not_recorded: the process ended before the first queue samples were saved"),
        ({"final-1": ([], [10])}, "not_recorded: MindSpore wrote no samples"),
        (
            {"final-1": (sampled([1], ("BatchOp", "MapOp", "MnistOp")), [10])},
            "not_attributable: the sampled tree is not this iterator's",
        ),
    ],
)
def test_without_samples_of_its_own_a_pipeline_says_why_and_keeps_its_description(tree, saves, text):
    run = tree(saves)
    assert said(run) == text
    assert rows(run, "queue") == []
    assert [row["op_type"] for row in rows(run, "pipeline_op")] == ["BatchOp", "MapOp", "GeneratorOp"]
    assert len(rows(run, "pipeline_edge")) == 2


def test_what_the_probe_said_about_the_queues_stands(tree):
    run = tree({"final-1": (sampled([1]), [10])}, queues="not_recorded: iterator 0 was still alive")
    assert said(run) == "not_recorded: iterator 0 was still alive"
    assert rows(run, "queue") == []


def test_damaged_samples_are_a_warning_and_no_samples(tree, monkeypatch):
    ops = sampled([1])
    ops[0]["op_id"] = "zero"
    run = tree({"final-1": (ops, [10])})
    assert said(run) == "not_recorded: damaged files"
    assert any("pipeline_profiling_0.json" in warning.message for warning in run.manifest.warnings)


def test_operators_that_mindspore_inserted_leave_the_other_names_alone(tree):
    run = tree({"final-1": (sampled([1], ("EpochCtrlOp", "BatchOp", "MapOp", "GeneratorOp")), [10])})
    assert [row["name"] for row in rows(run, "pipeline_op")] == [None, None, "double", "Source"]


def iterator(number, graph, queues):
    return {"e": "iterator", "t": BEGIN + number, "number": number, "begin": BEGIN, "end": BEGIN, "hidden": False,
            "site": "train.py:9", "epochs": 1, "queues": queues, "graph": graph}  # fmt: skip


@pytest.mark.parametrize("first", [True, False])
def test_an_iterator_without_samples_has_the_operators_of_the_one_with_samples(spooled, first):
    """Of a batch over a source, behind a repeat of 1: MindSpore leaves it out, so numbers as described are others."""
    source = {"type": "GeneratorOp", "node": 2, "name": "Source", "python": True, "children": []}
    batch = {"type": "BatchOp", "node": 1, "name": "", "batch": 4, "children": [source]}
    graph = {"type": "RepeatOp", "node": 0, "name": "", "children": [batch]}
    with_samples, without = (1, 2) if first else (2, 1)
    said = {with_samples: "", without: "not_recorded: iterator 0 was still alive"}
    calls = [{"e": "calls", "t": 40 * MS, "pipeline": number, "node": 2, "calls": 8, "timed": 8, "wall": 8000, "cpu": 80,
              "batches": 2} for number in (1, 2)]  # fmt: skip
    spooled.rep(end=100 * MS)
    marks = [mark for number, at in ((1, 40 * MS), (2, 50 * MS)) for mark in (
        (Kind.FETCH, 0, number, 0, at - 10, at), (Kind.UPDATE, 0, 9, 0, at + 10, at + 20))]  # fmt: skip
    events = [*(iterator(number, graph, said[number]) for number in (1, 2)), *calls]
    folder = spooled.process(events=events, marks=marks)
    save = folder / f"tree-{with_samples}" / "final-1"
    save.mkdir(parents=True)
    ops = sampled([1, 2, 3], ("BatchOp", "GeneratorOp"))
    save.joinpath("pipeline_profiling_0.json").write_text(json.dumps({"op_info": ops}), encoding="utf-8")
    times = {"time_stamp": [10, 20, 30], "op_info": []}
    save.joinpath("minddata_cpu_utilization_0.json").write_text(json.dumps(times), encoding="utf-8")
    convert_rep(spooled.run, 0)
    found = {number: rows(spooled.run, "pipeline_op", number) for number in (1, 2)}
    assert [(row["op_id"], row["op_type"], row["name"]) for row in found[without]] == [
        (0, "BatchOp", None), (1, "GeneratorOp", "Source"),
    ]  # fmt: skip
    assert [{**row, "pipeline_id": with_samples} for row in found[without]] == found[with_samples]
    assert {row["op_id"] for number in (1, 2) for row in rows(spooled.run, "op_service", number)} == {1}
    assert rows(spooled.run, "queue", without) == []


def test_service_times_are_exact_and_unknown_is_null(tree):
    service = [("GeneratorOp", "2", "3.25", "3.35", "3.14", "4", "0.5"), ("BatchOp", "0", "0.02", "/", "/", "1", "")]
    found = rows(tree({}, service=service), "op_service")
    assert [(r["op_id"], r["avg_ns"], r["max_ns"], r["min_ns"], r["rows"], r["io_ns"]) for r in found] == [
        (2, 3_250_000, 3_350_000, 3_140_000, 4, 500_000), (0, 20_000, None, None, 1, None),
    ]  # fmt: skip


def test_the_facts_of_the_iterator_are_in_its_row(tree):
    (row,) = rows(tree({}), "pipeline")
    assert (row["role"], row["site"], row["batch_size"], row["num_epochs"], row["closed_ns"]) == (
        "train",
        "train.py:9",
        4,
        2,
        None,
    )


NUMBERED = GRAPH | {"node": 0, "children": [GRAPH["children"][0] | {"node": 1}]}


def test_rows_of_worker_processes_are_service_times_with_their_delay(tree):
    figures = {"calls": 40, "timed": 10, "batches": 10, "wall": 500, "cpu": 200, "delay": 250, "max": 90, "min": 20}
    line = {"e": "calls", "t": 50 * MS, "pipeline": 1, "node": 1, "part": 0} | figures
    (row,) = rows(tree({"final-1": (sampled([1]), [20])}, graph=NUMBERED, events=[line]), "op_service")
    found = [row[name] for name in ("op_id", "source", "rows", "batches", "avg_ns", "cpu_ns", "delay_ns", "max_ns")]
    assert found == [1, "hook", 40, 10, 50, 20, 25, 90]


@pytest.mark.parametrize(("delay", "expected"), [({"delay": 80}, 5 + 20), ({}, None)])
def test_the_delays_of_the_functions_of_a_map_add_up(tree, delay, expected):
    figures = {"calls": 4, "timed": 4, "batches": 1, "wall": 400, "cpu": 20, "max": 10, "min": 10}
    line = {"e": "calls", "t": 50 * MS, "pipeline": 1, "node": 1} | figures
    events = [line | {"part": 0, "delay": 20}, line | {"part": 1} | delay]
    (row,) = rows(tree({"final-1": (sampled([1]), [20])}, graph=NUMBERED, events=events), "op_service")
    assert row["delay_ns"] == expected


@pytest.mark.parametrize("delay", [{}, {"delay": None}])
def test_a_delay_that_was_not_measured_is_unknown(tree, delay):
    figures = {"calls": 4, "timed": 4, "batches": 1, "wall": 40, "cpu": 20, "max": 10, "min": 10}
    line = {"e": "calls", "t": 50 * MS, "pipeline": 1, "node": 1, "part": 0} | figures | delay
    (row,) = rows(tree({"final-1": (sampled([1]), [20])}, graph=NUMBERED, events=[line]), "op_service")
    assert row["delay_ns"] is None


def test_records_of_batches_that_were_taken_from_mindspore_are_the_fetches_own(tree):
    taken = {
        "e": "batches", "t": 41 * MS, "number": 1, "first": 0, "push_ms": [0], "batch_ms": [7], "depth": [3], "capacity": [16],
    }  # fmt: skip
    run = tree({"final-1": (sampled([1, 2, 3]), [10, 20, 30])}, events=[taken, {**taken, "number": 2, "depth": [9]}])
    (row,) = rows(run, "fetch")
    assert (row["push_ns"], row["batch_ns"], row["depth"], row["capacity"]) == (0, 7 * MS, 3, 16)


def test_readings_that_became_rarer_are_as_rare_from_the_beginning(tree):
    stamps = [10, 12, 14, 16, 20, 24, 32, 40]
    spacing = [{"e": "spacing", "t": at * MS, "number": 1, "ms": ms} for at, ms in ((16, 4), (24, 8))]
    run = tree({"final-1": (sampled(list(range(8))), stamps)}, events=[*spacing, {**spacing[0], "number": 2, "ms": 30}])
    found = [(row["t_ns"], row["depth"]) for row in rows(run, "queue") if row["op_id"] == 0]
    assert [((at - found[0][0]) // MS, depth) for at, depth in found] == [(0, 0), (6, 3), (14, 5), (22, 6), (30, 7)]


class Counted(list):
    """Lists that count how often one of them is gone through, or the marks."""

    passes = 0

    def __iter__(self):
        Counted.passes += 1
        return super().__iter__()


def test_many_iterators_are_read_in_as_many_passes_as_one(spooled, monkeypatch):
    """A loop that makes one in each epoch has as many of them as epochs."""

    def load(folder, notes):
        processes = load_processes(folder, notes)
        for process in processes:
            process.events = Counted(process.events)
        return processes

    def chosen(marks, *kinds):
        Counted.passes += 1
        return among(marks, *kinds)

    among = Marks.among
    monkeypatch.setattr(Marks, "among", chosen)
    monkeypatch.setattr("pipeprof.read.spool.convert.load_processes", load)
    passes = []
    for rep, count in enumerate((1, 5)):
        numbers = range(1, 1 + count)
        spooled.rep(rep, end=100 * MS)
        iterators = [
            {"e": "iterator", "t": BEGIN + 10, "number": number, "begin": BEGIN, "end": BEGIN + 10, "hidden": False,
             "site": "train.py:9", "epochs": 1, "queues": "", "graph": GRAPH}
            for number in numbers
        ]  # fmt: skip
        marks = [(Kind.FETCH, 0, number, 0, 40 * MS - 1000, 40 * MS) for number in numbers]
        folder = spooled.process(rep=rep, events=iterators, marks=marks)
        for number in numbers:
            write_save(folder / f"tree-{number}" / "final-1", sampled([1, 2, 3]), [10, 20, 30])
        Counted.passes = 0
        convert_rep(spooled.run, rep)
        passes.append(Counted.passes)
    assert passes[1] - passes[0] < 4  # of four iterators more
