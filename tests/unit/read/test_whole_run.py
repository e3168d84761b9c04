"""The parts of a whole run exclude each other and add up to it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.process import Process
from pipeprof.read.spool.step_rows import Step, StepRows
from pipeprof.read.spool.steps import Steps
from pipeprof.read.spool.whole_run import ORDER, Stretch, add_whole_run, divide, why_again
from pipeprof.read.tables.rows import RankRows

CALLBACK, CHECKPOINT, EVALUATION = 0, 1, 2  # flags of a part


def test_the_part_that_comes_first_in_the_order_has_the_time():
    found = divide(
        [
            Stretch(0, 100, "ending"), Stretch(10, 90, "training", times=8), Stretch(20, 60, "callback", "Save"),
            Stretch(30, 50, "checkpoint"), Stretch(35, 40, "recompile", "Net", "again"),
        ],
        0, 110,
    )  # fmt: skip
    assert {key[0]: length for key, (_, _, length) in found.items()} == {
        "ending": 20, "training": 40, "callback": 20, "checkpoint": 15, "recompile": 5, "not_recorded": 10,
    }  # fmt: skip
    assert found["training", "", "", ""][:2] == (8, 10)


def test_what_is_hidden_by_another_part_is_not_counted():
    found = divide([Stretch(0, 50, "evaluation"), Stretch(10, 20, "dataset_build")], 0, 50)
    assert found == {("evaluation", "", "", ""): (1, 0, 50)}


PARTS = st.tuples(st.integers(-20, 120), st.integers(0, 60), st.sampled_from([*ORDER, "set_up", "epoch_gap"]))


@given(st.lists(PARTS, max_size=30))
def test_the_parts_add_up_whatever_overlaps(items):
    found = divide([Stretch(begin, begin + length, part) for begin, length, part in items], 0, 100)
    assert sum(length for _, _, length in found.values()) == 100
    assert all(length > 0 for _, _, length in found.values())


def compiled(owner="a", shapes=((8, 4), (8,)), begin=100):
    about = {"e": "compiled", "t": begin, "label": "Net", "owner": owner, "shapes": [list(shape) for shape in shapes]}
    return about | {"begin": begin, "end": begin + 5}


@pytest.mark.parametrize(
    ("new", "known", "cause"),
    [
        (compiled(), [], None),
        (compiled(shapes=((3, 4), (3,))), [compiled()], "short_batch"),
        (compiled(shapes=((8, 5), (8,))), [compiled()], "changed_shapes"),
        (compiled(shapes=((9, 4), (9,))), [compiled()], "changed_shapes"),
        (compiled(), [compiled()], "again"),
        (compiled("b"), [compiled()], "new_object"),
        (compiled("b", shapes=((8, 5),)), [compiled()], None),
        (compiled("b", begin=10), [compiled()], None),
    ],
)
def test_why_a_graph_is_compiled_again(new, known, cause):
    assert why_again(new, known, 50) == cause


def part(flag, number, begin, end):
    return Mark(Kind.PART, flag, number, 0, begin, end)


def fetch(iterator, begin, end, number=0):
    return Mark(Kind.FETCH, 0, iterator, number, begin, end)


def callback(label, **more):
    return {"e": "callback", "t": 1, "number": 3, "label": label, **more}


def site(number, text):
    return {"e": "part_site", "t": 1, "number": number, "site": text}


def parts(steps, marks=(), events=(), *, bye=True, looks=()):
    """{(part, detail or line, cause): (times, begin, length)} of a process until 200."""
    told = [{"e": "import", "t": 20, "begin": 10, "end": 20}, *events, *([{"e": "bye", "t": 190}] if bye else [])]
    process, out = Process(Path(), {"pid": 1, "started": 5}, list(marks), told), RankRows(0, 0, 0)
    add_whole_run([(process, Steps(StepRows.of(steps), "updates", {}, list(looks)))], out, 200)
    return {(name, detail or line, cause): tuple(more) for name, detail, cause, line, *more in out.rows["run_part"]}


TRAINED = [Step("train", 50, 60, 0)]


def test_a_run_from_its_launch_to_its_end():
    steps = [Step("warmup", 50, 60, 0), Step("train", 60, 70, 0), Step("train", 70, 80, 0), Step("train", 100, 110, 1)]
    marks = [part(CHECKPOINT, 0, 85, 90), part(CALLBACK, 3, 72, 75), part(EVALUATION, 0, 91, 95)]
    marks.append(Mark(Kind.COMPILE, 0, 0, 0, 51, 55))
    assert parts(steps, marks, [callback("Watcher")]) == {
        ("start", None, None): (1, 0, 5), ("set_up", None, None): (1, 5, 35), ("import", None, None): (1, 10, 10),
        ("first_steps", None, None): (1, 50, 6), ("compile", None, None): (1, 51, 4), ("training", None, None): (3, 60, 27),
        ("callback", "Watcher", None): (1, 72, 3), ("epoch_gap", None, None): (1, 80, 11),
        ("checkpoint", None, None): (1, 85, 5), ("evaluation", None, None): (1, 91, 4), ("ending", None, None): (1, 110, 90),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "gap"),
    [
        ({"num_workers": 2}, 40),
        ({"num_workers": 2, "persistent_workers": True}, 10),
        ({"num_workers": 0}, 10),
        (None, 10),
    ],
)
def test_what_the_first_batch_waits_for_workers_that_start_anew_lies_between_epochs(settings, gap):
    """Of its 35 the longest other wait, 5, is the batch's own; the first epoch starts its workers once."""
    fetches = [fetch(0, 50, 60), fetch(0, 60, 61), fetch(1, 80, 115), fetch(1, 120, 125)]
    ends = [(60, 0), (70, 0), (120, 1), (130, 1)]
    steps = [
        Step("train", one.begin, end, epoch, fetches=[one]) for one, (end, epoch) in zip(fetches, ends, strict=True)
    ]
    made = {"e": "iterator", "t": 1, "settings": settings}
    events = [made | {"number": n, "begin": at, "end": at, "iteration": n} for n, at in ((0, 40), (1, 75))]
    found = parts(steps, fetches, events)
    assert found["epoch_gap", None, None] == (1, 70, gap)
    assert found["training", None, None][2] == 70 - (gap - 10)


def batch(iterator, begin):
    return Step("eval", begin, begin + 10, fetches=[fetch(iterator, begin, begin + 1)])


SAVED = [part(CHECKPOINT, 0, 55, 58), part(CALLBACK, 3, 54, 59)]
LOOKED = [fetch(number, begin, begin + 4) for number, begin in ((7, 30), (8, 40))]


@pytest.mark.parametrize(
    ("steps", "how", "expected"),
    [
        # looks at samples are a part of what is before the steps
        ([Step("train", 60, 70, 0)], {"looks": LOOKED}, {("look", None): (2, 30, 8), ("set_up", None): (1, 5, 37)}),
        # batches of one iterator that follow each other are one evaluation
        ([Step("train", 20, 30, 0), *(batch(1, begin) for begin in (30, 40, 50)), batch(2, 60), batch(2, 80)], {},
         {("evaluation", None): (3, 30, 50)}),
        # steps of a recorded evaluation are no further ones, and within it of its line
        ([*TRAINED, Step("eval", 70, 74), Step("eval", 75, 79)], {"marks": [part(EVALUATION, 0, 65, 80)]},
         {("evaluation", None): (1, 65, 15)}),
        ([*TRAINED, Step("eval", 70, 74), Step("eval", 75, 79)], {}, {("evaluation", None): (2, 70, 8)}),
        ([*TRAINED, Step("eval", 70, 74), Step("eval", 90, 94)],
         {"marks": [part(EVALUATION, 1, 65, 80)], "events": [site(1, "t.py:9")]},
         {("evaluation", "t.py:9"): (1, 65, 15), ("evaluation", None): (0, 90, 4)}),
        # after the last sign of a killed process nothing was recorded
        ([Step("train", 50, 150, 0)], {"marks": [Mark(Kind.UPDATE, 0, 0, 0, 100, 150)], "bye": False},
         {("not_recorded", None): (1, 150, 50)}),
        # a checkpoint callback writes one checkpoint however it does it; it has the line of the program
        (TRAINED, {"marks": SAVED, "events": [callback("ModelCheckpoint")]}, {("checkpoint", None): (1, 54, 5)}),
        (TRAINED, {"marks": [part(CHECKPOINT, 1, 55, 58), *SAVED[1:], part(CALLBACK, 3, 61, 62),
                             part(EVALUATION, 2, 70, 80)],
                   "events": [callback("ModelCheckpoint"), site(1, "t.py:7"), site(2, "t.py:9")]},
         {("checkpoint", "t.py:7"): (1, 54, 6), ("evaluation", "t.py:9"): (1, 70, 10)}),
    ],
)  # fmt: skip
def test_parts_have_their_times_and_lines(steps, how, expected):
    found = {(name, line): row for (name, line, _), row in parts(steps, **how).items()}
    assert {key: row for key, row in found.items() if key[0] in {name for name, _ in expected}} == expected


def test_a_callback_has_its_class_and_the_line_of_that():
    marks, told = [part(CALLBACK, 3, 52, 55)], callback("Report", site="t.py:4")
    process, out = Process(Path(), {"pid": 1, "started": 5}, marks, [told]), RankRows(0, 0, 0)
    add_whole_run([(process, Steps(StepRows.of(TRAINED), "updates", {}, []))], out, 200)
    assert ("callback", "Report", None, "t.py:4", 1, 52, 3) in [tuple(row) for row in out.rows["run_part"]]


def test_rows_that_the_pipeline_makes_behind_the_last_batch_are_the_rest_of_its_epoch():
    def calls(time, batches, pipeline=7, rows=50):
        return {"e": "calls", "t": time, "pipeline": pipeline, "node": 1, "calls": rows, "batches": batches}

    step = Step("train", 50, 100, fetches=[fetch(7, 50, 51)])
    told = [calls(90, 7), calls(105, 3), calls(140, 0, rows=300), calls(180, 0, pipeline=8, rows=999)]
    assert ("ending", None, "rest_of_epoch") not in parts([step], (), told)  # queues hold that much
    found = parts([step], (), [*told, calls(150, 0, rows=341)])
    assert found["ending", None, "rest_of_epoch"] == (1, 100, 50)
    assert found["ending", None, None] == (1, 150, 50)
