"""When op windows open and close: as torch.profiler.schedule, and never twice at once."""

import json
import sys
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeprof.collect.session import parse_schedule
from pipeprof.errors import UsageError

OFTEN = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
spans = st.integers(0, 4)
schedules = st.fixed_dictionaries(
    {"skip_first": spans, "wait": spans, "warmup": spans, "active": st.integers(1, 4), "repeat": st.integers(0, 3)}
)


def action(step, *, skip_first, wait, warmup, active, repeat):
    """What torch.profiler.schedule does in a step: None, "warmup" or "record"."""
    step -= skip_first
    cycle = wait + warmup + active
    if step < 0 or (repeat > 0 and step // cycle >= repeat):
        return None
    position = step % cycle
    if position < wait:
        return None
    return "warmup" if position < wait + warmup else "record"


@OFTEN
@given(schedule=schedules, done=st.integers(0, 40))
def test_the_next_window_is_where_torch_would_begin_one(probe, schedule, done):
    def opens(step):
        first = (step - schedule["skip_first"]) % (schedule["wait"] + schedule["warmup"] + schedule["active"])
        return action(step, **schedule) is not None and first == schedule["wait"]

    expected = next((step for step in range(done, done + 80) if opens(step)), probe.windows.NEVER)
    assert probe.windows.Schedule(**schedule).next_window(done) == expected


class Profiler:
    """MindSpore's op recorder: only one may run."""

    def __init__(self):
        self.folder, self.stopped = None, 0

    def init(self, folder):
        assert self.folder is None, "a window was opened inside another one"
        self.folder = folder

    def step_profiling_enable(self, on):
        assert on

    def enable_op_time(self):
        pass

    def stop(self):
        assert self.folder is not None
        Path(self.folder, "cpu_op_execute_timestamp_0.txt").write_bytes(b"x" * 33 * 7)
        self.folder, self.stopped = None, self.stopped + 1


def windows_of(probe, schedule=None):
    """With this schedule, or automatic ones."""
    made = probe.windows.Windows()
    made.executor, made.profiler = SimpleNamespace(sync=lambda: None), Profiler()
    if schedule is None:
        made.auto, made.open_at = True, 1
        return made
    made.schedule = probe.windows.Schedule(**schedule)
    made.open_at = made.schedule.next_window(0)
    if made.open_at == 0:
        made._open()
    return made


def stepped(windows, count, before=lambda: None):
    """Whether each of so many steps was recorded."""
    recorded = []
    for _ in range(count):
        recorded.append(windows.profiler is not None and windows.profiler.folder is not None)
        before()
        windows.step_done()
    return recorded


@OFTEN
@given(schedule=schedules)
def test_windows_hold_exactly_the_steps_that_torch_would_record(probe, rec, tmp_path_factory, schedule, told):
    rec.__init__(str(tmp_path_factory.mktemp("spool")), "{}")
    made = windows_of(probe, schedule)
    assert stepped(made, 30) == [action(step, **schedule) is not None for step in range(30)]
    made.exit()
    assert told("warning") == []


def test_a_window_says_when_each_of_its_steps_ended_and_how_much_it_recorded(probe, rec, told):
    stepped(windows_of(probe, {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}), 6)
    (opened,), (closed,) = told("window_open"), told("window")
    assert (opened["warmup"], len(closed["ticks"]), closed["executions"]) == (1, 4, 7)
    times = [closed["begin"], *closed["ticks"], closed["end"]]
    assert times == sorted(times)


def test_all_steps_are_recorded_in_windows_that_become_longer(probe, rec, told):
    """MindSpore writes all that it ever took of memory into each window: equal ones would grow with the square of time."""
    made = windows_of(probe, {"active": probe.windows.ALL_STEPS})
    made.all = True
    stepped(made, 10_000)
    made.exit()
    steps = [len(event["ticks"]) - 1 for event in told("window")]
    assert (sum(steps), steps[0]) == (10_000, probe.windows.ALL_STEPS)
    assert len(steps) < 25


def test_the_scripts_own_profiler_ends_our_window_and_gets_no_other(probe, rec):
    made = windows_of(probe, {"active": 5})
    profiler = made.profiler
    stepped(made, 1)
    made.forbid("the script uses it")
    assert profiler.stopped == 1
    stepped(made, 20)
    assert (profiler.folder, rec._warned) == (None, {"ops_left_to_user"})


def test_a_recorder_that_fails_ends_the_windows_and_not_the_training(probe, rec):
    made = windows_of(probe, {"wait": 1, "active": 1})
    made.profiler.init = lambda _folder: 1 / 0
    stepped(made, 5)
    assert (made.profiler, rec._warned) == (None, {"probe_failed:window"})


def test_a_recorder_that_fails_at_once_fails_nothing_else(probe, rec, mindspore, monkeypatch):
    """What else is set up when MindSpore is imported follows."""
    profiler = SimpleNamespace(init=lambda _folder: 1 / 0, stop=int, step_profiling_enable=int, enable_op_time=int)
    native = SimpleNamespace(Profiler=SimpleNamespace(get_instance=lambda _target: profiler))
    mindspore._c_expression = native
    monkeypatch.setitem(sys.modules, "mindspore._c_expression", native)
    rec._options_text = json.dumps({"ops": "all", "memory": False})
    made = probe.windows.Windows()
    made.prepare()
    assert (made.profiler, rec._warned) == (None, {"probe_failed:window"})


def test_automatic_windows_grow_rarer_and_stay_below_their_share(probe, rec):
    recorded = stepped(windows_of(probe), 20_000, before=probe.recorder.now)
    assert recorded[:2] == [False, True]
    assert sum(recorded) < 0.05 * len(recorded)
    openings = [n for n, (one, other) in enumerate(pairwise(recorded)) if other and not one]
    gaps = [later - earlier for earlier, later in pairwise(openings)]
    assert gaps == sorted(gaps)


@pytest.mark.parametrize("step_ms", [1, 100, 1_000])
def test_automatic_windows_leave_most_steps_alone_however_long_a_step_is(probe, rec, monkeypatch, step_ms):
    clock = count(1_000_000, step_ms * 1_000_000)
    at = [next(clock)]
    monkeypatch.setattr(probe.recorder, "now", lambda: at[-1])
    recorded = stepped(windows_of(probe), 200, before=lambda: at.append(next(clock)))
    assert 3 <= sum(recorded) < 0.5 * len(recorded)


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("active=3", (0, 0, 0, 3, 0)),
        ("skip_first=10,wait=5,warmup=1,active=3,repeat=2", (10, 5, 1, 3, 2)),
        (" active=3 , wait=2 ", (0, 2, 0, 3, 0)),
    ],
)
def test_a_schedule_is_read_and_taken_by_the_probe_and_what_is_not_named_is_0(probe, text, schedule):
    read = parse_schedule(text)
    made = probe.windows.Schedule(**read)
    names = "skip_first", "wait", "warmup", "active", "repeat"
    assert tuple(read.values()) == tuple(getattr(made, name) for name in names) == schedule


@pytest.mark.parametrize(
    "text",
    ["active", "active=", "active=x", "active=-1", "active=1.5", "actve=3", "=3", "", "active=3,", "active=3;wait=1",
     "active=²", "active=9999999999"],
)  # fmt: skip
def test_a_part_that_cannot_be_read_is_refused_and_shown(text):
    with pytest.raises(UsageError, match=r"cannot read `.*` in the schedule, expected name=number") as caught:
        parse_schedule(text)
    assert "--schedule" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "records nothing: active is 0") for text in ("active=0", "wait=3", "wait=3,warmup=1,repeat=2")),
        ("active=3,wait=1,active=5", "says `active` twice"),
    ],
)
def test_a_schedule_that_records_nothing_or_says_a_number_twice_is_refused(text, why):
    with pytest.raises(UsageError, match=why):
        parse_schedule(text)
