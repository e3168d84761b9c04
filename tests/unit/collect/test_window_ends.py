"""What ends a window or a training early: an evaluation, a loop that is left, a profile of the script's own, an error.

None of the training's errors is swallowed, and what goes on after one that was caught is counted.
"""

import threading
from types import SimpleNamespace

import pytest

from tests.unit.collect.conftest import in_thread


class Counted:
    """In place of the windows: how often they were told to pause, and whether one is open."""

    def __init__(self):
        self.paused, self.folder, self.steps = 0, "open", []

    def pause(self):
        self.paused += 1

    def step_done(self):
        self.steps.append(threading.get_ident())

    def hand_over(self):
        pass


@pytest.fixture
def counted(probe):
    probe.windows.use(Counted())
    return probe.windows.WINDOWS


def tree(number, rows=1):
    return SimpleNamespace(number=number, rows=rows)


def step(loop, *trees):
    for one in trees:
        loop.before_fetch(one)
    loop.before_update(0)
    loop.after_update(0)


def test_a_validation_loop_ends_the_window_and_so_does_an_evaluation_of_model(probe, rec, counted):
    loop = probe.loop.Loop()
    for _ in range(3):
        step(loop, tree(0))
    loop.before_fetch(tree(1))
    assert counted.paused == 0  # a batch of another data set may lead to an update
    loop.before_fetch(tree(1))
    assert counted.paused == 1
    probe.steps._model_event(probe.recorder.EVAL_BEGIN)
    assert counted.paused == 2


@pytest.mark.parametrize("trees", [(0, 1), (0, 0, 0), (0, 1, 1)], ids=["two data sets", "accumulation", "both"])
def test_batches_that_lead_to_updates_end_none(probe, counted, trees):
    loop = probe.loop.Loop()
    for _ in range(4):
        step(loop, *map(tree, trees))
    assert counted.paused == 0


def test_a_thread_that_fetches_ahead_ends_no_step_and_is_told_of(probe, rec, counted):
    loop = probe.loop.Loop()
    for _ in range(3):
        in_thread(loop.before_fetch, tree(0))
        step(loop)
    assert counted.steps == [threading.get_ident()] * 3
    assert rec._warned == {"fetched_ahead"}


def optimizer_of(probe):
    """A class of optimizers, hooked, and what they were called with."""
    called = []
    optimizer = type("Optimizer", (), {"__call__": lambda _self, gradients: called.append(gradients)})
    probe.steps.install_optimizer(SimpleNamespace(Optimizer=optimizer))
    return optimizer(), called


def test_the_thread_that_updates_is_the_one_that_trains(probe, rec):
    optimizer, _ = optimizer_of(probe)
    assert probe.steps.LOOP.thread == threading.get_ident()
    trains = in_thread(lambda: optimizer("gradients") or threading.get_ident())
    assert probe.steps.LOOP.thread == trains


def pynative(probe):
    """An executor of PyNative whose gradient functions are hooked."""

    class Executor:
        def new_graph(self, what):
            pass

        def grad(self, what):
            return what()

    probe.steps._install_gradient(Executor)
    return Executor()


def test_gradients_end_steps_where_nothing_is_fetched_and_no_optimizer_is_called(probe, rec, counted, told):
    executor = pynative(probe)
    for _ in range(3):
        executor.new_graph(int)
        assert executor.grad(int) == 0
    assert len(counted.steps) == 3  # the first shows to be over when the second begins
    assert [event["flag"] for event in told("unit")] == [probe.steps.GRADIENT]
    probe.steps.LOOP.updates_seen = True
    executor.grad(float)
    assert len(told("unit")) == 1


def test_what_was_kept_of_the_training_is_raised_where_gradients_are_taken(probe, rec, counted, has_few_own_frames):
    executor = pynative(probe)
    counted.hand_over = lambda: {}["of the training"]
    with pytest.raises(KeyError):
        executor.grad(int)
    counted.hand_over = lambda: None
    with pytest.raises(ZeroDivisionError) as raised:
        executor.grad(lambda: 1 / 0)
    assert has_few_own_frames(raised)


def test_a_profile_of_the_script_is_remembered_while_nothing_is_recorded(probe, rec):
    guard, windows = probe.profiler_guard, probe.windows.Windows()
    rec.off = True
    guard._started(object())
    rec.off = False
    windows.prepare()
    assert (rec._warned, windows.open_at) == ({"ops_left_to_user"}, probe.windows.NEVER)
    guard._stopped(object())
    assert probe.windows.USERS_PROFILES == [0]


def test_a_loop_that_is_left_is_not_run_line_by_line_any_more(probe, rec):
    windows, stopped = probe.windows.Windows(), []
    probe.lines.LINES.stop = lambda: stopped.append("lines")
    probe.cells.CELLS.stop = lambda: stopped.append("cells")
    windows.loop_left()
    assert stopped == []
    windows.folder = "open"
    probe.sections.SECTIONS.on, probe.sections.SECTIONS._thread = True, threading.get_ident()
    windows.loop_left()
    assert stopped == ["cells", "lines"]


def test_numbers_mean_something_in_every_recording_of_a_process_and_errors_met_at_its_end_are_raised(
    probe, rec, tmp_path
):
    sections = probe.sections.SECTIONS
    numbers = [probe.syncs._site_numbers, probe.around._classes, probe.around._sites, sections._numbers]
    for one in numbers:
        one["a"] = 1
    probe.inprocess._hooked.append(True)
    (tmp_path / "own").mkdir()
    probe.inprocess.begin(str(tmp_path / "own"), {"ops": "off"})
    assert numbers == [{}] * 4
    probe.windows.WINDOWS.error = ValueError("label 77")
    with pytest.raises(ValueError, match="label 77"):
        probe.inprocess.end({}, waiting=False)
    assert probe.recorder.REC.off


@pytest.fixture
def windows(probe):
    """Whose executor of PyNative says once that what was launched failed."""
    errors = [ValueError("label 77")]

    def sync():
        if errors:
            raise errors.pop()

    probe.windows.WINDOWS.executor = SimpleNamespace(sync=sync)
    return probe.windows.WINDOWS


def test_what_the_training_raised_is_raised_in_the_training_and_once(windows):
    windows.settle()
    with pytest.raises(ValueError, match="label 77"):
        windows.hand_over()
    windows.settle()
    windows.hand_over()


def test_the_optimizer_is_not_called_on_what_was_never_computed(probe, windows, rec):
    optimizer, called = optimizer_of(probe)
    windows.folder = "open"
    with pytest.raises(ValueError, match="label 77"):
        optimizer(1)
    assert called == []
    optimizer(2)
    assert called == [2]


def test_an_error_met_between_two_steps_is_raised_by_the_fetch(probe, windows, rec):
    windows.settle()
    loop = probe.steps.LOOP
    loop.pending.add(0)
    with pytest.raises(ValueError, match="label 77"):
        loop.before_fetch(tree(0))
    loop.before_fetch(tree(0))


class Context:
    def original_args(self):
        return {"cur_epoch_num": 1, "cur_step_num": 1}


@pytest.fixture
def model(probe, rec, monkeypatch):
    """A Model whose trainings and evaluations call the manager of callbacks; the marks that it leaves, but PART."""
    marks, kinds = [], probe.recorder
    monkeypatch.setattr(rec, "mark", lambda kind, *_rest: kind == kinds.PART or marks.append(kind))
    calls = ("train_begin", "train_end", "train_step_end", "eval_begin", "eval_end", "eval_step_end")
    manager = type("CallbackManager", (), {f"on_{what}": lambda _self, _context: None for what in calls})
    probe.steps.install_callbacks(SimpleNamespace(CallbackManager=manager))
    callbacks = manager()

    class Model:
        def train(self, step):
            callbacks.on_train_begin(Context())
            step(self)
            callbacks.on_train_step_end(Context())
            callbacks.on_train_end(Context())

        def eval(self, step):
            callbacks.on_eval_begin(Context())
            step(self)
            callbacks.on_eval_end(Context())

    probe.steps.install_model(SimpleNamespace(Model=Model))
    return Model(), marks


def fails(_model):
    raise KeyboardInterrupt


def test_a_loop_after_a_training_that_was_left_counts_again(probe, rec, model):
    trained, marks = model
    with pytest.raises(KeyboardInterrupt):
        trained.train(fails)
    kinds = probe.recorder
    assert (marks, probe.steps.LOOP.model) == ([kinds.TRAIN_BEGIN], 0)  # the process may end of it
    probe.steps.LOOP.before_fetch(tree(0, rows=0))
    assert marks == [kinds.TRAIN_BEGIN, kinds.TRAIN_END]


def test_a_failed_evaluation_inside_a_training_ends_before_the_next_step(probe, rec, model):
    trained, marks = model

    def step(inner):
        with pytest.raises(KeyboardInterrupt):
            inner.eval(fails)

    trained.train(step)
    kinds = probe.recorder
    assert marks == [kinds.TRAIN_BEGIN, kinds.EVAL_BEGIN, kinds.EVAL_END, kinds.TRAIN_STEP, kinds.TRAIN_END]
    assert probe.steps.LOOP.open == []


def jitted(function):
    def run(*args):
        return function(*args)

    return run


def test_units_are_told_apart_by_more_than_an_address(probe):
    identity = probe.trains.identity
    for one, same in ((jitted(fails), jitted(fails)), (None, None), (print, print)):
        assert identity(one) == identity(same)
    assert identity(jitted(fails)) != identity(jitted(jitted))
    first, second = (SimpleNamespace(create_time=time) for time in (1, 2))
    assert identity(first)[1:] != identity(second)[1:]
