"""A process's dataset iterators: operators, queues, service times, calls of the user's Python, and what to say when
there are none."""

import json
from types import SimpleNamespace

import pytest
import stored_rows

from pipeprof.read.spool.calls import add_calls, add_lock_waits
from pipeprof.read.spool.convert import convert_rep
from pipeprof.read.spool.marks import Kind, Marks
from pipeprof.read.spool.process import load_processes
from pipeprof.record.schema import BY_NAME

MS, S = 1_000_000, 1_000_000_000
BEGIN = 5 * MS
KINDS = ("BatchOp", "MapOp", "GeneratorOp")


def node(kind, name="", children=(), **more):
    usual = {"workers": 1, "python": bool(name), "processes": False}
    return {"type": kind, "name": name, "children": list(children), **usual, **more}


SOURCE = node("GeneratorOp", "Source")
GRAPH = node("BatchOp", "", [node("MapOp", "double", [SOURCE], processes=True)], workers=2, batch=4)


def iterator(number=1, graph=GRAPH, queues="", epochs=2):
    about = {"number": number, "begin": BEGIN, "end": BEGIN + 10, "hidden": False, "site": "train.py:9"}
    return {"e": "iterator", "t": BEGIN + 10, "epochs": epochs, "queues": queues, "graph": graph} | about


@pytest.fixture
def tree(spooled):
    """`tree(saves, queues="")`: a process with one iterator made at 5 ms, a batch fetched at 40 ms, and these saves."""

    def make(saves, queues="", graph=GRAPH, service=(), fetch_end=40 * MS, events=()):
        ops = [list(one) for one in service]
        lines = [{"e": "service", "t": fetch_end, "pipeline": 1, "ops": ops}] if ops else []
        marks = [(1, 0, 1, 0, fetch_end - 1000, fetch_end), (10, 0, 2, 0, fetch_end, fetch_end + 100)]
        folder = spooled.trained(end=100 * MS, events=[iterator(1, graph, queues), *lines, *events], marks=marks)
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


def sampled(sizes, kinds=KINDS):
    ops, metrics = [], {"output_queue": {"length": 8, "size": sizes}}
    for number, kind in enumerate(kinds):
        children = [number + 1] if number + 1 < len(kinds) else None
        ops.append({"op_id": number, "op_type": kind, "num_workers": 3, "children": children, "metrics": metrics})
    return ops


THREE = {"final-1": (sampled([1, 2, 3]), [10, 20, 30])}


def rows(run, table, names, pipeline=1):
    return [row[1:] for row in stored_rows.rows(run, table, "pipeline_id", names) if row[0] == pipeline]


def depths(run, names="depth"):
    return [row[1:] for row in rows(run, "queue", f"op_id {names}") if row[0] == 0]


def said(run):
    ((queues,),) = rows(run, "pipeline", "queues")
    return queues


def test_sampled_operators_get_the_names_of_the_described_ones(tree):
    run = tree(THREE)
    assert said(run) == "recorded"
    assert rows(run, "pipeline_op", "op_type name workers capacity is_python") == [
        ("BatchOp", None, 3, 8, False), ("MapOp", "double", 3, 8, True), ("GeneratorOp", "Source", 3, 8, True),
    ]  # fmt: skip
    assert rows(run, "pipeline_edge", "producer_id consumer_id") == [(1, 0), (2, 1)]
    assert rows(run, "pipeline", "role site batch_size num_epochs closed_ns") == [("train", "train.py:9", 4, 2, None)]


def test_a_reader_has_mindspores_name_and_a_map_of_mindspores_own_does_not_take_the_users_name(tree):
    made = {"site": "train.py:3", "callers": "train.py:9\ntrain.py:20"}
    graph = node("MapOp", "double", [node("TFRecordOp", **made)])
    run = tree({"final-1": (sampled([1, 2, 3], ("MapOp", "MapOp", "TFReaderOp")), [10, 20, 30])}, graph=graph)
    assert said(run) == "recorded"
    assert rows(run, "pipeline_op", "op_type name site callers") == [
        ("MapOp", "double", None, None), ("MapOp", None, None, None), ("TFReaderOp", None, *made.values()),
    ]  # fmt: skip


def test_samples_have_their_own_stamps(tree):
    run = tree({"final-1": (sampled([1, 2, 3]), [10, 21, 30])})
    found = [(at + 1_000, depth, capacity) for at, depth, capacity in depths(run, "t_ns depth capacity")]
    assert found == [(10 * MS, 1, 8), (21 * MS, 2, 8), (30 * MS, 3, 8)]


@pytest.mark.parametrize(
    ("saves", "kept"),
    [
        # before the iterator and long after its last batch
        ({"final-1": (sampled([1, 2, 3, 4, 5, 6, 7]), [3, 13, 23, 33, 43, 53, 63])}, [2, 3, 4, 5]),
        # the newest counts, whatever its kind, and one that was not finished does not
        ({"part-2": (sampled([1]), [10]), "part-9": (sampled([1, 2]), [10, 20]),
          "final-10": (sampled([1, 2, 3]), [10, 20, 30])}, [1, 2, 3]),
        ({"part-1": (sampled([1]), [10]), ".final-2": (sampled([1, 2]), [10, 20])}, [1]),
    ],
)  # fmt: skip
def test_samples_of_another_time_or_save_are_left_out(tree, saves, kept):
    assert depths(tree(saves)) == [(depth,) for depth in kept]


ALIVE = "not_recorded: iterator 0 was still alive"


@pytest.mark.parametrize(
    ("saves", "queues", "text"),
    [
        ({}, "", "not_recorded: the process ended before the first queue samples were saved"),
        ({"final-1": ([], [10])}, "", "not_recorded: MindSpore wrote no samples"),
        ({"final-1": (sampled([1], ("BatchOp", "MapOp", "MnistOp")), [10])}, "",
         "not_attributable: the sampled tree is not this iterator's"),
        ({"final-1": (sampled([1]), [10])}, ALIVE, ALIVE),  # what the probe said
        ({"final-1": ([{**sampled([1])[0], "op_id": "zero"}, *sampled([1])[1:]], [10])}, "",
         "not_recorded: damaged files"),
    ],
)  # fmt: skip
def test_without_samples_of_its_own_a_pipeline_says_why_and_keeps_its_description(tree, saves, queues, text):
    run = tree(saves, queues)
    assert said(run) == text
    assert rows(run, "queue", "depth") == []
    assert rows(run, "pipeline_op", "op_type") == [(kind,) for kind in KINDS]
    assert len(rows(run, "pipeline_edge", "producer_id")) == 2
    is_damaged = any("pipeline_profiling_0.json" in warning.message for warning in run.manifest.warnings)
    assert is_damaged == ("damaged" in text)


def test_operators_that_mindspore_inserted_leave_the_other_names_alone(tree):
    run = tree({"final-1": (sampled([1], ("EpochCtrlOp", *KINDS)), [10])})
    assert rows(run, "pipeline_op", "name") == [(None,), (None,), ("double",), ("Source",)]


@pytest.mark.parametrize("first", [True, False])
def test_an_iterator_without_samples_has_the_operators_of_the_one_with_samples(spooled, first):
    """Of a batch over a source, behind a repeat of 1: MindSpore leaves it out, so numbers as described are others."""
    batch = node("BatchOp", "", [node("GeneratorOp", "Source", node=2)], node=1, batch=4)
    graph = node("RepeatOp", "", [batch], node=0)
    with_samples, without = (1, 2) if first else (2, 1)
    queues = {with_samples: "", without: ALIVE}
    timed = {"calls": 8, "timed": 8, "wall": 8000, "cpu": 80, "batches": 2}
    calls = [{"e": "calls", "t": 40 * MS, "pipeline": number, "node": 2, **timed} for number in (1, 2)]
    marks = [mark for number, at in ((1, 40 * MS), (2, 50 * MS)) for mark in (
        (Kind.FETCH, 0, number, 0, at - 10, at), (Kind.UPDATE, 0, 9, 0, at + 10, at + 20))]  # fmt: skip
    events = [*(iterator(number, graph, queues[number]) for number in (1, 2)), *calls]
    folder = spooled.trained(end=100 * MS, events=events, marks=marks)
    write_save(
        folder / f"tree-{with_samples}" / "final-1", sampled([1, 2, 3], ("BatchOp", "GeneratorOp")), [10, 20, 30]
    )
    convert_rep(spooled.run, 0)
    every = " ".join(BY_NAME["pipeline_op"].column_names[1:])
    found = {number: rows(spooled.run, "pipeline_op", every, number) for number in (1, 2)}
    assert [row[:3] for row in found[without]] == [(0, "BatchOp", None), (1, "GeneratorOp", "Source")]
    assert found[without] == found[with_samples]
    assert set(stored_rows.rows(spooled.run, "op_service", "pipeline_id op_id")) == {(1, 1), (2, 1)}
    assert rows(spooled.run, "queue", "depth", without) == []


def test_service_times_are_exact_and_unknown_is_null(tree):
    service = [("GeneratorOp", "2", "3.25", "3.35", "3.14", "4", "0.5"), ("BatchOp", "0", "0.02", "/", "/", "1", "")]
    assert rows(tree({}, service=service), "op_service", "op_id avg_ns max_ns min_ns rows io_ns") == [
        (2, 3_250_000, 3_350_000, 3_140_000, 4, 500_000), (0, 20_000, None, None, 1, None),
    ]  # fmt: skip


NUMBERED = GRAPH | {"node": 0, "children": [GRAPH["children"][0] | {"node": 1}]}
CALLS = {"e": "calls", "t": 50 * MS, "pipeline": 1, "node": 1, "part": 0}
FEW = {"calls": 4, "timed": 4, "batches": 1, "wall": 400, "cpu": 20, "max": 10, "min": 10}
MANY = {"calls": 40, "timed": 10, "batches": 10, "wall": 500, "cpu": 200, "delay": 250, "max": 90, "min": 20}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([CALLS | MANY], (1, "hook", 40, 10, 50, 20, 25, 90)),
        # the delays of the functions of a map add up; one that was not measured is unknown
        ([CALLS | FEW | {"delay": 20}, CALLS | FEW | {"part": 1, "delay": 80}], (1, "hook", 4, 1, 200, 10, 25, None)),
        ([CALLS | FEW | {"delay": 20}, CALLS | FEW | {"part": 1}], (1, "hook", 4, 1, 200, 10, None, None)),
        ([CALLS | FEW], (1, "hook", 4, 1, 100, 5, None, 10)),
        ([CALLS | FEW | {"delay": None}], (1, "hook", 4, 1, 100, 5, None, 10)),
    ],
)
def test_rows_of_worker_processes_are_service_times_with_their_delay(tree, events, expected):
    run = tree({"final-1": (sampled([1]), [20])}, graph=NUMBERED, events=events)
    assert rows(run, "op_service", "op_id source rows batches avg_ns cpu_ns delay_ns max_ns") == [expected]


def test_records_of_batches_that_were_taken_from_mindspore_are_the_fetches_own(tree):
    taken = {"e": "batches", "t": 41 * MS, "number": 1, "first": 0}
    taken |= {"push_ms": [0], "batch_ms": [7], "depth": [3], "capacity": [16]}
    run = tree(THREE, events=[taken, {**taken, "number": 2, "depth": [9]}])
    assert rows(run, "fetch", "push_ns batch_ns depth capacity") == [(0, 7 * MS, 3, 16)]


def test_readings_that_became_rarer_are_as_rare_from_the_beginning(tree):
    stamps = [10, 12, 14, 16, 20, 24, 32, 40]
    spacing = [{"e": "spacing", "t": at * MS, "number": 1, "ms": ms} for at, ms in ((16, 4), (24, 8))]
    run = tree({"final-1": (sampled(list(range(8))), stamps)}, events=[*spacing, {**spacing[0], "number": 2, "ms": 30}])
    found = depths(run, "t_ns depth")
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
        marks = [(Kind.FETCH, 0, number, 0, 40 * MS - 1000, 40 * MS) for number in numbers]
        folder = spooled.trained(rep, end=100 * MS, events=[iterator(number) for number in numbers], marks=marks)
        for number in numbers:
            write_save(folder / f"tree-{number}" / "final-1", *THREE["final-1"])
        Counted.passes = 0
        convert_rep(spooled.run, rep)
        passes.append(Counted.passes)
    assert passes[1] - passes[0] < 4  # of four iterators more


def told(at, part=None, calls=1, wall=S, **more):
    about = {"t": int(at * S), "pipeline": 0, "node": 1, "part": part, "calls": calls, "batches": 0, "timed": calls}
    about |= dict.fromkeys(("delay", "read", "given", "made"))
    return about | {"wall": calls * wall, "cpu": calls * wall // 2, "max": wall, "min": wall} | more


def added(add, events, at=lambda ns: ns):
    """What is added of such events: the table and the row."""
    found = []
    out = SimpleNamespace(add=lambda table, **row: found.append((table, row)), at=at)
    add(SimpleNamespace(all=lambda _name: events), out, {0: SimpleNamespace(op_ids={1: 7}, pipeline_id=3)})
    return found


def called(*events, names="rows avg_ns"):
    return [tuple(row[name] for name in names.split()) for _, row in added(add_calls, events)]


UNTIMED = {"timed": 0, "wall": 0, "cpu": 0, "max": None, "min": None}


@pytest.mark.parametrize(
    ("events", "names", "expected"),
    [
        # the functions of a row add up where each stretch has both
        ([told(1, 0, calls=4, wall=S // 10), told(1, 1, calls=4, wall=S // 5)], "op_id rows avg_ns",
         [(7, 4, 3 * S // 10)]),
        # `.map([decode, augment])` of 1 s each: every half second one of the two ends a call, if any does
        ([told(at, at % 2) for at in range(1, 9)], "rows avg_ns cpu_ns", [(1, 2 * S, S)] * 4),
        # a single function has a row for each stretch and its extremes
        ([told(1, wall=S), told(2, wall=3 * S), told(2.5, wall=2 * S)], "t_ns avg_ns max_ns",
         [(S, S, S), (2 * S, 3 * S, 3 * S), (5 * S // 2, 2 * S, 2 * S)]),
        # calls at the end of which none was timed count with those before
        ([told(1, calls=20, batches=5), told(2, calls=4, batches=1) | UNTIMED], "rows batches avg_ns max_ns",
         [(24, 6, S, S)]),
        ([told(1, calls=4) | UNTIMED], "rows", []),
    ],
)  # fmt: skip
def test_calls_of_functions_are_rows_of_their_operator(events, names, expected):
    assert called(*events, names=names) == expected


@pytest.mark.parametrize("parts", [(0, 1, 0), (0, 0, 1), (0, 1, 1, 0)])
def test_no_call_is_lost_and_none_is_a_row_of_its_own(parts):
    found = called(*(told(at, part, batches=1) for at, part in enumerate(parts, 1)))
    assert sum(count for count, _ in found) == max(map(parts.count, parts))
    assert {length for _, length in found} == {2 * S}


def test_waits_for_the_lock_are_of_the_operator_of_their_node():
    held = [{"t": 5, "held": 0.1, "waiting": [[0, 1, 0.4], [0, 9, 1.0], [2, 1, 1.0]]}, {"t": 6, "held": 0.1}]
    row = {"t_ns": 4, "scope": "lock_wait", "pipeline_id": 3, "op_id": 7, "user_ratio": 0.4}
    assert added(add_lock_waits, held, lambda ns: ns - 1) == [("cpu", row)]
