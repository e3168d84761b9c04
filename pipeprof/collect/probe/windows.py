"""Operator executions, in windows of steps, through the op recorder that MindSpore has, or the profiler of PyTorch.

There is one of them per process, so no window is taken once the script uses a profiler itself. A window opens and
closes between two steps, after everything launched before has finished, so that every execution lies in its step.

Waiting for what was launched can raise an error of the training's own, which MindSpore then forgets. It is kept, and
raised in the training (`hand_over`): nothing here may swallow it.
"""

import os

from . import cells, files, hooks, lines, operands, recorder, sections

AUTO_SHARE = 0.01  # of the training time may go into recording
QUIET_TIMES = 19  # after a window, this many times its length without one: most steps stay as they are
COST_PER_EXECUTION_NS = 6_000
MAX_EXECUTIONS = 20_000  # of one window
MAX_TOTAL = 250_000  # of all windows: the recorder keeps about 90 bytes of each for ever
FIRST_STEPS = 3
MOST_FIRST = 120_000  # executions of the first window of PyTorch, which has fewer steps where these have more
MOST_SHAPED = 10_000  # executions of its steps: of more the shapes are not recorded
ALL_STEPS, ALL_SHARE = 100, 4  # of each window of `--ops all`: so many, or that part of all steps before, if it is more
EXECUTION_BYTES = (("cpu_op_execute_timestamp", 33), ("torch-", 400))  # by how the file's name begins
NEVER = 1 << 62
LEFT_TO_USER = "the script uses %s itself: op windows were left to it"
USERS_PROFILES = [0]  # of the script's own that go on


class Schedule:
    """skip_first, wait, warmup, active, repeat as in torch.profiler.schedule; `repeat` 0 means for ever."""

    def __init__(self, skip_first=0, wait=0, warmup=0, active=1, repeat=0):
        self.skip_first, self.wait, self.warmup, self.active, self.repeat = skip_first, wait, warmup, active, repeat

    def next_window(self, done):
        """First step (from 0) at or after `done` at which a window opens, or NEVER."""
        cycle = self.wait + self.warmup + self.active
        number = max(0, -(-(done - self.skip_first - self.wait) // cycle))
        if self.repeat and number >= self.repeat:
            return NEVER
        return self.skip_first + number * cycle + self.wait


class Windows(hooks.Windows):
    """Opens and closes windows; driven by `step_done` at the end of every training step."""

    def __init__(self):
        self.executor = None
        self.stepping = hooks.COUNTED
        self.error = None  # of the training, met while we waited for it
        self.profiler = None
        self.is_forbidden = False
        self.schedule = None
        self.auto = False
        self.all = False
        self.done = 0
        self.open_at = NEVER
        self.close_at = NEVER
        self.not_before = 0
        self.gap = 0
        self.began = 0
        self.count = 0
        self.folder = None
        self.ticks = []
        self.total = 0
        self.per_step = 0
        self.active = FIRST_STEPS
        self.memory = False
        self.warmup = 0  # first steps of the open window, whose executions are not kept
        self.counting = False  # the open window is a warm-up alone, after which it is known how many a step has
        self.watched = False  # cells were, in one step of the open window
        self.is_late = False  # the step that begins has launched most of its operators

    def prepare(self, find=None, begun=0):
        """Choose the schedule from the options; find the op recorder, that of MindSpore unless another one is given.

        `begun`: steps that have begun, which no window has.
        """
        rec = recorder.REC
        mode = rec.options.get("ops", "window")
        if mode == "off" or self.is_forbidden:
            return
        if find is None and "start" in os.environ.get("MS_PROFILER_OPTIONS", ""):
            self.forbid("MS_PROFILER_OPTIONS is set: op windows were left to the script's own profiler")
            return
        if USERS_PROFILES[0]:
            self.forbid(LEFT_TO_USER % "a profiler")
            return
        try:
            self.profiler = (find or _of_mindspore)()
            for name in ("init", "step_profiling_enable", "enable_op_time", "stop"):
                getattr(self.profiler, name)
        except Exception:
            which = "MindSpore" if find is None else "PyTorch"
            rec.warn("ops_off", "this %s has no op recorder that pipeprof knows: no operator times" % which)
            self.profiler = None
            return
        self.memory = bool(rec.options.get("memory", True)) and hasattr(self.profiler, "enable_profile_memory")
        schedule = rec.options.get("schedule")
        if schedule:
            self.schedule = Schedule(**schedule)
        elif mode == "all":
            self.schedule, self.all = Schedule(active=ALL_STEPS), True
        else:
            self.auto = True
        first = 1 if self.auto else self.schedule.next_window(self.done)
        self.open_at = max(first, self.done + begun)
        if self.open_at == 0:
            self._guarded(self._open)

    def forbid(self, why):
        """The script uses the profiler itself: close ours now and take no more."""
        if self.folder is not None:
            self._close()
        self.is_forbidden = True
        self.profiler, self.open_at, self.close_at = None, NEVER, NEVER
        recorder.REC.warn("ops_left_to_user", why)

    def replace_step_done(self, call):
        """Have something else called in the place of `step_done`, which it is to call."""
        self.step_done, self.stepping = call, hooks.IN_PYTHON

    def step_done(self):
        """One more training step is over; cheap unless a window opens, is open, or closes."""
        self.done += 1
        done = self.done
        if done < self.open_at and self.folder is None:
            return
        if not recorder.REC.off and self.profiler is not None:
            self._guarded(self._advance, done)

    def _guarded(self, call, *args):
        """No window is taken any more once something of ours has failed."""
        try:
            call(*args)
        except Exception:
            self.profiler, self.folder = None, None
            sections.SECTIONS.on = False
            recorder.REC.failed("window")
            self._unwatch()

    def _unwatch(self):
        """What slows down every line or call of the training must not stay on."""
        try:
            cells.CELLS.stop()
            lines.LINES.stop()
        except Exception:
            recorder.REC.failed("watch")

    def loop_left(self):
        """An iterator is given up: what follows may be no training, and is not to run line by line."""
        if self.folder is not None and sections.SECTIONS.mine:
            self._unwatch()

    def _advance(self, done):
        if self.folder is not None:
            self.settle()
            if self.auto and self.warmup == 1 and lines.LINES.is_late:
                self.warmup, self.close_at = 2, self.close_at + 1
            if len(self.ticks) < self.warmup and lines.LINES.is_late:
                lines.LINES.begin_again()
            else:
                lines.LINES.stop()
            operands.OPERANDS.step_done()
            cells.CELLS.stop()
            self.ticks.append(recorder.now())
            if done >= self.close_at:
                self._close()
            else:
                self._watch()
        if self.folder is None and done >= self.open_at and recorder.now() >= self.not_before:
            self._open()

    def pause(self):
        """Training is over for now (evaluation or the end may follow): close what is open."""
        if self.folder is not None and not recorder.REC.off:
            try:
                self.settle()
                self._close()
            except Exception:
                recorder.REC.failed("window")

    exit = pause

    def _open(self):
        rec = recorder.REC
        rec.open()
        files.look()
        if files.are_limited() or files.few():
            rec.warn("ops_off", "no operator times: the size of files is limited, or few descriptors are left")
            self.profiler = None
            return
        self.settle()
        self.count += 1
        folder = os.path.join(rec.folder, "window-%d" % self.count)
        files.mkdir(folder)
        by_line = self._wants_lines() and lines.LINES.possible(getattr(self.profiler, "may_run_by_line", None))
        warmup = self.warmup = int(by_line) if self.auto else self.schedule.warmup
        active = self.active if self.auto else self.schedule.active
        if hasattr(self.profiler, "shapes"):
            self.counting = by_line and self.auto
            active = 0 if self.counting else active
            self.profiler.shapes = not self.counting and self.per_step <= MOST_SHAPED
        self.close_at = self.done + warmup + active
        self.began = recorder.now()
        self.profiler.init(folder)
        self.profiler.step_profiling_enable(True)
        self.profiler.enable_op_time()
        if self.memory:
            self.profiler.enable_profile_memory()
        self.folder = folder
        # MindSpore goes on recording memory for ever once it was asked to, so the reader is told what is wanted.
        rec.event(
            "window_open",
            number=self.count,
            warmup=warmup,
            memory=self.memory,
            begin=self.began,
            began=recorder.now(),
        )
        sections.SECTIONS.open(self.settle)
        self.ticks, self.watched = [recorder.now()], False
        if by_line:
            lines.LINES.start(self.settle, self.is_late)
        self._watch()

    def _wants_lines(self):
        """Whether the step that begins is to run line by line: never before the first, where the set-up would."""
        return self.done > 0 and (self.auto or self.schedule.warmup > 0) and self.count == 1

    def _wants_cells(self):
        """Whether the step that begins counts, and is not the first of the training."""
        return self.done > 0 and len(self.ticks) - 1 >= self.warmup

    def _wants_operands(self):
        """Whether calls of operators may be watched: what is compiled in the first step is left alone."""
        return self.done > 0

    def _watch(self):
        """A step of the window begins: what is watched in one step alone may be watched in this one."""
        try:
            if not self.watched and self._wants_cells():
                cells.CELLS.start(self.settle)
                self.watched = cells.CELLS.on
            if self._wants_operands():
                operands.OPERANDS.start()
        except Exception:
            recorder.REC.failed("watch")

    def _close(self):
        begin = recorder.now()
        folder, self.folder = self.folder, None
        sections.SECTIONS.close()
        lines.LINES.stop()
        operands.OPERANDS.stop()
        cells.CELLS.stop()
        self.profiler.stop()
        end = recorder.now()
        executions = _executions(folder)
        steps = max(1, len(self.ticks) - 1)
        self.per_step = max(1, executions // steps)
        self.total += executions
        recorder.REC.event(
            "window",
            number=self.count,
            ticks=self.ticks,
            begin=self.began,
            closing=begin,
            end=end,
            executions=executions,
            warmup=self.warmup,
            **recorder.clock(),
        )
        self._plan(executions, end - begin)

    def _plan(self, executions, stop_ns):
        if self.all:  # MindSpore writes what it ever took of memory into each window, so few of them must be long
            self.schedule = Schedule(skip_first=self.done, active=max(ALL_STEPS, self.done // ALL_SHARE))
        if not self.auto:
            self.open_at = self.schedule.next_window(self.done)
            return
        if self.counting:
            self.counting = False
            self.active = max(1, min(FIRST_STEPS, MOST_FIRST // self.per_step))
            self.open_at, self.not_before = self.done, 0
            return
        cost = executions * COST_PER_EXECUTION_NS + stop_ns * 2
        length = self.ticks[-1] - self.ticks[0]
        self.gap = max(int(cost / AUTO_SHARE), QUIET_TIMES * length, min(self.gap * 2, 60_000_000_000))
        self.not_before = recorder.now() + self.gap
        self.active = max(1, min(10, MAX_EXECUTIONS // self.per_step))
        self.open_at = NEVER if self.total + self.per_step > MAX_TOTAL else self.done + 1

    def settle(self):
        """Inside a window: wait for what the step launched, so that it lies in the step."""
        if self.executor is None or self.error is not None:
            return
        try:
            self.executor.sync()
        except Exception as error:
            self.error = error

    def hand_over(self):
        """Raise what the training raised while we waited for it, where the training is."""
        error, self.error = self.error, None
        if error is not None:
            raise error


def _of_mindspore():
    import mindspore._c_expression as expression

    target = "CPU"
    return expression.Profiler.get_instance(target)


def _executions(folder):
    """About how many executions a window has, from the size of its files, without reading them."""
    count = 0
    for name in files.listdir(folder):
        for begin, size in EXECUTION_BYTES:
            if name.startswith(begin):
                count += os.path.getsize(os.path.join(folder, name)) // size
    return count


def use(used):
    """These are told of steps from now on."""
    global WINDOWS
    WINDOWS = hooks.LANE.windows = used


WINDOWS = None
use(Windows())
