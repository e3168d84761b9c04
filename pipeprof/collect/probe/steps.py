"""Where steps end: callbacks of Model, optimizer updates, graph calls. All of them are recorded; the reader chooses.

While the training runs, `LOOP` counts the steps only to open and close op windows at the right places.
"""

import atexit
import functools
import sys
import types

from . import around, graphs, numpy_two, recorder, sections, windows

OPTIMIZER, GRAPH, JIT, GRADIENT = 0, 1, 2, 3  # flags of UPDATE and CALL; GRADIENT: a PyNative forward begins
SEARCH_LIMIT = 400
ENDS = {recorder.TRAIN_BEGIN: recorder.TRAIN_END, recorder.EVAL_BEGIN: recorder.EVAL_END}
GRADIENT_MODULES = ("mindspore.ops.composite", "mindspore.ops.function.grad", "mindspore.common._grad_function")
SUPPORTED = ((2, 7), (2, 10))

_import_began = [0]
_units = {}  # type: dict[object, object]
_optimizers = []  # type: list[object]


class Loop:
    """Counts finished training steps as they happen, with the rules that the reader applies afterwards."""

    def __init__(self):
        self.model = 0
        self.inside = 0  # nested calls belong to the outermost one
        self.calls = 0  # outermost calls that have begun
        self.updates_seen = False
        self.pending = set()
        self.fetched = False
        self.feeding = set()  # iterators whose batches led to updates
        self.since = set()  # those that were asked for a batch since the last step ended
        self.last = None  # the unit that was updated last
        self.closing = None  # the unit that ends a step when no fetch separates steps
        self.open = []  # how the trainings and evaluations of Model that go on will end
        self.left = []  # how those end that an exception has left: told once the process goes on

    def before_fetch(self, tree):
        """The loop asks for a batch: whatever was updated since the last one was a step."""
        if self.model:
            return
        if self.left:
            self.end_left()
        if self.pending or (self.fetched and not self.updates_seen and tree.rows):
            self._boundary()
            windows.WINDOWS.hand_over()
        elif tree.number in self.since and self.feeding and tree.number not in self.feeding:
            windows.WINDOWS.pause()  # a second batch that leads to no update: this is no training
            windows.WINDOWS.hand_over()
        self.since.add(tree.number)
        self.fetched = True

    def before_update(self, unit):
        """An optimizer, or a graph that holds one, is called: again without a fetch in between means a new step."""
        if self.model:
            return
        self.updates_seen = True
        self.feeding |= self.since
        if unit in self.pending:
            self.closing = self.last
            self._boundary()
        self.pending.add(unit)

    def after_update(self, unit):
        """It has returned. Without fetches the step is over with the update that ended the one before."""
        if self.model:
            return
        self.last = unit
        if not self.fetched and unit == self.closing:
            self._boundary()

    def abandon(self, depth):
        """An exception leaves Model: MindSpore tells no end of what was open beyond `depth`."""
        self.left += reversed(self.open[depth:])
        del self.open[depth:]
        self.model = self.open.count(recorder.TRAIN_END)

    def end_left(self):
        """The exception was caught, and something else goes on."""
        left, self.left = self.left, []
        for kind in left:
            now = recorder.now()
            recorder.REC.mark(kind, 0, 0, 0, now, now)
        windows.WINDOWS.pause()

    def _boundary(self):
        self.pending.clear()
        self.since.clear()
        self.fetched = False
        windows.WINDOWS.step_done()


LOOP = Loop()


def package_import_began():
    """The import of mindspore starts now."""
    if not _import_began[0]:
        _import_began[0] = recorder.now()


def install_package(module):
    """Mindspore has been imported."""
    rec = recorder.REC
    version = getattr(module, "__version__", "")
    _units["import"] = {"begin": _import_began[0], "end": recorder.now(), "version": version}
    windows.WINDOWS.prepare()
    atexit.register(windows.WINDOWS.exit)
    _slow_down(rec)
    _set_threads(rec, module)
    parts = version.split(".")
    number = tuple(int(part) for part in parts[:2] if part.isdigit())
    if len(number) == 2 and not SUPPORTED[0] <= number <= SUPPORTED[1]:
        rec.warn(
            "version", "MindSpore %s is outside the supported range 2.7 to 2.10: some tables may be missing" % version
        )
    if len(number) == 2:
        numpy_two.watch(number, version)
    _when_opened(rec)


def _set_threads(rec, module):
    try:
        if rec.options.get("override"):
            from . import override

            override.set_threads(module)
    except Exception:
        rec.failed("threads")


def _slow_down(rec):
    try:
        if rec.options.get("slow_down"):
            from . import slow

            slow.install()
    except Exception:
        rec.failed("slow_down")


def _when_opened(rec):
    """Report the import once this process turns out to train (its folder exists only then)."""
    original = rec.open

    def open_and_tell():
        if rec.folder is None and not rec.off:
            original()
            if rec.folder is not None:
                rec.event("import", **_units["import"])

    rec.open = open_and_tell
    if rec.folder is not None:
        rec.event("import", **_units["import"])


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
        except BaseException:
            LOOP.abandon(depth)
            raise

    return run


def _callback(original, kind):
    def called(self, run_context):
        rec = recorder.REC
        if rec.off:
            return original(self, run_context)
        if kind == recorder.TRAIN_BEGIN:
            around.time_callbacks(self)
        begin = recorder.now()
        try:
            result = original(self, run_context)
        finally:
            end = recorder.now()
            try:
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
    return called


def _tell_plan(rec, args):
    """How many batches this `Model.train` is to have; nothing where MindSpore does not know."""
    epochs, batches = args.get("epoch_num"), args.get("batch_num")
    if isinstance(epochs, int) and isinstance(batches, int) and epochs > 0 and batches > 0:
        rec.event("plan", epochs=epochs, batches=batches)


def tell_context():
    """Record, once, what the training runs on: device, mode, NumPy."""
    if "context" in _units:
        return
    _units["context"] = True
    facts = {}
    try:
        import mindspore

        facts = {name: str(mindspore.get_context(name)) for name in ("device_target", "mode")}
        numpy = sys.modules.get("numpy")
        facts["numpy"] = getattr(numpy, "__version__", None)
    except Exception:
        recorder.REC.failed("context")
    recorder.REC.event("context", **facts)


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
    _optimizers.append(base)
    original = base.__call__

    def __call__(self, *args, **kwargs):
        return _timed(original, self, args, kwargs, (OPTIMIZER, *identity(self)), OPTIMIZER, _always)

    __call__.__wrapped__ = original
    base.__call__ = __call__


def install_cell(module):
    """Hook graph-mode calls of cells (PyNative calls do not come through here, but in op windows: see sections)."""
    cell = module.Cell
    sections.SECTIONS.install_cell(cell)
    original = cell.compile_and_run

    def compile_and_run(self, *args, **kwargs):
        return _timed(original, self, args, kwargs, (GRAPH, *identity(self)), GRAPH, cell_updates)

    compile_and_run.__wrapped__ = original
    cell.compile_and_run = compile_and_run


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
                rec.open()
                begin = recorder.now()
                rec.mark(recorder.CALL, GRADIENT, 0, 0, begin, begin)
            except Exception:
                rec.failed("gradient")
        return original(self, *args, **kwargs)

    new_graph.__wrapped__ = original
    pynative.new_graph = new_graph


def _install_jit(jit):
    original = jit.__call__

    def __call__(self, *args, **kwargs):
        key = (JIT, *identity(getattr(self, "fn", None)), *identity(self.obj))
        return _timed(original, self, args, kwargs, key, JIT, jit_updates)

    __call__.__wrapped__ = original
    jit.__call__ = __call__


def _install_compile(executor, cache):
    original = executor.compile

    def compiled(self, *args, **kwargs):
        rec = recorder.REC
        if rec.off:
            return original(self, *args, **kwargs)
        cached_before = len(cache) if cache is not None else 0
        begin = recorder.now()
        with graphs.Lines():
            result = original(self, *args, **kwargs)
        fresh = len(cache) > cached_before if cache is not None else isinstance(result, tuple) and result[-1] is True
        if fresh:
            try:
                rec.open()
                end = recorder.now()
                rec.mark(recorder.COMPILE, 0, 0, 0, begin, end)
                around.tell_compiled(self, args, begin, end)
            except Exception:
                rec.failed("compile")
            try:
                graphs.keep(self, result)
                graphs.tell_modules(self, args)
            except Exception:
                rec.failed("graph")
        return result

    compiled.__wrapped__ = original
    executor.compile = compiled


def identity(thing):
    """What tells a cell or a function from others: also from one that takes its address later, or shares its code.

    Of a function its code and that of the functions in its closure; of a cell when it was made, as MindSpore does.
    """
    function = getattr(thing, "__func__", thing)
    code = getattr(function, "__code__", None)
    if code is None:
        return id(thing), getattr(thing, "create_time", None)
    inner = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            inner.append(getattr(cell.cell_contents, "__code__", None))
        except ValueError:  # empty yet
            inner.append(None)
    return code, *inner


def _timed(original, self, args, kwargs, key, flag, decide):
    rec = recorder.REC
    if rec.off or LOOP.inside:
        return original(self, *args, **kwargs)
    try:
        number, updates = _units.get(key) or _unit(key, self, decide)
        if rec.folder is None:
            rec.open()
        if LOOP.left:
            LOOP.end_left()
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
    begin = recorder.now()
    done = False
    try:
        result = original(self, *args, **kwargs)
        done = True
        return result
    finally:
        LOOP.inside -= 1
        sections.SECTIONS.update = False
        if updates and windows.WINDOWS.folder is not None and (flag == OPTIMIZER or not LOOP.model):
            windows.WINDOWS.settle()
        if done:  # a call that raised leaves its step unfinished
            rec.mark(recorder.UPDATE if updates else recorder.CALL, flag, number, 0, begin, recorder.now())
        else:
            rec.mark(recorder.CALL, GRADIENT, 0, 0, begin, begin)
        if updated:
            LOOP.after_update(number)


def _unit(key, owner, decide):
    unit = _units.get(key)
    if unit is None:
        if len(_units) == 1:
            tell_context()
        unit = _units[key] = (len(_units), bool(decide(owner)))
        recorder.REC.event("unit", number=unit[0], flag=key[0], updates=unit[1], owner=type(owner).__name__)
    return unit


def _always(_owner):
    return True


def cell_updates(cell):
    """Whether a cell holds an optimizer, so that calling it in graph mode trains."""
    optimizers = tuple(_optimizers)
    return any(isinstance(child, optimizers) for _, child in cell.cells_and_names())


def jit_updates(executor):
    """Whether a jit function can train: its code names an optimizer or a gradient function, directly or through calls.

    Of the objects that it names, only the attributes that the code names are followed.
    """
    todo = [(executor.fn, ())]
    owner = getattr(executor, "obj", None)
    if owner is not None:
        todo.append((owner, _names(getattr(executor.fn, "__code__", None))))
    seen = set()
    while todo and len(seen) < SEARCH_LIMIT:
        item, names = todo.pop()
        if (id(item), names) in seen:
            continue
        seen.add((id(item), names))
        parts = _attributes(item, names)
        if _trains(item, itself=not parts):
            return True
        todo.extend(_referred(item))
        todo.extend((part, names) for part in parts)
    return False


def _trains(item, itself):
    """`itself`: the item itself is used, not only some of its attributes."""
    if isinstance(item, tuple(_optimizers)):
        return True
    module = str(getattr(item, "__module__", ""))
    if isinstance(item, types.FunctionType):
        return module.startswith(GRADIENT_MODULES) and "grad" in (item.__name__ + item.__qualname__).lower()
    kind = type(item)
    if (kind.__module__ or "").startswith(GRADIENT_MODULES):
        return "Grad" in kind.__name__
    return itself and hasattr(item, "cells_and_names") and cell_updates(item)


def _referred(item):
    """What a function's code can reach, with the names that the code uses."""
    if isinstance(item, types.MethodType):
        return [(item.__func__, ()), (item.__self__, _names(getattr(item.__func__, "__code__", None)))]
    if not isinstance(item, types.FunctionType):
        return []
    reached = []
    if isinstance(getattr(item, "__wrapped__", None), types.FunctionType):
        reached.append(item.__wrapped__)
    names = _names(item.__code__)
    for cell in item.__closure__ or ():
        try:
            reached.append(cell.cell_contents)
        except ValueError:  # still empty
            continue
    if not str(item.__globals__.get("__name__", "")).startswith("mindspore."):
        reached += [item.__globals__[name] for name in names if name in item.__globals__]
    return [(value, names) for value in reached if callable(value) or hasattr(value, "__dict__")]


def _names(code):
    if code is None:
        return ()
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.extend(_names(constant))
    return tuple(sorted(set(names)))


def _attributes(item, names):
    """The attributes of an object that are among the names: its values, and the methods of its class."""
    module = type(item).__module__ or ""
    if isinstance(item, (type, types.ModuleType, types.FunctionType, types.MethodType)):
        return []
    if module.startswith(("mindspore.", "numpy", "builtins")):
        return []
    attributes = []
    children = getattr(item, "_cells", None) or {}
    for name in names:
        if name in vars(item):
            attributes.append(vars(item)[name])
        elif name in children:
            attributes.append(children[name])
        else:
            method = getattr(type(item), name, None)
            if isinstance(method, types.FunctionType) and not str(method.__module__).startswith("mindspore."):
                attributes.append(types.MethodType(method, item))
    return [value for value in attributes if callable(value) or hasattr(value, "__dict__")]
