"""Where steps begin and end: one hand-made recording per style of loop. Every interval lasts 10, one after the other."""

import pytest
from stored_rows import rows

from pipeprof.read.spool.finish import finish
from pipeprof.read.spool.marks import OTHER_THREAD, Kind, Mark
from pipeprof.read.spool.step_rows import Step, StepRows
from pipeprof.read.spool.steps import EVALUATION, find_steps, leave_out

MARKS = {  # kind, flag, subject
    "fetch": (Kind.FETCH, 0, 0), "stop": (Kind.FETCH, 1, 0), "other": (Kind.FETCH, OTHER_THREAD, 0),
    "other_stop": (Kind.FETCH, OTHER_THREAD | 1, 0), "update": (Kind.UPDATE, 0, 0), "compile": (Kind.COMPILE, 0, 0),
    "call": (Kind.CALL, 0, 9), "network": (Kind.CALL, 3, 0), "gradients": (Kind.GRADIENTS, 0, 0),
    "train": (Kind.TRAIN_BEGIN, 0, 0), "epoch": (Kind.EPOCH_BEGIN, 0, 0), "step": (Kind.TRAIN_STEP, 0, 1),
    "epoch_end": (Kind.EPOCH_END, 0, 0), "trained": (Kind.TRAIN_END, 0, 0), "check": (Kind.EVAL_BEGIN, 0, 0),
    "scored": (Kind.EVAL_STEP, 0, 0), "checked": (Kind.EVAL_END, 0, 0), "part": (Kind.PART, EVALUATION, 0),
}  # fmt: skip


def recorded(text):
    """Marks by name: `name:1` is of subject 1 (rows: of that iterator), `name@40` began at 40, `+7` is time between."""
    marks, now = [], 0
    for part in text.split():
        if part.startswith("+"):
            now += int(part[1:])
            continue
        name, _, begin = part.partition("@")
        name, _, subject = name.partition(":")
        kind, flag, default = MARKS[name]
        marks.append(Mark(kind, flag, int(subject or default), 0, int(begin or now), now + 10))
        now += 10
    return marks


def steps_of(text, hidden=(), keys=None):
    """Iterators are different pipelines unless `keys` says otherwise."""
    marks = recorded(text)
    return find_steps(marks, hidden, keys or {mark.subject: str(mark.subject) for mark in marks})


def shown(found):
    return ", ".join(f"{step.kind} {step.start}-{step.end}" for step in found.steps)


def fact(found, name):
    if name in ("evidence", "counts"):
        return getattr(found, name)
    if name == "rows":
        return [[mark.subject for mark in step.fetches] for step in found.steps]
    return [getattr(step, name) for step in found.steps]


EPOCH = "epoch fetch update step:{0} fetch update step:{0} stop epoch_end "
CHECKED = "check fetch:1 scored fetch:1 scored stop:1 checked"


@pytest.mark.parametrize(
    ("text", "steps", "more"),
    [
        # a step lasts until the next one asks for its batch; the last one ends with its last mark
        ("fetch update +7 fetch update stop", "warmup 0-27, train 27-47", {"evidence": "updates", "updates": [1, 1]}),
        ("fetch update", "warmup 0-20", {}),
        ("", "", {"evidence": "none", "counts": {}}),
        # time between epochs belongs to no step, and an iterator that ends begins the next epoch for later steps
        ("fetch update stop +1000 fetch update stop", "warmup 0-20, train 1030-1050", {"epoch": [0, 1]}),
        ("fetch update fetch update stop " * 2, "warmup 0-20, train 20-40, train 50-70, train 70-90",
         {"epoch": [0, 0, 1, 1]}),
        # Model.train has the steps and epochs of its callbacks, and the callback of a step is part of it
        ("train " + EPOCH.format(1) + EPOCH.format(2) + "trained",
         "warmup 20-50, train 50-80, train 110-140, train 140-170",
         {"epoch": [0, 0, 1, 1], "rows": [[0]] * 4, "evidence": "callbacks",
          "counts": {"train_step_callbacks": 4, "rows": 4, "updates": 4}}),
        ("train epoch fetch update +500 step@40 trained", "warmup 20-550", {}),
        ("train epoch fetch update step trained fetch:3 update:5", "warmup 20-50, train 60-80",
         {"evidence": "callbacks"}),
        # an evaluation from a training callback lies inside that step; training after one does not inherit its rows
        (f"train epoch fetch update {CHECKED} step@40 fetch update step trained",
         "warmup 20-120, eval 50-70, eval 70-90, train 120-150", {"rows": [[0], [1], [1], [0]]}),
        ("check fetch:1 scored fetch:1 checked train epoch fetch update step trained", "eval 10-30, warmup 70-100",
         {"rows": [[1], [0]]}),
        # several optimizers, several rows, several datasets
        ("fetch update:0 update:1 " * 2, "warmup 0-30, train 30-60", {"updates": [2, 2]}),
        ("fetch call fetch call update " * 2, "warmup 0-50, train 50-100",
         {"rows": [[0, 0]] * 2, "handed_over": [10, 60]}),
        ("fetch fetch:1 update " * 3, "warmup 0-30, train 30-60, train 60-90", {"handed_over": [20, 50, 80]}),
        ("fetch fetch:1 fetch:1 update " * 3, "warmup 0-40, train 40-80, train 80-120", {"rows": [[0, 1, 1]] * 3}),
        ("fetch call update " * 2, "warmup 0-30, train 30-60", {}),
        # without updates every row is a step, where a network is seen; a last row that nothing came of is unfinished
        ("fetch call fetch call fetch stop", "warmup 0-20, train 20-40, train 40-50", {"evidence": "rows"}),
        ("fetch fetch fetch stop", "warmup 0-10, train 10-20, train 20-30", {"evidence": "reads"}),
        ("fetch call fetch", "warmup 0-20", {}),
        ("fetch fetch:1 call fetch:1 call stop:1", "warmup 10-30, train 30-50", {"rows": [[1], [1]]}),
        # a loop that raised in its first forward pass
        ("fetch", "", {}),
        ("fetch fetch:1 network", "", {}),
        # rows that no update follows are evaluation, which ends the training step before it
        ("fetch update fetch update stop fetch:1 call fetch:1 call stop:1",
         "warmup 0-20, train 20-40, eval 50-70, eval 70-90", {}),
        ("fetch update fetch:1 call fetch:1 call fetch update", "warmup 0-20, eval 20-40, eval 40-60, train 60-80", {}),
        ("fetch update fetch:1 fetch:1 fetch update", "warmup 0-20, eval 20-30, eval 30-40, train 40-60", {}),
        ("fetch update check fetch:1 scored checked part@20 fetch update", "warmup 0-20, eval 30-50, train 70-90", {}),
        # with the batch in hand it is no part of the step: `if step % 3 == 2: validate(); train_step(batch)`
        ("fetch update fetch update fetch fetch:1 call fetch:1 call stop:1 update fetch update fetch update",
         "warmup 0-20, train 20-40, eval 50-70, eval 70-90, train 100-110, train 110-130, train 130-150", {}),
        # a row that was fetched when the loop broke off
        ("fetch update fetch update fetch", "warmup 0-20, train 20-40", {}),
        # gradients, where nothing else tells of steps; of two networks in turn they are one step
        ("network gradients:5 +20 " * 3, "warmup 0-20, train 20-60, train 60-100",
         {"evidence": "gradients", "counts": {"gradients": 3}}),
        ("network gradients:5 +20 " * 3 + "fetch update", "warmup 120-140", {}),
        ("gradients:5 gradients:6 " * 3, "warmup 0-20, train 20-40, train 40-60", {}),
        # rows of another thread, one of them asked for during the update
        ("other update other update other_stop", "warmup 0-20, train 20-40", {"counts": {"rows": 2, "updates": 2}}),
        ("other update other@15 update", "warmup 0-20, train 20-40", {}),
        # rows fetched ahead, and updates without any
        ("fetch fetch fetch stop update update update", "warmup 0-50, train 50-60, train 60-70", {"epoch": [0, 0, 0]}),
        ("fetch fetch update fetch update fetch update stop update",
         "warmup 0-30, train 30-50, train 50-70, train 70-90", {}),
        ("update update update", "warmup 0-10, train 10-20, train 20-30",
         {"handed_over": [None] * 3, "rows": [[]] * 3}),
        # a step in which a graph was compiled is warmup, too; between two steps and in an evaluation it is not
        ("fetch update fetch update fetch compile update fetch update",
         "warmup 0-20, train 20-40, warmup 40-70, train 70-90", {}),
        ("fetch update stop compile fetch update fetch update stop", "warmup 0-20, train 40-60, train 60-80", {}),
        ("fetch update stop fetch:1 compile call stop:1", "warmup 0-20, eval 30-60", {}),
        # input is the time until the batch, and inside the iterator after that
        ("fetch +7 fetch update stop", "warmup 0-37", {"input_ns": [20]}),
    ],
)  # fmt: skip
def test_a_loop_has_its_steps(text, steps, more):
    found = steps_of(text)
    assert shown(found) == steps
    assert {name: fact(found, name) for name in more} == more


def test_iterators_of_one_pipeline_play_one_role():
    same, left = {0: "same", 1: "same"}, "fetch update fetch update fetch "
    for keys in (same, None):
        assert shown(steps_of("fetch update fetch update stop fetch:1", keys=keys)) == "warmup 0-20, train 20-40"
    found = steps_of(left + "+1000 fetch:1 update fetch:1 update", keys=same)
    assert shown(found) == "warmup 0-20, train 20-40, train 1050-1070, train 1070-1090"
    assert fact(found, "rows") == [[0], [0], [1], [1]]


def test_iterators_that_mindspore_made_itself_are_no_evidence():
    found = steps_of("fetch:7 fetch update fetch:7", hidden=[7])
    assert (shown(found), found.counts) == ("warmup 10-30", {"rows": 1, "updates": 1})


@pytest.mark.parametrize("training", ["fetch update fetch update", "train fetch update step fetch update step trained"])
@pytest.mark.parametrize("rows", [1, 3])
def test_iterators_that_are_left_after_a_few_rows_are_looked_at_and_are_no_steps(training, rows):
    """`next(dataset.create_dict_iterator())`, eight times, before the training."""
    looked = [*(n for n in range(10, 18) for _ in range(rows)), 20]
    found = steps_of(" ".join(f"fetch:{n}" for n in looked[:-1]) + f" {training} fetch:20")
    assert fact(found, "kind") == ["warmup", "train"]
    assert [mark.subject for mark in found.looks] == looked


def test_rows_beside_a_training_of_model_are_evaluation_where_the_network_or_the_end_is_seen():
    found = steps_of("train fetch update step trained fetch:10 call fetch:11 stop:11" + " fetch:12" * 20)
    assert fact(found, "kind") == ["warmup", *["eval"] * 22]
    assert found.looks == []


@pytest.mark.parametrize(
    ("work", "edges"),
    [
        ([(100, 130)], [(0, 100), (130, 200), (200, 300)]),  # at the beginning of a step, where Model's callbacks are
        ([(195, 200)], [(0, 100), (100, 195), (200, 300)]),  # at its end, before the next fetch
        ([(100, 120), (121, 130)], [(0, 100), (130, 200), (200, 300)]),  # one window closed, the next one opened
        # between a fetch and an update: the hooks saw a step end there
        *(
            ([window], [(0, 100), (100, 200), (200, 300)])
            for window in ((150, 155), (110, 110), (300, 350), (-50, -10))
        ),
    ],
)
def test_time_in_which_op_windows_were_written_is_no_steps(work, edges):
    steps = StepRows.of(Step("train", at, at + 100) for at in (0, 100, 200))
    marks = [Mark(kind, 0, 0, 0, at + begin, at + begin + 10)
             for at in (0, 100, 200) for kind, begin in ((Kind.FETCH, 40), (Kind.UPDATE, 70))]  # fmt: skip
    leave_out(steps, work, marks)
    assert [(step.start, step.end) for step in steps] == edges


def named(number, begin, end, flag=0, epoch=0):
    return Mark(Kind.STEP, flag, epoch, number, begin, end)


def test_named_steps_win_over_every_other_sign():
    marks = [
        Mark(Kind.FETCH, 0, 0, 0, 10, 20), Mark(Kind.UPDATE, 0, 1, 0, 30, 40), Mark(Kind.UPDATE, 0, 1, 0, 50, 60),
        named(5, 0, 100), Mark(Kind.TRAIN_STEP, 0, 1, 1, 90, 110), named(6, 100, 200, epoch=3),
    ]  # fmt: skip
    found = find_steps(marks, [], {})
    assert (found.evidence, found.counts["named_steps"]) == ("named", 2)
    assert shown(found) == "train 0-100, train 100-200"
    assert [(step.updates, step.epoch, len(step.fetches)) for step in found.steps] == [(2, None, 1), (0, 2, 0)]


def test_the_first_named_step_of_all_and_those_of_warmup_and_compiling_are_warmup():
    marks = [named(0, 0, 10), named(1, 10, 20, flag=1), Mark(Kind.COMPILE, 0, 0, 0, 22, 28), named(2, 20, 30)]
    found = find_steps([*marks, named(3, 30, 40)], [], {})
    assert fact(found, "kind") == ["warmup", "warmup", "warmup", "train"]
    assert fact(find_steps([Mark(Kind.FETCH, 0, 7, 0, 1, 2), named(1, 0, 10)], [7], {}), "rows") == [[]]  # hidden


def test_named_intervals_share_their_callers(spooled):
    spooled.rep()
    spans = {"e": "span", "t": 1300, "begin": 1200, "end": 1250, "track": "main", "category": "user"}
    stacks = (["a.py(3): f", "a.py(9): main"], ["a.py(4): f", "a.py(9): main"], [])
    spooled.process(events=[spans | {"label": f"part {n}", "stack": stack} for n, stack in enumerate(stacks)])
    run = finish(spooled.run)
    found = rows(run, "span", "category name start_ns dur_ns stack_id")
    assert [row[1:] for row in found if row[0] == "user"] == [
        ("part 0", 200, 50, 1), ("part 1", 200, 50, 2), ("part 2", 200, 50, None),
    ]  # fmt: skip
    stack = rows(run, "stack", "stack_id parent_id frame")
    assert stack == [(0, None, "a.py(9): main"), (1, 0, "a.py(3): f"), (2, 0, "a.py(4): f")]
