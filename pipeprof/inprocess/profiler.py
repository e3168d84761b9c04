"""`pipeprof.profile`: the recorder as a context manager, a decorator, or by hand with `start`, `step` and `stop`.

From the settings of a profile to what is recorded, and where.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pipeprof.collect import LONGEST_MS
from pipeprof.collect.session import default_name
from pipeprof.errors import UsageError
from pipeprof.inprocess import place
from pipeprof.inprocess.actions import ProfilerAction, ProfilerActivity, Schedule, action_of, chosen
from pipeprof.inprocess.decorate import around
from pipeprof.inprocess.formats import MEMORY
from pipeprof.inprocess.place import check_cycles
from pipeprof.inprocess.recording import Plan, Recording, ends_well, message_of, probe, reason_of, say
from pipeprof.inprocess.results import Results

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


HERE = {
    "path": "it is `out` here",
    "output_path": "it is `out` here",
    "format": "it is `formats` here: formats=[...]",
    "profile_device": "what a device did comes from the vendor's profiler: `pipeprof import` reads its files",
    "is_detail": "nothing is left out here: `pipeprof ops RUN --group-by name` shows single operators",
    "is_show_op_path": "names are whole here: `pipeprof ops RUN --group-by name`",
    "subgraph": "everything is recorded here: `pipeprof ops RUN --group-by phase` tells forward and backward apart",
    "optypes_to_deal": "everything is recorded here: `pipeprof ops RUN --type TYPE` chooses",
    "optypes_not_deal": "everything is recorded here: `pipeprof ops RUN --exclude-type TYPE` leaves out",
    "execution_trace_observer": "`pipeprof timeline RUN -o trace.json.gz` writes all events",
}


def refuse(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError for the first of these settings, with the name that it has here or the nearest one."""
    for name in given:
        near = get_close_matches(name, list(known), 1)
        hint = HERE.get(name) or (f"did you mean {near[0]}?" if near else "help(pipeprof.profile) lists the settings")
        raise UsageError(f"profile has no setting {name}", hint)


F = TypeVar("F", bound="Callable[..., Any]")
NONE, WARMUP, SAVE = ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE
NESTED = "a profile() inside another one, or under `pipeprof collect`, writes no run of its own: it is a span there"


class profile(Results):  # noqa: N801 - the name that users of other profilers know
    """Records MindSpore or PyTorch code of its block into a run; with a schedule, the active steps of a cycle into one.

    out             where the run goes; a folder for runs `cycle-0`, `cycle-1`, ... with a schedule. A new name in the
                    working directory when not given. A second use of the same object adds `-2`, `-3`, ...
    activities      what is recorded: any of `ops`, `pipeline`, `host`; `cpu` (the default) is all of them
    record_shapes   also the input shapes that MindSpore's recorder leaves out, from the calls of the first step
    profile_memory  also the framework's memory pool, its blocks, and what each operator allocated and kept
    sample_rate     the pool's level once in so many operators, as MegEngine's profiler; not 0: switches profile_memory
                    on. With 0 it is read whenever it changes
    with_stack      spans keep the Python stack they were opened in, operators the lines that launched them: in
                    PyNative the first step runs line by line for that, which is slow
    with_flops      `key_averages()` has the operations of each row, counted from shapes; switches record_shapes on
    schedule        from `pipeprof.schedule`, or any function of the step's number to a ProfilerAction
    on_trace_ready  called with this object after each cycle (without a schedule: once, after the block), when its run
                    can be opened: `run`, `path`, `key_averages()`, `export_chrome_trace()` are about that cycle
    formats         files that are written beside each run (`RUN.FORMAT`) before on_trace_ready: `chrome_timeline.json`
                    (also with `.gz`), `memory_flow.svg` (switches profile_memory on), `report.html`, `.md` or `.json`
    queue_interval_ms   time between two samples of the dataset's queues
    force           replace existing runs
    add             add a repetition, this execution of the program, to an existing run
    use_cuda        as activity `CUDA`; with experimental_config and with_modules (calls of modules are always recorded)
                    accepted so that programs for torch.profiler run

    Raises UsageError for invalid settings, also on entering the block (such as a run that already exists). What goes
    wrong in recording never reaches the training.
    """

    def __init__(
        self,
        *wrong: object,
        out: str | os.PathLike[str] | None = None,
        activities: Iterable[Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        sample_rate: int = 0,
        with_stack: bool = False,
        with_flops: bool = False,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        formats: str | Iterable[str] = (),
        queue_interval_ms: int = 100,
        force: bool = False,
        add: bool = False,
        use_cuda: bool = False,
        with_modules: object = None,
        experimental_config: object = None,
        **unknown: object,
    ) -> None:
        super().__init__(formats, flops=with_flops)
        del with_modules, experimental_config
        refuse(unknown, signature(profile).parameters)
        if wrong:
            hint = "as a decorator, with brackets: @pipeprof.profile()"
            raise UsageError(f"profile takes settings by name, found a {type(wrong[0]).__name__}", hint)
        if on_trace_ready is not None and not callable(on_trace_ready):
            raise UsageError("on_trace_ready is not a function", "it is called with the profile after each cycle")
        if force and add:
            raise UsageError("force replaces a run, add adds to it: both cannot be", "leave one of them out")
        self.step_num = 0
        memory = profile_memory or MEMORY in self._formats or bool(sample_rate)
        self._plan = plan_of(
            activities, schedule, memory=memory, queue_interval_ms=queue_interval_ms,
            shapes=record_shapes or with_flops, stacks=with_stack, device=use_cuda, sample_rate=sample_rate,
        )  # fmt: skip
        self._stacks = with_stack
        self._schedule = schedule or always
        self._scheduled = schedule is not None
        self._out = None if out is None else Path(out)
        self._ready = on_trace_ready
        self._force = force
        self._further = add
        self._lock = threading.RLock()
        self._started: int | None = None  # process that started it
        self._nested = False
        self._uses = 0
        self._cycles = 0
        self._action = NONE
        self._current: Recording | None = None
        self._boundary = 0
        self._wake = 0
        self._block = 0
        self._runs_before = 0  # runs there were when the block began
        self._begun = self._gave_up = False

    # -- the life of a block

    def start(self) -> None:
        """Begin the block. Raises UsageError when it has begun already, or the run's folder cannot be made."""
        with self._lock:
            if self._started == os.getpid():
                raise UsageError("this profile is already running", "make another one: profile(...)")
            self._nested = not place.claim(self)
            self._started, self.step_num = os.getpid(), 0
            self._block = self._boundary = time.monotonic_ns()
            if self._nested:
                place.tell_once("profile_nested", NESTED)
                return
            try:
                self._uses += 1
                self._folder = folder_of(self._out, self._uses, scheduled=self._scheduled)
                self._runs_before, self._begun, self._gave_up = len(self._recordings), False, False
                if self._scheduled and self._uses == 1:
                    check_cycles(self._folder, force=self._force, add=self._further)
                place.want_stacks(wanted=self._stacks)
                probe.wait(self._plan.probe)
                self._action = action_of(self._schedule, 0)
                self._move(NONE)
                self._begun = True
            except BaseException:
                self._leave()
                raise
            self._boundary = time.monotonic_ns()
            self._rest()

    def step(self, *, epoch: int | None = None) -> None:
        """A step is over, the next one begins. Raises UsageError outside the block."""
        if self.step_num + 1 < self._wake:  # waiting, and the next step waits, too
            self.step_num += 1
            return
        with self._lock:
            if self._started != os.getpid():
                if self._started is not None:
                    return  # a forked child, in which nothing is recorded
                raise UsageError("step() outside the profile's block", "call start(), or use `with profile() as p:`")
            number, self.step_num = self.step_num, self.step_num + 1
            if self._nested:
                at = time.monotonic_ns()
                place.span(f"ProfilerStep#{number}", self._boundary, at, "step")
                self._boundary = at
                return
            at = self._step_over(number, epoch) if self._current is not None else 0
            before, self._action = self._action, NONE if self._gave_up else action_of(self._schedule, self.step_num)
            moved = self._move(before)
            self._boundary = at if at and not moved else time.monotonic_ns()
            self._rest()

    def stop(self, error: BaseException | None = None) -> None:
        """End the block: what is recorded becomes a run. `error`: what ended it early, if anything did."""
        with self._lock:
            if self._started != os.getpid():
                return
            if self._nested:
                self._started = None
                place.span("profile", self._block, time.monotonic_ns(), "profile")
                return
            try:
                self._last(None if ends_well(error) else error)
            finally:
                self._leave()
                self._convert()
            if self._scheduled and len(self._recordings) == self._runs_before and not self._gave_up:
                say(f"nothing was recorded: {self._why_nothing()}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(error)

    def __call__(self, function: F) -> F:
        """Decorate a function: every call is a block, and makes a run; `function.profile` is this object.

        The block of a generator or coroutine lasts from its first step to its end. A call from within itself, or from
        another thread meanwhile, belongs to the block that is there.
        """
        profiled = around(function, self._block_of_call)
        profiled.profile = self  # type: ignore[attr-defined]
        return profiled

    def _block_of_call(self) -> ExitStack:
        """A block that has begun, or the one that is there."""
        block = ExitStack()
        with self._lock:
            if self._started != os.getpid():
                self.start()
                block.push(self.__exit__)
        return block

    def arm(self) -> None:
        """Set the hooks before `start`, so that iterators made in between are known."""
        if place.collector() is None and place.active() is None:
            probe.wait(self._plan.probe)

    def abandon(self) -> None:
        """The program ends inside the block: what was recorded stays, and becomes a run when it is next opened."""
        if self._current is not None:
            self._current.end(waiting=False, reason="the program ended inside the profiled block")

    def begin_step(self) -> None:
        """The step under way begins now: what lies between it and the last one belongs to none."""
        self._boundary = time.monotonic_ns()

    # -- from step to step

    def _step_over(self, number: int, epoch: int | None) -> int:
        warm = self._action is WARMUP
        began = self._boundary
        at: int = probe.step(number, probe.WARMUP if warm else probe.RECORDED, began, epoch)
        probe.span(f"ProfilerStep#{number}", began, at, "main", "step")
        if self._current is not None and not warm:
            self._current.steps += 1
        return at

    def _rest(self) -> None:
        """While nothing is recorded, `step` only counts up to the step in which something will be."""
        self._wake = 0
        if self._current is None and isinstance(self._schedule, Schedule):
            self._wake = self._schedule.wakes(self.step_num)

    def _move(self, before: ProfilerAction) -> bool:
        """From one step's action to the next one's; returns whether a recording began or ended."""
        moved = False
        if self._current is not None and (before is SAVE or self._action is NONE):
            self._save()
            moved = True
        if self._action is NONE:
            return moved
        if self._current is None:
            self._begin()
            return True
        if before is WARMUP and self._action is not WARMUP:
            self._current.warmed_up(self.step_num)
        return moved

    def _begin(self) -> None:
        about = {"first_step": self.step_num}
        path = self._folder
        if self._scheduled:
            about["cycle"] = self._cycles
            path = self._folder / f"cycle-{self._cycles}"
        self._cycles += 1
        try:
            self._current = Recording(
                path, self._plan, about, force=self._force, add=self._further, warming=self._action is WARMUP
            )
        except Exception as error:  # what goes wrong in recording never reaches the training
            if not self._begun:
                raise
            self._gave_up, self._action = True, NONE
            say(f"cannot record cycle {self._cycles - 1}: {message_of(error)}; the program goes on, unrecorded")

    def _save(self, *, status: int = 0, reason: str | None = None) -> None:
        """The recording under way is whole: hand it over."""
        recording, self._current = self._current, None
        if recording is None:
            return
        over = isinstance(self._schedule, Schedule) and self._schedule.over(self.step_num)
        try:
            recording.end(waiting=not over, status=status, reason=reason)
        finally:
            self._add(recording)
        if self._ready is not None and self._finished(recording):
            self._ready(self)

    def _last(self, error: BaseException | None) -> None:
        """End what is under way with the block."""
        current = self._current
        if current is None:
            return
        if error is not None:
            self._save(status=1, reason=reason_of(error))
        elif self._scheduled and not current.steps:
            self._current = None
            current.discard()
        else:
            self._save(reason=self._missing(current) if self._scheduled else None)

    def _missing(self, current: Recording) -> str:
        wanted = f" of {self._schedule.active}" if isinstance(self._schedule, Schedule) else ""
        return f"the block ended after {current.steps}{wanted} active steps of a cycle"

    def _leave(self) -> None:
        self._started, self._action, self._wake = None, NONE, 0
        if self._current is not None:  # something above failed
            self._current.end(waiting=False, status=1, reason="the profile itself failed")
            self._current = None
        probe.wait(self._plan.probe, waiting=False)
        place.release(self)

    def _left_to_another(self) -> bool:
        return self._nested

    def _why_nothing(self) -> str:
        if self._nested:
            return "this profile is inside another one, or under `pipeprof collect`, and writes no run of its own"
        if self._started == os.getpid():
            return "the block is not over: ask behind it, or in on_trace_ready"
        if not self._uses:
            return super()._why_nothing()
        plan = self._schedule
        first = f", the first active step is {plan.wakes(0) + plan.warmup}" if isinstance(plan, Schedule) else ""
        missing = "; call step() after every step" if not self.step_num else ""
        return f"the block ended in step {self.step_num}{first}{missing}"


def always(_step: int) -> ProfilerAction:
    """The plan without a schedule: record everything."""
    return ProfilerAction.RECORD


def plan_of(
    activities: Iterable[Any] | None,
    schedule: Callable[[int], ProfilerAction] | None,
    *,
    memory: bool,
    queue_interval_ms: int,
    shapes: bool,
    stacks: bool,
    device: bool = False,
    sample_rate: int = 0,
) -> Plan:
    """What is recorded. Raises UsageError for activities, intervals and rates that cannot be."""
    parts, notes = chosen((activities or "cpu") if device else activities)
    notes += chosen(["CUDA"])[1] if device else []
    if type(queue_interval_ms) is not int or not 1 <= queue_interval_ms <= LONGEST_MS:
        raise UsageError(f"queue_interval_ms is {queue_interval_ms!r}, expected 1 to {LONGEST_MS}")
    if type(sample_rate) is not int or sample_rate < 0:
        raise UsageError(f"sample_rate is {sample_rate!r}, expected a number of operators", "0: every change")
    if schedule is not None and not callable(schedule):
        raise UsageError("schedule is not a function", "use pipeprof.schedule(wait=..., warmup=..., active=...)")
    ops, pipeline = ProfilerActivity.OPS in parts, ProfilerActivity.PIPELINE in parts
    mode = "off" if not ops else "all" if schedule is None else "hand"
    probe = {
        "ops": mode,
        "memory": memory,
        "service": pipeline,
        "stacks": stacks,
        "graph_lines": stacks,
        "shapes": shapes or memory,  # blocks of memory are told apart by what operators write
        "queue_interval_ms": queue_interval_ms if pipeline else 0,
    }
    manifest = {
        "ops": "all" if ops else "off",
        "memory": memory,
        "service": pipeline,
        "queue_interval": queue_interval_ms if pipeline else 0,
        "schedule": _schedule_facts(schedule),
        "activities": sorted(part.value for part in parts),
        "sample_rate": sample_rate,
        "record_shapes": shapes,
        "with_stack": stacks,
    }
    return Plan(probe, manifest, ProfilerActivity.HOST in parts, notes)


def folder_of(out: Path | None, uses: int, *, scheduled: bool) -> Path:
    """Where the runs of the `uses`-th block go: each process of a distributed job has a folder of its own."""
    rank = os.environ.get("RANK_ID", "")
    several = os.environ.get("RANK_SIZE", "1") not in ("", "1")
    ending = f"-rank{rank}" if several and rank else ""
    if out is None:
        return default_name("pipeprof-profiles-" if scheduled else "pipeprof-profile-", ending).absolute()
    path = out.absolute()  # `.` alone has no name
    path = path.with_name(path.name + ending) if path.name else path
    if uses > 1 and not scheduled:
        path = path.with_name(f"{path.name}-{uses}")
    return path


def _schedule_facts(schedule: Callable[[int], ProfilerAction] | None) -> Any:
    if schedule is None:
        return None
    if isinstance(schedule, Schedule):
        return {name: getattr(schedule, name) for name in ("skip_first", "wait", "warmup", "active", "repeat")}
    return getattr(schedule, "__qualname__", type(schedule).__name__)
