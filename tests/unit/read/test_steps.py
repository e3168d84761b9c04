"""Where steps begin and end: one hand-made recording per style of loop. Every interval lasts 10, one after the other."""

import pytest

from pipeprof.read.spool.marks import OTHER_THREAD, Kind, Mark
from pipeprof.read.spool.step_rows import Step, StepRows
from pipeprof.read.spool.steps import EVALUATION, find_steps, leave_out

TRAIN, CHECK = 0, 1  # iterators


class Recording:
    """Marks in the order of their end, on a clock that moves 10 per interval."""

    def __init__(self):
        self.now = 0
        self.marks = []

    def add(self, kind, subject=0, flag=0, begin=None):
        start = self.now if begin is None else begin
        self.now += 10
        self.marks.append(Mark(kind, flag, subject, 0, start, self.now))
        return self

    def fetch(self, iterator=TRAIN, **how):
        return self.add(Kind.FETCH, iterator, **how)

    def stop(self, iterator=TRAIN):
        return self.add(Kind.FETCH, iterator, flag=1)

    def update(self, unit=0):
        return self.add(Kind.UPDATE, unit)

    def call(self, unit=9):
        return self.add(Kind.CALL, unit)

    def compile(self):
        return self.add(Kind.COMPILE)

    def steps(self, hidden=(), keys=None):
        """The steps; iterators are different pipelines unless `keys` says otherwise."""
        return find_steps(self.marks, hidden, keys or {mark.subject: str(mark.subject) for mark in self.marks})


def times(found, *kinds):
    wanted = kinds or ("warmup", "train", "eval")
    return [(step.start, step.end) for step in found.steps if step.kind in wanted]


@pytest.fixture
def rec():
    return Recording()


def test_a_step_lasts_until_the_next_one_asks_for_its_batch(rec):
    rec.fetch().update()
    rec.now += 7  # the loop logs something
    rec.fetch().update().stop()
    found = rec.steps()
    assert times(found) == [(0, 27), (27, 47)]
    assert found.evidence == "updates"
    assert [step.updates for step in found.steps] == [1, 1]


def test_the_last_step_ends_with_its_last_mark_when_nothing_follows(rec):
    assert times(rec.fetch().update().steps()) == [(0, 20)]


def test_time_between_epochs_belongs_to_no_step(rec):
    rec.fetch().update().stop()
    rec.now += 1000
    found = rec.fetch().update().stop().steps()
    assert times(found) == [(0, 20), (1030, 1050)]
    assert [step.epoch for step in found.steps] == [0, 1]


def test_an_iterator_that_ends_begins_the_next_epoch_only_for_later_steps(rec):
    for _ in range(3):
        rec.fetch().update().fetch().update().stop()
    assert [step.epoch for step in rec.steps().steps] == [0, 0, 1, 1, 2, 2]


def model_step(rec, epoch, iterator=TRAIN):
    rec.fetch(iterator).add(Kind.UPDATE).add(Kind.TRAIN_STEP, epoch)


def test_model_train_has_the_steps_and_epochs_of_its_callbacks(rec):
    rec.add(Kind.TRAIN_BEGIN)
    for epoch in (1, 2):
        rec.add(Kind.EPOCH_BEGIN)
        model_step(rec, epoch)
        model_step(rec, epoch)
        rec.stop().add(Kind.EPOCH_END)
    found = rec.add(Kind.TRAIN_END).steps()
    assert times(found) == [(20, 50), (50, 80), (110, 140), (140, 170)]
    assert [step.epoch for step in found.steps] == [0, 0, 1, 1]
    assert [len(step.fetches) for step in found.steps] == [1, 1, 1, 1]
    assert found.evidence == "callbacks"
    assert found.counts == {"train_step_callbacks": 4, "rows": 4, "updates": 4}


def test_the_callback_of_a_step_is_part_of_it(rec):
    rec.add(Kind.TRAIN_BEGIN).add(Kind.EPOCH_BEGIN)
    rec.fetch().add(Kind.UPDATE)
    rec.now += 500  # a callback that saves a checkpoint
    rec.add(Kind.TRAIN_STEP, 1, begin=40).add(Kind.TRAIN_END)
    assert times(rec.steps()) == [(20, 550)]


def test_an_evaluation_from_a_training_callback_lies_inside_that_step(rec):
    rec.add(Kind.TRAIN_BEGIN).add(Kind.EPOCH_BEGIN)
    rec.fetch(TRAIN).add(Kind.UPDATE)
    began = rec.now
    rec.add(Kind.EVAL_BEGIN)
    rec.fetch(CHECK).add(Kind.EVAL_STEP).fetch(CHECK).add(Kind.EVAL_STEP).stop(CHECK).add(Kind.EVAL_END)
    rec.add(Kind.TRAIN_STEP, 1, begin=began)
    model_step(rec, 1)
    found = rec.add(Kind.TRAIN_END).steps()
    assert times(found, "eval") == [(50, 70), (70, 90)]
    assert times(found, "warmup", "train") == [(20, 120), (120, 150)]
    assert [[mark.subject for mark in step.fetches] for step in found.steps] == [[TRAIN], [CHECK], [CHECK], [TRAIN]]


def test_training_after_an_evaluation_does_not_inherit_its_rows(rec):
    rec.add(Kind.EVAL_BEGIN).fetch(CHECK).add(Kind.EVAL_STEP).fetch(CHECK).add(Kind.EVAL_END)
    rec.add(Kind.TRAIN_BEGIN).add(Kind.EPOCH_BEGIN)
    model_step(rec, 1)
    found = rec.add(Kind.TRAIN_END).steps()
    assert [[mark.subject for mark in step.fetches] for step in found.steps] == [[CHECK], [TRAIN]]


def test_two_optimizers_make_one_step(rec):
    found = rec.fetch().update(0).update(1).fetch().update(0).update(1).steps()
    assert times(found) == [(0, 30), (30, 60)]
    assert [step.updates for step in found.steps] == [2, 2]


def test_gradient_accumulation_makes_one_step_of_several_rows(rec):
    for _ in range(2):
        rec.fetch().call().fetch().call().update()
    found = rec.steps()
    assert times(found) == [(0, 50), (50, 100)]
    assert [len(step.fetches) for step in found.steps] == [2, 2]
    assert [step.handed_over for step in found.steps] == [10, 60]


def test_without_updates_every_row_is_a_step(rec):
    found = rec.fetch().call().fetch().call().fetch().stop().steps()
    assert times(found) == [(0, 20), (20, 40), (40, 50)]
    assert found.evidence == "rows"
    assert {step.kind for step in found.steps} == {"warmup", "train"}


def test_rows_without_any_sign_of_a_network_are_only_read(rec):
    found = rec.fetch().fetch().fetch().stop().steps()
    assert found.evidence == "reads"
    assert len(found.steps) == 3


def test_a_loop_that_raised_in_its_first_forward_has_no_step(rec):
    assert rec.fetch().steps().steps == []


def test_without_updates_a_last_row_that_nothing_came_of_is_unfinished(rec):
    assert times(rec.fetch().call().fetch().steps()) == [(0, 20)]


def test_two_datasets_read_side_by_side_make_one_step(rec):
    for _ in range(4):
        rec.fetch(0).fetch(1).update()
    found = rec.steps()
    assert times(found) == [(0, 30), (30, 60), (60, 90), (90, 120)]
    assert [step.handed_over for step in found.steps] == [20, 50, 80, 110]


def test_rows_that_no_update_follows_are_evaluation(rec):
    rec.fetch(TRAIN).update().fetch(TRAIN).update().stop(TRAIN)
    rec.fetch(CHECK).call().fetch(CHECK).call().stop(CHECK)
    found = rec.steps()
    assert times(found, "warmup", "train") == [(0, 20), (20, 40)]
    assert times(found, "eval") == [(50, 70), (70, 90)]


@pytest.mark.parametrize("is_model", [False, True], ids=["loop by hand", "Model.train"])
@pytest.mark.parametrize("rows", [1, 3])
def test_iterators_that_are_left_after_a_few_rows_are_looked_at_and_are_no_steps(rec, is_model, rows):
    """`next(dataset.create_dict_iterator())`, eight times, before the training."""
    for iterator in range(10, 18):
        for _ in range(rows):
            rec.fetch(iterator)
    if is_model:
        rec.add(Kind.TRAIN_BEGIN)
        model_step(rec, 1)
        model_step(rec, 1)
        rec.add(Kind.TRAIN_END)
    else:
        rec.fetch().update().fetch().update()
    rec.fetch(20)
    found = rec.steps()
    assert [step.kind for step in found.steps] == ["warmup", "train"]
    assert [mark.subject for mark in found.looks] == [*(n for n in range(10, 18) for _ in range(rows)), 20]


def test_an_evaluation_that_is_left_after_a_few_rows_is_one_in_the_midst_of_a_training(rec):
    """`for x in check: forward(x); if enough: break`, where no call of a PyNative network is seen."""
    found = rec.fetch().update().fetch(CHECK).fetch(CHECK).fetch().update().steps()
    assert [step.kind for step in found.steps] == ["warmup", "eval", "eval", "train"]


def test_rows_beside_a_training_of_model_are_evaluation_where_the_network_or_the_end_is_seen(rec):
    rec.add(Kind.TRAIN_BEGIN)
    model_step(rec, 1)
    rec.add(Kind.TRAIN_END)
    rec.fetch(10).call()  # a prediction
    rec.fetch(11).stop(11)
    for _ in range(20):
        rec.fetch(12)
    found = rec.steps()
    assert [step.kind for step in found.steps] == ["warmup", *["eval"] * 22]
    assert found.looks == []


def test_evaluation_in_the_middle_of_an_epoch_ends_the_training_step_before_it(rec):
    rec.fetch(TRAIN).update().fetch(CHECK).call().fetch(CHECK).call().fetch(TRAIN).update()
    found = rec.steps()
    assert times(found, "warmup", "train") == [(0, 20), (60, 80)]
    assert times(found, "eval") == [(20, 40), (40, 60)]


def test_an_evaluation_with_the_batch_in_hand_is_no_part_of_the_step(rec):
    """`for batch in train: if step % 4 == 0: validate(); train_step(batch)`."""
    for step in range(8):
        rec.fetch(TRAIN)
        if step % 4 == 2:
            for _ in range(3):
                rec.fetch(CHECK).call()
            rec.stop(CHECK)
        rec.update()
    found = rec.steps()
    training = [step for step in found.steps if step.kind != "eval"]
    assert len(training) == 8
    assert {step.end - step.start for step in training} <= {10, 20}  # without its batch, the update alone
    assert [step.end - step.start for step in found.steps if step.kind == "eval"] == [20] * 6


def test_two_rows_of_one_dataset_for_one_of_another_are_training(rec):
    for _ in range(4):
        rec.fetch(TRAIN).fetch(CHECK).fetch(CHECK).update()
    found = rec.steps()
    assert times(found, "eval") == []
    assert [len(step.fetches) for step in found.steps] == [3] * 4


def test_model_eval_in_a_loop_by_hand_is_no_part_of_the_step_before_it(rec):
    rec.fetch(TRAIN).update()
    begin = rec.now
    rec.add(Kind.EVAL_BEGIN).fetch(CHECK).add(Kind.EVAL_STEP).add(Kind.EVAL_END)
    rec.add(Kind.PART, flag=EVALUATION, begin=begin)
    rec.fetch(TRAIN).update()
    assert times(rec.steps(), "warmup", "train") == [(0, 20), (rec.now - 20, rec.now)]


def test_a_graph_call_without_an_optimizer_between_row_and_update_is_part_of_training(rec):
    found = rec.fetch().call().update().fetch().call().update().steps()
    assert [step.kind for step in found.steps] == ["warmup", "train"]
    assert times(found) == [(0, 30), (30, 60)]


def test_a_new_iterator_with_a_single_row_plays_the_role_of_its_pipeline(rec):
    rec.fetch(0).update().fetch(0).update().stop(0).fetch(1)
    keys = {0: "same", 1: "same"}
    found = rec.steps(keys=keys)
    assert [step.kind for step in found.steps] == ["warmup", "train"]
    assert [step.kind for step in rec.steps().steps] == ["warmup", "train"]


def test_a_row_that_was_fetched_when_the_loop_broke_off_makes_no_step(rec):
    rec.fetch(0).update().fetch(0).update().fetch(0)
    assert times(rec.steps()) == [(0, 20), (20, 40)]


def test_a_row_left_by_a_loop_that_broke_off_is_not_part_of_the_next_epoch(rec):
    rec.fetch(0).update().fetch(0).update().fetch(0)
    rec.now += 1000  # a checkpoint is saved
    rec.fetch(1).update().fetch(1).update()
    found = rec.steps(keys={0: "same", 1: "same"})
    assert times(found) == [(0, 20), (20, 40), (1050, 1070), (1070, 1090)]
    assert [len(step.fetches) for step in found.steps] == [1, 1, 1, 1]


def test_gradients_are_steps_where_nothing_else_tells_of_any(rec):
    for _ in range(3):
        rec.add(Kind.CALL, flag=3).add(Kind.GRADIENTS, subject=5)
        rec.now += 20  # the update by hand
    found = rec.steps()
    assert (found.evidence, found.counts) == ("gradients", {"gradients": 3})
    assert times(found) == [(0, 20), (20, 60), (60, 100)]
    assert times(rec.fetch().update().steps()) == [(120, 140)]


def test_gradients_of_two_networks_in_turn_are_one_step(rec):
    for _ in range(3):
        rec.add(Kind.GRADIENTS, subject=5).add(Kind.GRADIENTS, subject=6)
    assert times(rec.steps()) == [(0, 20), (20, 40), (40, 60)]


def test_rows_fetched_by_another_thread_count_as_rows(rec):
    for _ in range(2):
        rec.fetch(flag=OTHER_THREAD).update()
    rec.add(Kind.FETCH, TRAIN, flag=OTHER_THREAD | 1)
    found = rec.steps()
    assert times(found) == [(0, 20), (20, 40)]
    assert found.counts == {"rows": 2, "updates": 2}


def test_a_fetch_that_another_thread_began_during_the_update_does_not_make_steps_overlap(rec):
    rec.fetch(flag=OTHER_THREAD).update()
    rec.fetch(flag=OTHER_THREAD, begin=rec.now - 5).update()
    first, second = times(rec.steps())
    assert first[1] <= second[0]


def test_rows_fetched_before_the_first_update_are_all_of_training(rec):
    rec.fetch().fetch().fetch().stop().update().update().update()
    found = rec.steps()
    assert [step.kind for step in found.steps] == ["warmup", "train", "train"]
    assert times(found)[1:] == [(50, 60), (60, 70)]
    assert [step.epoch for step in found.steps] in ([0, 0, 0], [None, None, None])


def test_one_row_fetched_ahead_still_makes_one_step_per_update(rec):
    rec.fetch()
    for _ in range(3):
        rec.fetch().update()
    found = rec.stop().update().steps()
    assert sum(step.kind != "eval" for step in found.steps) == 4


def test_updates_without_a_dataset_are_steps_without_rows(rec):
    found = rec.update().update().update().steps()
    assert times(found) == [(0, 10), (10, 20), (20, 30)]
    assert [step.handed_over for step in found.steps] == [None, None, None]
    assert [step.fetches for step in found.steps] == [[], [], []]


def test_iterators_that_mindspore_made_itself_are_no_evidence(rec):
    found = rec.fetch(7).fetch(TRAIN).update().fetch(7).steps(hidden=[7])
    assert times(found) == [(10, 30)]
    assert found.counts == {"rows": 1, "updates": 1}


def test_the_first_training_step_is_warmup(rec):
    found = rec.fetch().update().fetch().update().fetch().update().steps()
    assert [step.kind for step in found.steps] == ["warmup", "train", "train"]


def test_a_step_in_which_a_graph_was_compiled_is_warmup_too(rec):
    rec.fetch().update().fetch().update().fetch().compile().update().fetch().update()
    assert [step.kind for step in rec.steps().steps] == ["warmup", "train", "warmup", "train"]


def test_a_compilation_between_two_steps_makes_neither_of_them_warmup(rec):
    rec.fetch().update().stop().compile().fetch().update().fetch().update().stop()
    assert [step.kind for step in rec.steps().steps] == ["warmup", "train", "train"]


def test_evaluation_is_never_warmup(rec):
    rec.fetch(TRAIN).update().stop(TRAIN).fetch(CHECK).compile().call().stop(CHECK)
    assert [step.kind for step in rec.steps().steps] == ["warmup", "eval"]


def test_nothing_recorded_is_no_steps_and_says_so():
    found = find_steps([], [], {})
    assert (found.steps, found.evidence, found.counts) == ([], "none", {})


def test_callbacks_win_over_updates_when_both_were_seen(rec):
    rec.add(Kind.TRAIN_BEGIN).add(Kind.EPOCH_BEGIN)
    model_step(rec, 1)
    rec.add(Kind.TRAIN_END)
    found = rec.fetch(3).update(5).steps()
    assert found.evidence == "callbacks"
    assert len(found.steps) == 2


def test_a_row_that_was_only_looked_at_is_no_step_when_others_are_computed_with(rec):
    rec.fetch().fetch(CHECK)
    rec.call()
    rec.fetch(CHECK)
    rec.call()
    rec.stop(CHECK)
    found = rec.steps()
    assert [[mark.subject for mark in step.fetches] for step in found.steps] == [[CHECK], [CHECK]]


def test_a_training_that_raised_in_its_first_forward_has_no_step(rec):
    rec.fetch()
    rec.fetch(CHECK).add(Kind.CALL, flag=3)
    assert rec.steps().steps == []


def test_a_dataset_that_is_only_iterated_has_a_step_for_each_row(rec):
    rec.fetch().fetch().stop()
    assert len(rec.steps().steps) == 2


def test_input_is_the_time_until_the_batch_and_inside_the_iterator_after_that(rec):
    rec.fetch()
    rec.now += 7
    rec.fetch().update().stop()
    (step,) = rec.steps().steps
    assert step.input_ns == 20


@pytest.mark.parametrize(
    ("work", "edges"),
    [
        ([(100, 130)], [(0, 100), (130, 200), (200, 300)]),  # at the beginning of a step, where Model's callbacks are
        ([(195, 200)], [(0, 100), (100, 195), (200, 300)]),  # at its end, before the next fetch
        ([(100, 120), (121, 130)], [(0, 100), (130, 200), (200, 300)]),  # one window closed, the next one opened
        (
            [(150, 155)],
            [(0, 100), (100, 200), (200, 300)],
        ),  # between a fetch and an update: the hooks saw a step end there
        ([(110, 110)], [(0, 100), (100, 200), (200, 300)]),
        ([(300, 350)], [(0, 100), (100, 200), (200, 300)]),
        ([(-50, -10)], [(0, 100), (100, 200), (200, 300)]),
    ],
)
def test_time_in_which_op_windows_were_written_is_no_steps(work, edges):
    steps = StepRows.of(Step("train", at, at + 100) for at in (0, 100, 200))
    marks = [Mark(kind, 0, 0, 0, at + begin, at + begin + 10)
             for at in (0, 100, 200) for kind, begin in ((Kind.FETCH, 40), (Kind.UPDATE, 70))]  # fmt: skip
    leave_out(steps, work, marks)
    assert [(step.start, step.end) for step in steps] == edges
