"""Steps and intervals that the program names itself."""

from pipeprof.read.spool.finish import finish
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.steps import find_steps
from pipeprof.record import store


def named(number, begin, end, flag=0, epoch=0):
    return Mark(Kind.STEP, flag, epoch, number, begin, end)


def test_named_steps_win_over_every_other_sign():
    marks = [
        Mark(Kind.FETCH, 0, 0, 0, 10, 20), Mark(Kind.UPDATE, 0, 1, 0, 30, 40), Mark(Kind.UPDATE, 0, 1, 0, 50, 60),
        named(5, 0, 100), Mark(Kind.TRAIN_STEP, 0, 1, 1, 90, 110), named(6, 100, 200, epoch=3),
    ]  # fmt: skip
    found = find_steps(marks, [], {})
    assert found.evidence == "named"
    assert [(step.kind, step.start, step.end, step.updates, step.epoch) for step in found.steps] == [
        ("train", 0, 100, 2, None),
        ("train", 100, 200, 0, 2),
    ]
    assert [len(step.fetches) for step in found.steps] == [1, 0]
    assert found.counts["named_steps"] == 2


def test_the_first_step_of_all_warmup_and_compiling_steps_are_warmup():
    marks = [
        named(0, 0, 10),
        named(1, 10, 20, flag=1),
        Mark(Kind.COMPILE, 0, 0, 0, 22, 28),
        named(2, 20, 30),
        named(3, 30, 40),
    ]
    assert [step.kind for step in find_steps(marks, [], {}).steps] == ["warmup", "warmup", "warmup", "train"]


def test_fetches_of_hidden_iterators_belong_to_no_named_step():
    marks = [Mark(Kind.FETCH, 0, 7, 0, 1, 2), named(1, 0, 10)]
    assert find_steps(marks, [7], {}).steps[0].fetches == []


def test_named_intervals_share_their_callers(spooled):
    spooled.rep()
    stacks = (["a.py(3): f", "a.py(9): main"], ["a.py(4): f", "a.py(9): main"], [])
    events = [
        {"e": "span", "t": 1300, "label": f"part {number}", "begin": 1200, "end": 1250, "track": "main", "category": "user", "stack": stack}
        for number, stack in enumerate(stacks)
    ]  # fmt: skip
    spooled.process(events=events)
    run = finish(spooled.run)
    spans = [row for row in store.read(run, "span").to_pylist() if row["category"] == "user"]
    assert [(row["name"], row["start_ns"], row["dur_ns"], row["stack_id"]) for row in spans] == [
        ("part 0", 200, 50, 1),
        ("part 1", 200, 50, 2),
        ("part 2", 200, 50, None),
    ]
    stack = [(row["stack_id"], row["parent_id"], row["frame"]) for row in store.read(run, "stack").to_pylist()]
    assert stack == [(0, None, "a.py(9): main"), (1, 0, "a.py(3): f"), (2, 0, "a.py(4): f")]
