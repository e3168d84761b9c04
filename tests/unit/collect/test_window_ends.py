"""What ends a window early: an evaluation, a validation loop, a loop that is left, and a profile of the script's own."""

import _thread
import threading
import types
from importlib import import_module

import pytest


class Counted:
    """In place of the windows: how often they were told to pause, and whether one is open."""

    def __init__(self):
        self.paused, self.folder = 0, "open"

    def pause(self):
        self.paused += 1

    def step_done(self):
        pass

    def hand_over(self):
        pass


@pytest.fixture
def counted(probe):
    probe.windows.use(Counted())
    return probe.windows.WINDOWS


def tree(number):
    return types.SimpleNamespace(number=number, rows=1)


def step(loop, *trees, unit=0):
    for one in trees:
        loop.before_fetch(one)
    loop.before_update(unit)
    loop.after_update(unit)


def test_a_validation_loop_ends_the_window(probe, counted):
    loop = probe.loop.Loop()
    for _ in range(3):
        step(loop, tree(0))
    loop.before_fetch(tree(1))
    assert counted.paused == 0  # a batch of another data set may lead to an update
    loop.before_fetch(tree(1))
    assert counted.paused == 1


def in_a_thread(call, *args):
    """The ident of a thread that has made a call; the threads of the fixtures do nothing."""
    idents, over = [], threading.Event()

    def run():
        call(*args)
        idents.append(threading.get_ident())
        over.set()

    _thread.start_new_thread(run, ())
    assert over.wait(10)
    return idents[0]


def test_a_thread_that_fetches_ahead_ends_no_step_and_is_told_of(probe, rec, counted, monkeypatch):
    loop, steps, warned = probe.loop.Loop(), [], []
    counted.step_done = lambda: steps.append(threading.get_ident())
    monkeypatch.setattr(rec, "warn", lambda code, _text: warned.append(code))
    for _ in range(3):
        in_a_thread(loop.before_fetch, tree(0))
        step(loop)
    assert steps == [threading.get_ident()] * 3
    assert set(warned) == {"fetched_ahead"}


def test_the_thread_that_updates_is_the_one_that_trains(probe, rec):
    optimizer = type("Optimizer", (), {"__call__": lambda _self, _gradients: None})
    probe.steps.install_optimizer(types.SimpleNamespace(Optimizer=optimizer))
    assert probe.steps.LOOP.thread == threading.get_ident()
    trains = in_a_thread(optimizer(), "gradients")
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
    steps, executor = [], pynative(probe)
    counted.step_done = lambda: steps.append("step")
    for _ in range(3):
        executor.new_graph(int)
        assert executor.grad(int) == 0
    assert len(steps) == 3  # the first shows to be over when the second begins
    assert [event["flag"] for event in told("unit")] == [probe.steps.GRADIENT]
    probe.steps.LOOP.updates_seen = True
    executor.grad(float)
    assert len(told("unit")) == 1


def test_what_was_kept_of_the_training_is_raised_where_gradients_are_taken(probe, rec, counted, own_frames):
    def fail():
        raise KeyError("of the training")

    executor = pynative(probe)
    counted.hand_over = fail
    with pytest.raises(KeyError):
        executor.grad(int)
    counted.hand_over = lambda: None
    with pytest.raises(ZeroDivisionError) as raised:
        executor.grad(lambda: 1 / 0)
    seen, most = own_frames(raised)
    assert seen <= most


@pytest.mark.parametrize("trees", [(0, 1), (0, 0, 0), (0, 1, 1)], ids=["two data sets", "accumulation", "both"])
def test_batches_that_lead_to_updates_end_none(probe, counted, trees):
    loop = probe.loop.Loop()
    for _ in range(4):
        step(loop, *map(tree, trees))
    assert counted.paused == 0


def test_an_evaluation_of_model_ends_the_window(probe, rec, counted):
    probe.steps._model_event(probe.recorder.EVAL_BEGIN)
    assert counted.paused == 1


def test_a_profile_of_the_script_is_remembered_while_nothing_is_recorded(probe, rec):
    guard = probe.profiler_guard
    windows, warnings = probe.windows.Windows(), []
    rec.warn = lambda code, _text: warnings.append(code)
    rec.off = True
    guard._started(object())
    rec.off = False
    windows.prepare()
    assert (warnings, windows.open_at) == (["ops_left_to_user"], probe.windows.NEVER)
    guard._stopped(object())
    assert probe.windows.USERS_PROFILES == [0]


def test_a_loop_that_is_left_is_not_run_line_by_line_any_more(probe, rec):
    windows, stopped = probe.windows.Windows(), []
    probe.lines.LINES.stop = lambda: stopped.append("lines")
    probe.cells.CELLS.stop = lambda: stopped.append("cells")
    windows.loop_left()
    assert stopped == []
    windows.folder = "open"
    probe.sections.SECTIONS.on, probe.sections.SECTIONS._thread = True, import_module("_thread").get_ident()
    windows.loop_left()
    assert stopped == ["cells", "lines"]


def test_numbers_mean_something_in_every_recording_of_a_process(probe, rec, tmp_path):
    inprocess, syncs, around = (
        import_module(f"{probe.package.__name__}.{name}") for name in ("inprocess", "syncs", "around")
    )
    inprocess._hooked.append(True)
    syncs._site_numbers["a"], around._classes[int], around._sites["c"] = 1, 0, 1
    probe.sections.SECTIONS._numbers["b"] = 1
    (tmp_path / "own").mkdir()
    inprocess.begin(str(tmp_path / "own"), {"ops": "off"})
    assert (syncs._site_numbers, around._classes, around._sites, probe.sections.SECTIONS._numbers) == ({}, {}, {}, {})
    inprocess.end({}, waiting=False)
