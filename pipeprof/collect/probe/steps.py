"""Where steps end: callbacks of Model, optimizer updates, graph calls. All of them are recorded; the reader chooses.

While the training runs, `LOOP` counts the steps only to open and close op windows at the right places; whether a call
trains, its code says (`trains`).
"""

import functools
import sys

from . import around, cures, graphs, hooks, loop, recorder, sections, torch_ops, trains, windows

OPTIMIZER, GRAPH, JIT, GRADIENT = 0, 1, 2, 3  # flags of UPDATE and CALL; GRADIENT: a PyNative forward begins
ENDS = {recorder.TRAIN_BEGIN: recorder.TRAIN_END, recorder.EVAL_BEGIN: recorder.EVAL_END}
SUPPORTED = ((2, 7), (2, 10))

_imports = {}  # type: dict[str, dict[str, object]]  # by library: when its import began and ended, and its version
_told = set()  # type: set[str]  # libraries whose context is in the record
_units = {}  # type: dict[object, tuple[int, bool]]


def use(used):
    """Steps are counted here from now on."""
    global LOOP
    LOOP = hooks.LANE.loop = used


LOOP = None
use(loop.Loop())


def package_import_began(library="mindspore"):
    """The import of a library starts now."""
    _imports.setdefault(library, {"library": library, "begin": recorder.now()})
    if library == "mindspore":
        cures.watch()


def package_imported(library, version):
    """It has been imported."""
    if not any("end" in facts for facts in _imports.values()):
        _change_steps(recorder.REC)
    _imports.setdefault(library, {"library": library, "begin": 0}).update(end=recorder.now(), version=version)
    _when_opened(recorder.REC, library)


def install_package(module):
    """Mindspore has been imported."""
    rec = recorder.REC
    version = getattr(module, "__version__", "")
    package_imported("mindspore", version)
    windows.WINDOWS.prepare()
    recorder.at_exit(windows.WINDOWS.exit)
    _set_threads(rec, module)
    parts = version.split(".")
    number = tuple(int(part) for part in parts[:2] if part.isdigit())
    if len(number) == 2 and not SUPPORTED[0] <= number <= SUPPORTED[1]:
        rec.warn(
            "version", "MindSpore %s is outside the supported range 2.7 to 2.10: some tables may be missing" % version
        )
    cures.watch()


def _set_threads(rec, module):
    try:
        if rec.options.get("override"):
            from . import override

            override.set_threads(module)
    except Exception:
        rec.failed("threads")


def _change_steps(rec):
    try:
        if rec.options.get("slow_down"):
            from . import slow

            slow.install()
    except Exception:
        rec.failed("slow_down")
    try:
        if rec.options.get("stop_after"):
            from . import stop

            stop.install()
    except Exception:
        rec.failed("stop_after")


def _when_opened(rec, library):
    """Report an import once this process turns out to train (its folder exists only then)."""
    original = rec.open

    def open_and_tell():
        if rec.folder is None and not rec.off:
            original()
            if rec.folder is not None:
                rec.event("import", **_imports[library])

    rec.open = open_and_tell
    if rec.folder is not None:
        rec.event("import", **_imports[library])


def install_callbacks(module):
    """Hook the manager that calls every callback of Model.train, fit and eval."""
    manager = module.CallbackManager
    rec = recorder
    for name, kind in (
        ("on_train_begin", rec.TRAIN_BEGIN),
        ("on_train_end", rec.TRAIN_END),
        ("on_train_epoch_begin", rec.EPOCH_BEGIN),
        ("on_train_epoch_end", rec.EPOCH_END),
        ("on_train_step_end", rec.TRAIN_STEP),
        ("on_eval_begin", rec.EVAL_BEGIN),
        ("on_eval_end", rec.EVAL_END),
        ("on_eval_step_end", rec.EVAL_STEP),
    ):
        if hasattr(manager, name):
            setattr(manager, name, _callback(getattr(manager, name), kind))


def install_model(module):
    """Hook what runs a training or an evaluation of Model, which may be left by an exception."""
    around.install_model(module)
    for name in ("train", "fit", "eval", "_eval_in_fit"):
        original = getattr(module.Model, name, None)
        if original is not None:
            setattr(module.Model, name, _left_or_ended(original))


def _left_or_ended(original):
    @functools.wraps(original)
    def run(*args, **kwargs):
        depth = len(LOOP.open)
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            LOOP.abandon(depth)
            recorder.unseen(error)
            raise

    return run


def _callback(original, kind):
    def called(self, run_context):
        rec = recorder.REC
        if rec.off:
            return original(self, run_context)
        if kind == recorder.TRAIN_BEGIN:
            around.time_callbacks(self)
        begin = _now()
        try:
            result = original(self, run_context)
        except BaseException as error:
            recorder.unseen(error)
            raise
        finally:
            try:
                end = recorder.now()
                if rec.folder is None:
                    rec.open()
                if LOOP.left:
                    LOOP.end_left()
                args = run_context.original_args()  # a dict; its attributes raise KeyError when they are not set yet
                epoch, step = int(args.get("cur_epoch_num") or 0), int(args.get("cur_step_num") or 0)
                rec.mark(kind, 0, epoch, step, begin, end)
                if kind == recorder.TRAIN_BEGIN:
                    _tell_plan(rec, args)
                if kind == recorder.TRAIN_STEP:
                    windows.WINDOWS.step_done()
                else:
                    _model_event(kind)
            except Exception:
                rec.failed("callback")
        windows.WINDOWS.hand_over()
        return result

    called.__wrapped__ = original
    return hooks.make(hooks.STEP, original, called) if kind == recorder.TRAIN_STEP else called


def _tell_plan(rec, args):
    """How many batches this `Model.train` is to have; nothing where MindSpore does not know."""
    epochs, batches = args.get("epoch_num"), args.get("batch_num")
    if isinstance(epochs, int) and isinstance(batches, int) and epochs > 0 and batches > 0:
        rec.event("plan", epochs=epochs, batches=batches)


def tell_context():
    """Record, once, what a training with MindSpore runs on: device, mode, NumPy."""
    if "mindspore" in _told or "mindspore" not in sys.modules:
        return
    _told.add("mindspore")
    facts = {}
    try:
        import mindspore

        facts = {name: str(mindspore.get_context(name)) for name in ("device_target", "mode")}
        numpy = sys.modules.get("numpy")
        facts["numpy"] = getattr(numpy, "__version__", None)
    except Exception:
        recorder.REC.failed("context")
    recorder.REC.event("context", **facts)


def tell_torch_context(device):
    """The same of a training with PyTorch, by the type of its device."""
    if "torch" not in _told:
        _told.add("torch")
        numpy = sys.modules.get("numpy")
        target = None if device is None else device.upper()
        mode = "eager" if torch_ops.is_eager() else "compiled"
        recorder.REC.event("context", device_target=target, mode=mode, numpy=getattr(numpy, "__version__", None))


def _model_event(kind):
    if kind in ENDS:
        LOOP.open.append(ENDS[kind])
    elif kind in LOOP.open:
        del LOOP.open[LOOP.open.index(kind) :]
    if kind == recorder.TRAIN_BEGIN:
        tell_context()
        LOOP.model += 1
    elif kind == recorder.TRAIN_END:
        LOOP.model = max(0, LOOP.model - 1)
        windows.WINDOWS.pause()
    elif kind == recorder.EVAL_BEGIN:
        windows.WINDOWS.pause()


def install_optimizer(module):
    """Hook calls of optimizers: in PyNative mode that is the update."""
    base = module.Optimizer
    trains.OPTIMIZERS.append(base)
    original = base.__call__

    base.__call__ = _timed_calls(original, OPTIMIZER, trains.identity, _always)


def install_cell(module):
    """Hook graph-mode calls of cells (PyNative calls do not come through here, but in op windows: see sections)."""
    cell = module.Cell
    sections.SECTIONS.install_cell(cell)
    cell.compile_and_run = _timed_calls(cell.compile_and_run, GRAPH, trains.identity, trains.cell_updates)


def install_executors(module):
    """Hook jit calls and compilation, wherever this version keeps them."""
    windows.WINDOWS.executor = getattr(module, "_pynative_executor", windows.WINDOWS.executor)
    pynative = getattr(module, "_PyNativeExecutor", None)
    if pynative is not None and pynative.__module__ == module.__name__ and hasattr(pynative, "new_graph"):
        _install_gradient(pynative)
        sections.install_gradients(pynative)
    jit = getattr(module, "_JitExecutor", None)
    if jit is not None and jit.__module__ == module.__name__:
        _install_jit(jit)
        _install_compile(jit, getattr(module, "ms_compile_cache", None))
    graph = getattr(module, "_CellGraphExecutor", None)
    if graph is not None and graph.__module__ == module.__name__:
        _install_compile(graph, None)


def _install_gradient(pynative):
    """Where a PyNative forward begins: the only sign of it when a loop fetches nothing."""
    original = pynative.new_graph

    def new_graph(self, *args, **kwargs):
        rec = recorder.REC
        if not rec.off and not LOOP.model and not LOOP.inside:
            try:
                LOOP.called(False)
                rec.open()
                begin = recorder.now()
                rec.mark(recorder.CALL, GRADIENT, 0, 0, begin, begin)
            except Exception:
                rec.failed("gradient")
        return original(self, *args, **kwargs)

    new_graph.__wrapped__ = original
    pynative.new_graph = new_graph
    if hasattr(pynative, "grad"):
        pynative.grad = _with_gradients(pynative.grad)


def _with_gradients(original):
    """The backward pass: all that tells of a training that updates by hand and fetches nothing."""

    def take(number, *args, **kwargs):
        windows.WINDOWS.hand_over()
        begin = _now()
        result = original(*args, **kwargs)
        recorder.guarded("gradient", _taken, number, begin)
        windows.WINDOWS.hand_over()
        return result

    def grad(self, *args, **kwargs):
        number = recorder.guarded("gradient", _gradients_of, args)
        try:
            return original(self, *args, **kwargs) if number is None else take(number, self, *args, **kwargs)
        except BaseException as error:
            recorder.unseen(error)
            raise

    grad.__wrapped__ = original
    return grad


def _gradients_of(args):
    """The number of whose gradients are taken; None where something else tells of the training."""
    if recorder.REC.off or LOOP.model or LOOP.inside or LOOP.fetched or LOOP.updates_seen or not args:
        return None
    number, _ = _unit_of(args[0], GRADIENT, trains.identity, _always)
    LOOP.before_gradients(number)
    return number


def _taken(number, begin):
    recorder.REC.mark(recorder.GRADIENTS, 0, number, 0, begin, recorder.now())
    LOOP.after_update(number)


def _install_jit(jit):
    jit.__call__ = _timed_calls(jit.__call__, JIT, _of_function_and_owner, trains.jit_updates)


def _of_function_and_owner(executor):
    return (*trains.identity(getattr(executor, "fn", None)), *trains.identity(executor.obj))


def _timed_calls(original, flag, identity, decide):
    """In place of a method that calls something: `identity` tells what, and `decide` whether that trains."""

    def call(self, *args, **kwargs):
        try:
            return _timed(original, self, args, kwargs, flag, identity, decide)
        except BaseException as error:
            recorder.unseen(error)
            raise

    def unit_of(owner):
        return _unit_of(owner, flag, identity, decide)

    return hooks.make(hooks.CALL, original, call, flag=flag, extra=unit_of)


def _install_compile(executor, cache):
    original = executor.compile

    def compiled(self, *args, **kwargs):
        rec = recorder.REC
        if rec.off:
            return original(self, *args, **kwargs)
        cached_before = len(cache) if cache is not None else 0
        begin = _now()
        with graphs.Lines():
            result = original(self, *args, **kwargs)
        if len(cache) > cached_before if cache is not None else isinstance(result, tuple) and result[-1] is True:
            _is_compiled((self, *args), result, begin)
        return result

    executor.compile = hooks.make(hooks.COMPILE, original, compiled, extra=_is_compiled, cache=cache)


def _is_compiled(arguments, result, begin):
    """Record what a call of `compile` has compiled. Arguments: the executor, and what it was called with."""
    rec = recorder.REC
    executor, *args = arguments
    try:
        rec.open()
        end = recorder.now()
        rec.mark(recorder.COMPILE, 0, 0, 0, begin, end)
        around.tell_compiled(executor, args, begin, end)
    except Exception:
        rec.failed("compile")
    try:
        graphs.keep(executor, result)
        graphs.tell_modules(executor, args)
    except Exception:
        rec.failed("graph")


def _timed(original, self, args, kwargs, flag, identity, decide):  # noqa: C901, PLR0912 - one more call would cost time
    rec = recorder.REC
    if rec.off or LOOP.inside:
        return original(self, *args, **kwargs)
    try:
        number, updates = _unit_of(self, flag, identity, decide)
        if rec.folder is None:
            rec.open()
        if LOOP.left:
            LOOP.end_left()
        LOOP.called(updates)
        updated = updates and not LOOP.model  # otherwise the callbacks of Model tell the steps
        if updated:
            LOOP.before_update(number)
    except Exception:
        rec.failed("call")
        return original(self, *args, **kwargs)
    if flag == OPTIMIZER and windows.WINDOWS.folder is not None:
        windows.WINDOWS.settle()  # so that what led to the gradients lies before the update
    windows.WINDOWS.hand_over()
    LOOP.inside += 1
    LOOP.calls += 1
    sections.SECTIONS.update = flag == OPTIMIZER
    begin = 0
    done = False
    try:
        begin = recorder.now()
    except Exception:
        rec.failed("clock")
    try:
        result = original(self, *args, **kwargs)
        done = True
        return result
    finally:
        LOOP.inside -= 1
        sections.SECTIONS.update = False
        try:
            if updates and windows.WINDOWS.folder is not None and (flag == OPTIMIZER or not LOOP.model):
                windows.WINDOWS.settle()
            if done:  # a call that raised leaves its step unfinished
                rec.mark(recorder.UPDATE if updates else recorder.CALL, flag, number, 0, begin, recorder.now())
            else:
                rec.mark(recorder.CALL, GRADIENT, 0, 0, begin, begin)
            if updated:
                LOOP.after_update(number)
        except Exception:
            rec.failed("call")


def _now():
    try:
        return recorder.now()
    except Exception:
        recorder.REC.failed("clock")
        return 0


def _unit_of(owner, flag, identity, decide):
    """The number of what is called, and whether that trains."""
    key = (flag, *identity(owner))
    unit = _units.get(key)
    if unit is None:
        tell_context()
        unit = _units[key] = (len(_units) + 1, bool(decide(owner)))
        recorder.REC.event("unit", number=unit[0], flag=key[0], updates=unit[1], owner=type(owner).__name__)
    return unit


def _always(_owner):
    return True
