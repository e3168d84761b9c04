"""The probe in a process that profiles itself: recorders come and go, the hooks stay.

`begin` starts a recorder, `step` tells it of a step that the program names, `end` closes its files. In between, and
before the first and after the last, a recorder that is off stands in, so that each hook is one look at an attribute.
"""

import sys

from . import (
    around,
    dataset,
    forks,
    graphs,
    hooks,
    imports,
    loop,
    operands,
    recorder,
    sections,
    steps,
    syncs,
    torch_ops,
    windows,
)

RECORDED, WARMUP = 0, 1  # flags of STEP
ENDLESS = 1 << 60
BY_HAND = "hand"  # option `ops`: one window, from the recorder's begin to its end

_hooked = []  # type: list[bool]


class Own(recorder.Recorder):
    """A recorder of a part of this process's life."""

    def __init__(self, root, options):
        super().__init__(root, "{}")
        self._take_options(options)
        self.adopts = True

    def _about(self):
        return dict(super()._about(), inprocess=True)


class Idle(recorder.Recorder):
    """Records nothing. `waiting`: iterators that are made now will be recorded later."""

    def __init__(self, options, waiting):
        super().__init__("", "{}")
        self._options = dict(options, ops="off")
        self.off = True
        self.waiting = waiting

    def line(self, name, **fields):
        """Drop it."""

    def forked(self):
        """In a forked child: nothing is waited for. `pid` stays the parent's, which alone may stop its iterators."""
        self.waiting = False

    def mark(self, kind, flag, subject, number, begin, end):
        """Drop it."""


class OwnWindows(windows.Windows):
    """Windows that the program's own steps cut, once it names one; they stay open until the recording ends."""

    def __init__(self, executor):
        super().__init__()
        self.executor = executor
        self.named = False
        self.warming = False  # the program says when its warm-up is over

    def prepare(self, find=None, begun=0):
        """As in a recorded command; with `hand`, one window."""
        options = recorder.REC.options
        self.warming = bool(options.get("warming"))
        operands.OPERANDS.done = False  # each recording has its own calls
        if options.get("ops") == BY_HAND:
            options["schedule"] = {"active": ENDLESS, "repeat": 1}
        super().prepare(find, begun)

    def step_done(self):
        """A step as the hooks see it: counts only while the program names none."""
        if not self.named:
            super().step_done()

    def step_named(self):
        """A step is over, says the program."""
        self.named, self.stepping = True, hooks.IGNORED
        super().step_done()

    def warm(self):
        """What was executed up to now was warm-up."""
        self.warming = False
        if self.folder is not None:
            self.warmup = len(self.ticks) - 1
            self._watch()

    def _wants_lines(self):
        return bool(recorder.REC.options.get("stacks"))

    def _wants_cells(self):
        return not self.warming

    def _wants_operands(self):
        return self.done > 0 or bool(recorder.REC.options.get("shapes"))

    def pause(self):
        """Training pauses, the recording goes on."""

    def close(self):
        """The recording ends."""
        super().pause()

    exit = close


def wait(options, waiting=True):
    """Record nothing, for now (`waiting`) or until the next `begin`. Sets the hooks the first time."""
    recorder.use(Idle(options, waiting))
    if _hooked:
        return
    _hooked.append(True)
    forks.install()
    imports.install()
    imports.install_loaded()
    recorder.at_fork(after_in_child=_forked)


def _forked():
    recorder.REC.forked()


def begin(root, options):
    """Record into `root`, a folder that exists, from now on."""
    if not _hooked:
        wait(options)
    rec = Own(root, dict(options))
    inside = steps.LOOP.inside  # calls that are under way
    steps.use(loop.Loop())
    steps.LOOP.inside = inside
    for told in (syncs._site_numbers, around._classes, around._sites, sections.SECTIONS._numbers):
        told.clear()  # what numbers mean is told once in each recording
    graphs._count[0] = 0
    windows.use(OwnWindows(windows.WINDOWS.executor))
    recorder.use(rec)
    rec.open()
    if "torch" in sys.modules:
        rec.event("import", library="torch", version=getattr(sys.modules["torch"], "__version__", ""))
        steps._told.discard("torch")
    if "mindspore" in sys.modules:
        _tell_of_mindspore(rec)
        dataset.retell()
        windows.WINDOWS.prepare()
    elif "torch" in sys.modules:
        recorder.guarded("window", torch_ops.prepare_own)


def _tell_of_mindspore(rec):
    module = sys.modules["mindspore"]
    version = getattr(module, "__version__", "")
    rec.event("import", library="mindspore", version=version)
    steps._told.discard("mindspore")
    if hasattr(module, "get_context"):
        steps.tell_context()


def step(number, flag, begin_ns, epoch=None):
    """The program's step `number` is over; it began at `begin_ns`. Returns when it ended, in the same clock."""
    rec = recorder.REC
    if rec.off:
        return recorder.now()
    windows.WINDOWS.step_named()
    at = recorder.now()
    rec.mark(recorder.STEP, flag, 0 if epoch is None else epoch + 1, number & 0xFFFFFFFF, begin_ns, at)
    return at


def warm():
    """The steps so far were warm-up, and what they executed is not kept."""
    windows.WINDOWS.warm()


def span(name, begin_ns, end_ns, track, category="user", stack=()):
    """Record an interval that the program names; nothing while nothing is recorded."""
    rec = recorder.REC
    if not rec.off:
        rec.line("span", label=name, begin=begin_ns, end=end_ns, track=track, category=category, stack=list(stack))


def end(options, waiting):
    """Close what is recorded: windows, queue samples, files."""
    rec = recorder.REC
    windows.WINDOWS.close()
    if dataset.SERVICE is not None and dataset.SERVICE.on:
        dataset.SERVICE.switch_off()
    if dataset.TREES is not None:
        try:
            dataset.TREES.keep()
        except Exception:
            rec.failed("tree")
    rec.end()
    error, windows.WINDOWS.error = windows.WINDOWS.error, None
    wait(options, waiting)
    if error is not None:  # of the training, met when its last window was closed
        raise error


def warn(code, text):
    """Record a warning, once per code."""
    recorder.REC.warn(code, text)
