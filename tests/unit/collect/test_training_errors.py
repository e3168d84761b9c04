"""Errors of the training that meet the probe: none is swallowed, and what goes on after one that was caught is counted."""

import types
from importlib import import_module

import pytest


class Broken:
    """The PyNative executor: what was launched failed, which it says once."""

    def __init__(self):
        self.error = ValueError("label 77")

    def sync(self):
        error, self.error = self.error, None
        if error is not None:
            raise error


@pytest.fixture
def broken(probe):
    probe.windows.WINDOWS.executor = Broken()
    return probe


def test_what_the_training_raised_is_raised_in_the_training_and_once(broken):
    windows = broken.windows.WINDOWS
    windows.settle()
    with pytest.raises(ValueError, match="label 77"):
        windows.hand_over()
    windows.settle()
    windows.hand_over()


def test_the_optimizer_is_not_called_on_what_was_never_computed(broken, rec):
    called = []
    optimizer = type("Optimizer", (), {"__call__": lambda _self, _gradients: called.append(1)})
    broken.steps.install_optimizer(types.SimpleNamespace(Optimizer=optimizer))
    broken.windows.WINDOWS.folder = "open"
    with pytest.raises(ValueError, match="label 77"):
        optimizer()("gradients")
    assert called == []
    optimizer()("gradients")
    assert called == [1]


def test_an_error_met_between_two_steps_is_raised_by_the_fetch(broken, rec):
    broken.windows.WINDOWS.settle()
    loop = broken.steps.LOOP
    loop.pending.add(0)
    with pytest.raises(ValueError, match="label 77"):
        loop.before_fetch(types.SimpleNamespace(rows=1, number=0))
    loop.before_fetch(types.SimpleNamespace(rows=1, number=0))


class Context:
    def original_args(self):
        return {"cur_epoch_num": 1, "cur_step_num": 1}


@pytest.fixture
def model(probe, rec, monkeypatch):
    """A Model whose trainings and evaluations call the manager of callbacks; the marks that it leaves, by kind."""
    marks = []
    monkeypatch.setattr(rec, "mark", lambda kind, *_rest: marks.append(kind))
    names = [
        f"on_{what}"
        for what in ("train_begin", "train_end", "train_step_end", "eval_begin", "eval_end", "eval_step_end")
    ]
    manager = type("CallbackManager", (), {name: lambda _self, _context: None for name in names})
    probe.steps.install_callbacks(types.SimpleNamespace(CallbackManager=manager))
    callbacks = manager()

    class Model:
        def train(self, step):
            callbacks.on_train_begin(Context())
            step(self)
            callbacks.on_train_step_end(Context())
            callbacks.on_train_end(Context())

        def eval(self, step=None):
            callbacks.on_eval_begin(Context())
            if step is not None:
                step(self)
            callbacks.on_eval_end(Context())

    probe.steps.install_model(types.SimpleNamespace(Model=Model))
    return Model(), marks


def fails(_model):
    raise KeyboardInterrupt


def test_a_loop_after_a_training_that_was_left_counts_again(probe, rec, model):
    trained, marks = model
    with pytest.raises(KeyboardInterrupt):
        trained.train(fails)
    kinds = probe.recorder
    assert marks.count(kinds.TRAIN_END) == 0  # the process may end of it
    assert probe.steps.LOOP.model == 0
    probe.steps.LOOP.before_fetch(types.SimpleNamespace(rows=0, number=0))
    assert [kind for kind in marks if kind != kinds.PART] == [kinds.TRAIN_BEGIN, kinds.TRAIN_END]


def test_a_failed_evaluation_inside_a_training_ends_before_the_next_step(probe, rec, model):
    trained, marks = model

    def step(inner):
        with pytest.raises(KeyboardInterrupt):
            inner.eval(fails)

    trained.train(step)
    kinds = probe.recorder
    expected = [kinds.TRAIN_BEGIN, kinds.EVAL_BEGIN, kinds.EVAL_END, kinds.TRAIN_STEP, kinds.TRAIN_END]
    assert [kind for kind in marks if kind != kinds.PART] == expected
    assert probe.steps.LOOP.open == []


def jitted(function):
    def run(*args):
        return function(*args)

    return run


def test_units_are_told_apart_by_more_than_an_address(probe):
    identity = probe.trains.identity
    assert identity(jitted(fails)) == identity(jitted(fails))
    assert identity(jitted(fails)) != identity(jitted(jitted))
    first, second = (types.SimpleNamespace(create_time=time) for time in (1, 2))
    assert identity(first)[1:] != identity(second)[1:]
    assert identity(None) == identity(None)
    assert identity(print) == identity(print)


def test_an_error_met_when_a_recording_ends_is_raised_there(probe, rec, tmp_path):
    inprocess = import_module(f"{probe.package.__name__}.inprocess")
    inprocess._hooked.append(True)
    (tmp_path / "own").mkdir()
    inprocess.begin(str(tmp_path / "own"), {"ops": "off"})
    probe.windows.WINDOWS.error = ValueError("label 77")
    with pytest.raises(ValueError, match="label 77"):
        inprocess.end({}, waiting=False)
    assert probe.recorder.REC.off
