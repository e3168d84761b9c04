"""The hooks of a step, those in C and those in Python: what they record, and what the training sees of them, which is nothing.

The traceback of an error that passes them is the program's own.
"""

import _thread
import copy
import functools
import gc
import inspect
import sys
import threading
import traceback
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeprof.collect.probe import around, callables, hooks, recorder, sections, steps, syncs


class Context:
    """As a RunContext: what the callbacks are told."""

    def __init__(self, epoch=2, step=7):
        self._original_args = {"cur_epoch_num": epoch, "cur_step_num": step}

    def original_args(self):
        return self._original_args


@pytest.fixture
def hooked(probe, rec):
    """Classes as MindSpore's, with hooks; `marks()`: kind, flag, subject, number of what they left since the last time."""
    rec.open()

    class Iterator:
        def __init__(self, given, **facts):
            self.rows = iter(given)
            tree = probe.trees.Tree(self, facts.pop("number", 3), facts.pop("hidden", False))
            for name, value in facts.items():
                setattr(tree, name, value)
            self._pipeprof = tree

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.rows)

    class Cell:
        create_time = 1

        def compile_and_run(self, work, *args, **kwargs):
            return work(*args, **kwargs)

        def cells_and_names(self):
            return []

    class Optimizer(Cell):
        def __call__(self, work, *args, **kwargs):
            return work(*args, **kwargs)

    class Manager:
        def __init__(self, callbacks):
            self._callbacks = probe.around.TimedCallbacks(callbacks)

        def on_train_step_end(self, context):
            for callback in self._callbacks:
                callback(context)

    class Executor:
        def compile(self, work):
            return work()

    probe.dataset._install_next(Iterator)
    probe.steps.install_cell(SimpleNamespace(Cell=Cell))
    probe.steps.install_optimizer(SimpleNamespace(Optimizer=Optimizer))
    probe.steps.install_callbacks(SimpleNamespace(CallbackManager=Manager))
    probe.steps._install_compile(Executor, None)

    def marks(read=[0]):  # noqa: B006 - how many bytes were read
        rec.flush()
        data = Path(rec.folder, "marks.bin").read_bytes()[read[0] :]
        read[0] += len(data)
        return [mark[:4] for mark in probe.marks.MARK.iter_unpack(data)]

    marks()

    def kinds():
        names = {getattr(recorder, name): name for name in ("FETCH", "TRAIN_STEP", "UPDATE", "CALL", "COMPILE", "PART")}
        return [names[mark[0]] for mark in marks()]

    classes = {one.__name__: one for one in (Iterator, Cell, Optimizer, Manager, Executor)}
    return SimpleNamespace(**classes, marks=marks, kinds=kinds)


def test_a_loop_by_hand_counts_its_steps_and_tells_them(probe, hooked):
    cell, optimizer = hooked.Cell(), hooked.Optimizer()
    for row in hooked.Iterator(range(1, 5)):
        assert cell.compile_and_run(lambda x, y: x + y, row, y=1) == row + 1
        assert optimizer(lambda: "updated") == "updated"
    assert hooked.kinds() == [*["FETCH", "CALL", "UPDATE"] * 4, "FETCH"]
    assert probe.windows.WINDOWS.done == 4
    assert (probe.steps.LOOP.calls, probe.steps.LOOP.inside) == (8, 0)


def test_each_fetch_is_a_mark_with_the_number_of_its_row(probe, hooked):
    iterator = hooked.Iterator("ab")
    assert list(iterator) == ["a", "b"]
    fetch, row, stopped = probe.recorder.FETCH, probe.recorder.ROW, probe.recorder.STOPPED
    assert hooked.marks() == [(fetch, row, 3, 0), (fetch, row, 3, 1), (fetch, stopped, 3, 2)]
    assert iterator._pipeprof.rows == 2


def test_updates_without_fetches_end_a_step_each(probe, hooked):
    first, second = hooked.Optimizer(), hooked.Optimizer()
    for _ in range(5):
        first(int)
        second(int)
    assert probe.windows.WINDOWS.done == 5


def test_the_callbacks_of_model_are_a_step_with_its_epoch(probe, hooked):
    seen = []
    manager = hooked.Manager([seen.append, seen.append])
    manager.on_train_step_end(Context())
    manager.on_train_step_end(Context(None, None))
    assert [mark[2:] for mark in hooked.marks()] == [(2, 7), (0, 0)]
    assert len(seen) == 4
    assert probe.windows.WINDOWS.done == 2


def test_a_slow_callback_is_a_part_and_a_compilation_is_recorded_when_something_was_compiled(
    probe, hooked, monkeypatch
):
    monkeypatch.setattr(probe.around, "SHORTEST_NS", -1)  # for the hooks in Python, whose clock is the test's
    limit, executor = threading.Event(), hooked.Executor()
    hooked.Manager([lambda _: limit.wait(0.002)]).on_train_step_end(Context())
    assert hooked.kinds() == ["PART", "TRAIN_STEP"]
    for compiled, kinds in ((False, []), (True, ["COMPILE"])):
        assert executor.compile(lambda compiled=compiled: ("phase", compiled)) == ("phase", compiled)
        assert hooked.kinds() == kinds


class TrainingError(BaseException):
    pass


def raises(*_):
    raise TrainingError("the training's own")


@pytest.mark.parametrize("what", ["fetch", "call", "optimizer", "step", "compile"])
def test_an_exception_of_the_training_passes_as_it_was(probe, hooked, what):
    """The same object, with no context, and with frames of the training's alone where the hook is in C."""
    next(hooked.Iterator(iter("ab"), rows=1))  # an update without a batch is looked at in Python
    hooked.marks()
    calls = {
        "fetch": lambda: next(hooked.Iterator((raises() for _ in "ab"), rows=1)),
        "call": lambda: hooked.Cell().compile_and_run(raises),
        "optimizer": lambda: hooked.Optimizer()(raises),
        "step": lambda: hooked.Manager([raises]).on_train_step_end(Context()),
        "compile": lambda: hooked.Executor().compile(raises),
    }
    with pytest.raises(TrainingError) as caught:
        calls[what]()
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert probe.hooks.COMPILED is None or files == {__file__}
    assert probe.steps.LOOP.inside == 0
    assert len(hooked.marks()) == (what != "compile")


@pytest.mark.parametrize(
    ("what", "where"),
    [("fetch", "fetch"), ("call", "call"), ("step", "callback"), ("compile", "compile"), ("no context", "callback")],
)
def test_an_error_of_the_recorders_is_a_warning_and_the_result_is_the_trainings(
    rec, hooked, said, monkeypatch, what, where
):
    iterator, cell, manager, executor = hooked.Iterator("abc"), hooked.Cell(), hooked.Manager([]), hooked.Executor()
    next(iterator)
    cell.compile_and_run(int)
    calls = {
        "fetch": lambda: next(iterator) == "b",
        "call": lambda: cell.compile_and_run(lambda: "made") == "made",
        "step": lambda: manager.on_train_step_end(Context()) is None,
        "compile": lambda: executor.compile(lambda: (1, True)) == (1, True),
        "no context": lambda: manager.on_train_step_end(object()) is None,
    }
    if what != "no context":
        monkeypatch.setattr(type(rec), "flush", lambda _rec, _wait=0: int("no number"))
        rec._flushed = -(1 << 62)  # the next mark is to be written
    assert calls[what]()
    warned = [name for name, _ in said if name.startswith("probe_failed")]
    assert warned[0] == f"probe_failed:{where}"
    assert what != "no context" or len(warned) == 1


def test_what_a_signal_handler_raises_in_the_recorder_is_the_programs(rec, hooked, monkeypatch):
    iterator = hooked.Iterator("ab")
    next(iterator)
    monkeypatch.setattr(type(rec), "flush", raises)
    rec._flushed = -(1 << 62)
    with pytest.raises(TrainingError):
        next(iterator)


def test_while_nothing_is_recorded_methods_do_what_they_did(probe, rec, hooked):
    rec.off = True
    assert list(hooked.Iterator("ab")) == ["a", "b"]
    assert hooked.Cell().compile_and_run(lambda: 1) == 1
    assert hooked.Manager([]).on_train_step_end(Context()) is None
    assert hooked.Executor().compile(lambda: (1, True)) == (1, True)
    assert hooked.marks() == []


def test_a_hook_looks_like_the_method_that_it_stands_in_for(hooked):
    names = {hooked.Iterator: "__next__", hooked.Cell: "compile_and_run", hooked.Optimizer: "__call__"}
    for owner, name in names.items():
        hook = vars(owner)[name]
        assert callable(hook)
        assert hook.__wrapped__.__name__ == name
        assert inspect.signature(hook) == inspect.signature(hook.__wrapped__)
        assert getattr(owner, name) is hook
        with pytest.raises(AttributeError):
            _ = hook.nothing_of_this_name
    bound = hooked.Cell().compile_and_run
    assert bound.__func__ is hooked.Cell.__dict__["compile_and_run"]
    assert bound(lambda: 5) == 5

    class Inner(hooked.Cell):
        def compile_and_run(self, work):
            return super().compile_and_run(work) + 1

    assert Inner().compile_and_run(lambda: 5) == 6
    assert copy.copy(hooked.Cell).compile_and_run is hooked.Cell.compile_and_run
    with pytest.raises(TypeError):
        hooked.Cell.compile_and_run()
    with pytest.raises(TypeError):
        hooked.Iterator("a").__next__(1)


def test_one_that_takes_the_address_of_another_is_another(probe, hooked):
    """A cell that is gone gives its number to no other one."""
    numbers = []
    for time in range(20):
        cell = hooked.Cell()
        cell.create_time = time
        cell.compile_and_run(int)
        numbers.append(hooked.marks()[-1][2])
    assert len(set(numbers)) == 20


def counted_objects():
    gc.collect()
    return sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else len(gc.get_objects())


def test_nothing_is_kept_alive_and_nothing_lost(hooked):
    """Of what passes through the hooks: cells, iterators, rows, arguments and results."""

    class Row:
        pass

    def train():
        cell, optimizer, manager = hooked.Cell(), hooked.Optimizer(), hooked.Manager([lambda _: None])
        rows = [Row() for _ in range(50)]
        watched = [weakref.ref(item) for item in (cell, *rows)]
        for row in hooked.Iterator(rows):
            assert cell.compile_and_run(lambda x, key: (x, key), row, key=row) == (row, row)
            optimizer(lambda x: x, row)
            manager.on_train_step_end(Context())
            hooked.Executor().compile(lambda row=row: (row, False))
        hooked.marks()
        return watched

    train()
    before, none = counted_objects(), sys.getrefcount(None)
    for _ in range(20):
        watched = train()
    after = counted_objects() - len(watched)
    assert [ref() for ref in watched] == [None] * len(watched)
    assert after - before < 400  # 20 times 50 steps
    assert abs(sys.getrefcount(None) - none) < 400


def test_threads_record_side_by_side(probe, hooked):
    """Iterators that are read in other threads, while the main one trains."""
    over, ended = threading.Barrier(4), []

    def read(iterator):
        over.wait()
        ended.append(sum(iterator))
        over.wait()

    for number in (10, 11, 12):
        iterator = hooked.Iterator(range(300), number=number, hidden=True, other_thread=probe.recorder.OTHER_THREAD)
        _thread.start_new_thread(read, (iterator,))  # the fixture's own threads do nothing
    over.wait()
    over.wait()
    assert ended == [299 * 150] * 3
    marks = hooked.marks()
    for number in (10, 11, 12):
        assert [mark[3] for mark in marks if mark[2] == number] == list(range(301))


def test_calls_inside_a_call_belong_to_it_and_another_recorder_in_the_middle_counts_on(probe, hooked, tmp_path):
    """As `pipeprof.profile` begins inside a call: the old recorder has the mark, the new loop the call's end."""
    cell, optimizer = hooked.Cell(), hooked.Optimizer()
    assert cell.compile_and_run(lambda: optimizer(lambda: cell.compile_and_run(lambda: 9))) == 9
    assert len(hooked.marks()) == 1

    def swap():
        inside = probe.steps.LOOP.inside
        probe.steps.use(probe.loop.Loop())
        probe.steps.LOOP.inside = inside
        probe.recorder.use(probe.recorder.Recorder(str(tmp_path), "{}"))

    cell.compile_and_run(swap)
    assert probe.steps.LOOP.inside == 0
    assert len(hooked.marks()) == 1
    probe.recorder.REC.off = True


HOOKS = {
    "run": steps._left_or_ended,
    "evaluation": lambda original: around._timed(original, around.EVALUATION),
    "callback": lambda original: steps._callback(lambda _self, _context: original(), recorder.EVAL_END),
    "call": lambda original: steps._timed_calls(lambda _self: original(), steps.GRAPH, None, None),
    "cell": lambda original: sections._watched(lambda _self: original()),
    "wait": lambda original: syncs._watched("asnumpy", original),
    "rows": lambda original: functools.partial(
        lambda rows: list(callables._timed_rows(SimpleNamespace(skips=lambda: True), rows)),
        lambda: (original() for _ in "a"),
    ),
}
ARGUMENTS = {"callback": (None, SimpleNamespace(original_args=dict)), "call": (None,), "cell": (None,)}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 puts the frame of a hook back")
@pytest.mark.parametrize("name", HOOKS)
def test_no_frame_of_the_probe_is_in_the_traceback_of_an_error(tmp_path, monkeypatch, name):
    rec = recorder.Recorder(str(tmp_path), {})
    rec.off = False
    monkeypatch.setattr(recorder, "REC", rec)
    monkeypatch.setattr(hooks, "COMPILED", None)
    with pytest.raises(TrainingError) as raised:
        HOOKS[name](raises)(*ARGUMENTS.get(name, ()))
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert frames[-1].name == "raises"
    assert [frame.name for frame in frames if "/probe/" in frame.filename] == []
