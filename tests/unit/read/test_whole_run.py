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


@given(
    st.lists(
        st.tuples(st.integers(-20, 120), st.integers(0, 60), st.sampled_from([*ORDER, "set_up", "epoch_gap"])),
        max_size=30,
    )
)
def test_the_parts_add_up_whatever_overlaps(items):
    found = divide([Stretch(begin, begin + length, part) for begin, length, part in items], 0, 100)
    assert sum(length for _, _, length in found.values()) == 100
    assert all(length > 0 for _, _, length in found.values())


def event(owner="a", shapes=((8, 4), (8,)), begin=100, label="Net"):
    return {"e": "compiled", "t": begin, "label": label, "owner": owner, "shapes": [list(s) for s in shapes],
            "begin": begin, "end": begin + 5}  # fmt: skip


@pytest.mark.parametrize(
    ("new", "known", "cause"),
    [
        (event(), [], None),
        (event(shapes=((3, 4), (3,))), [event()], "short_batch"),
        (event(shapes=((8, 5), (8,))), [event()], "changed_shapes"),
        (event(shapes=((9, 4), (9,))), [event()], "changed_shapes"),
        (event(), [event()], "again"),
        (event("b"), [event()], "new_object"),
        (event("b", shapes=((8, 5),)), [event()], None),
        (event("b", begin=10), [event()], None),
    ],
)
def test_why_a_graph_is_compiled_again(new, known, cause):
    assert why_again(new, known, 50) == cause


def process(marks=(), *events, bye=True):
    told = [{"e": "import", "t": 20, "begin": 10, "end": 20}, *events]
    told += [{"e": "bye", "t": 190}] if bye else []
    return Process(Path(), {"pid": 1, "started": 5}, list(marks), told)


def parts(member, end=200, looks=()):
    out = RankRows(0, 0, 0)
    process, steps = member
    add_whole_run([(process, Steps(StepRows.of(steps), "updates", {}, list(looks)))], out, end)
    rows = out.rows["run_part"]
    return {(part, detail or site, cause): tuple(more) for part, detail, cause, site, *more in rows}


def test_a_run_from_its_launch_to_its_end():
    steps = [Step("warmup", 50, 60, 0), Step("train", 60, 70, 0), Step("train", 70, 80, 0), Step("train", 100, 110, 1)]
    marks = [
        Mark(Kind.PART, 1, 0, 0, 85, 90), Mark(Kind.PART, 0, 3, 0, 72, 75), Mark(Kind.PART, 2, 0, 0, 91, 95),
        Mark(Kind.COMPILE, 0, 0, 0, 51, 55),
    ]  # fmt: skip
    found = parts((process(marks, {"e": "callback", "t": 1, "number": 3, "label": "Watcher"}), steps))
    assert found == {
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
    waits = [(0, 50, 60), (0, 60, 61), (1, 80, 115), (1, 120, 125)]
    fetches = [Mark(Kind.FETCH, 0, subject, 0, begin, end) for subject, begin, end in waits]
    ends = [(60, 0), (70, 0), (120, 1), (130, 1)]
    steps = [Step("train", fetch.begin, end, epoch) for fetch, (end, epoch) in zip(fetches, ends, strict=True)]
    for step, fetch in zip(steps, fetches, strict=True):
        step.fetches.append(fetch)
    events = [
        {"e": "iterator", "t": 1, "number": number, "begin": at, "end": at, "iteration": number, "settings": settings}
        for number, at in ((0, 40), (1, 75))
    ]
    found = parts((process(fetches, *events), steps))
    assert found["epoch_gap", None, None] == (1, 70, gap)
    assert found["training", None, None][2] == 70 - (gap - 10)


def test_looks_at_samples_are_a_part_of_what_is_before_the_steps():
    looks = [Mark(Kind.FETCH, 0, number, 0, begin, begin + 4) for number, begin in ((7, 30), (8, 40))]
    found = parts((process(), [Step("train", 60, 70, 0)]), looks=looks)
    assert found["look", None, None] == (2, 30, 8)
    assert found["set_up", None, None] == (1, 5, 37)


def test_batches_of_one_iterator_that_follow_each_other_are_one_evaluation():
    def batch(iterator, begin):
        return Step("eval", begin, begin + 10, fetches=[Mark(Kind.FETCH, 0, iterator, 0, begin, begin + 1)])

    steps = [Step("train", 20, 30, 0), *(batch(1, begin) for begin in (30, 40, 50)), batch(2, 60), batch(2, 80)]
    assert parts((process(), steps))["evaluation", None, None] == (3, 30, 50)


def test_steps_of_a_recorded_evaluation_are_no_further_evaluations():
    steps = [Step("train", 50, 60, 0), Step("eval", 70, 74), Step("eval", 75, 79)]
    whole = parts((process([Mark(Kind.PART, 2, 0, 0, 65, 80)]), steps))
    assert whole["evaluation", None, None] == (1, 65, 15)
    assert parts((process(), steps))["evaluation", None, None] == (2, 70, 8)


def test_after_the_last_sign_of_a_killed_process_nothing_was_recorded():
    found = parts((process([Mark(Kind.UPDATE, 0, 0, 0, 100, 150)], bye=False), [Step("train", 50, 150, 0)]))
    assert found["not_recorded", None, None] == (1, 150, 50)


def test_a_checkpoint_callback_writes_one_checkpoint_however_it_does_it():
    marks = [Mark(Kind.PART, 1, 0, 0, 55, 58), Mark(Kind.PART, 0, 3, 0, 54, 59)]
    name = {"e": "callback", "t": 1, "number": 3, "label": "ModelCheckpoint"}
    found = parts((process(marks, name), [Step("train", 50, 60, 0)]))
    assert found["checkpoint", None, None] == (1, 54, 5)


def test_checkpoints_and_evaluations_have_the_line_of_the_program():
    marks = [
        Mark(Kind.PART, 1, 1, 0, 55, 58), Mark(Kind.PART, 0, 3, 0, 54, 59), Mark(Kind.PART, 0, 3, 0, 61, 62),
        Mark(Kind.PART, 2, 2, 0, 70, 80),
    ]  # fmt: skip
    lines = [
        {"e": "callback", "t": 1, "number": 3, "label": "ModelCheckpoint"},
        {"e": "part_site", "t": 1, "number": 1, "site": "t.py:7"}, {"e": "part_site", "t": 1, "number": 2, "site": "t.py:9"},
    ]  # fmt: skip
    found = parts((process(marks, *lines), [Step("train", 50, 60, 0)]))
    assert found["checkpoint", "t.py:7", None] == (1, 54, 6)
    assert found["evaluation", "t.py:9", None] == (1, 70, 10)
    assert not any(part == "checkpoint" and detail is None for part, detail, _ in found)


def test_a_callback_has_its_class_and_the_line_of_that():
    told = {"e": "callback", "t": 1, "number": 3, "label": "Report", "site": "t.py:4"}
    out, steps = RankRows(0, 0, 0), StepRows.of([Step("train", 50, 60, 0)])
    add_whole_run([(process([Mark(Kind.PART, 0, 3, 0, 52, 55)], told), Steps(steps, "updates", {}, []))], out, 200)
    assert ("callback", "Report", None, "t.py:4", 1, 52, 3) in [tuple(row) for row in out.rows["run_part"]]


def test_steps_within_a_recorded_evaluation_are_of_its_line():
    steps = [Step("train", 50, 60, 0), Step("eval", 70, 74), Step("eval", 90, 94)]
    site = {"e": "part_site", "t": 1, "number": 1, "site": "t.py:9"}
    found = parts((process([Mark(Kind.PART, 2, 1, 0, 65, 80)], site), steps))
    assert found["evaluation", "t.py:9", None] == (1, 65, 15)
    assert found["evaluation", None, None] == (0, 90, 4)


def test_rows_that_the_pipeline_makes_behind_the_last_batch_are_the_rest_of_its_epoch():
    def calls(time, batches, pipeline=7, rows=50):
        return {"e": "calls", "t": time, "pipeline": pipeline, "node": 1, "calls": rows, "batches": batches}

    step = Step("train", 50, 100, fetches=[Mark(Kind.FETCH, 0, 7, 0, 50, 51)])
    told = [calls(90, 7), calls(105, 3), calls(140, 0, rows=300), calls(180, 0, pipeline=8, rows=999)]
    assert ("ending", None, "rest_of_epoch") not in parts((process((), *told), [step]))  # queues hold that much
    found = parts((process((), *told, calls(150, 0, rows=341)), [step]))
    assert found["ending", None, "rest_of_epoch"] == (1, 100, 50)
    assert found["ending", None, None] == (1, 150, 50)
