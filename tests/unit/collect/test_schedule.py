"""When op windows open and close: as torch.profiler.schedule, and never twice at once."""

import json
import sys
from itertools import pairwise
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
        self.folder = None
        self.stopped = 0

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
        self.folder = None
        self.stopped += 1


class Executor:
    def sync(self):
        pass


def windows_of(probe, rec, schedule):
    made = probe.windows.Windows()
    made.executor, made.profiler = Executor(), Profiler()
    made.schedule = probe.windows.Schedule(**schedule)
    made.open_at = made.schedule.next_window(0)
    if made.open_at == 0:
        made._open()
    return made


def automatic(probe):
    made = probe.windows.Windows()
    made.executor, made.profiler, made.auto, made.open_at = Executor(), Profiler(), True, 1
    return made


@OFTEN
@given(schedule=schedules)
def test_windows_hold_exactly_the_steps_that_torch_would_record(probe, rec, tmp_path_factory, schedule, told):
    rec.__init__(str(tmp_path_factory.mktemp("spool")), "{}")
    made = windows_of(probe, rec, schedule)
    inside = []
    for _ in range(30):
        inside.append(made.profiler.folder is not None)
        made.step_done()
    made.exit()
    assert inside == [action(step, **schedule) is not None for step in range(30)]
    assert told("warning") == []


def test_a_window_says_when_each_of_its_steps_ended_and_how_much_it_recorded(probe, rec, told):
    made = windows_of(probe, rec, {"wait": 1, "warmup": 1, "active": 2, "repeat": 1})
    for _ in range(6):
        made.step_done()
    (opened,), (closed,) = told("window_open"), told("window")
    assert opened["warmup"] == 1
    assert len(closed["ticks"]) == 4
    assert closed["ticks"] == sorted(closed["ticks"])
    assert closed["begin"] <= closed["ticks"][0]
    assert closed["ticks"][-1] <= closed["end"]
    assert closed["executions"] == 7


def test_all_steps_are_recorded_in_windows_that_become_longer(probe, rec, told):
    """MindSpore writes all that it ever took of memory into each window: equal ones would grow with the square of time."""
    made = windows_of(probe, rec, {"active": probe.windows.ALL_STEPS})
    made.all = True
    for _ in range(10_000):
        made.step_done()
    made.exit()
    ticks = [event["ticks"] for event in told("window")]
    assert sum(len(one) - 1 for one in ticks) == 10_000
    assert len(ticks[0]) - 1 == probe.windows.ALL_STEPS
    assert len(ticks) < 25


def test_the_scripts_own_profiler_ends_our_window_and_gets_no_other(probe, rec, told):
    made = windows_of(probe, rec, {"active": 5})
    profiler = made.profiler
    made.step_done()
    made.forbid("the script uses it")
    assert profiler.stopped == 1
    for _ in range(20):
        made.step_done()
    assert profiler.folder is None
    assert [event["code"] for event in told("warning")] == ["ops_left_to_user"]


def test_a_recorder_that_fails_ends_the_windows_and_not_the_training(probe, rec, told):
    made = windows_of(probe, rec, {"wait": 1, "active": 1})

    def refuse(_folder):
        raise RuntimeError("no recorder")

    made.profiler.init = refuse
    for _ in range(5):
        made.step_done()
    assert made.profiler is None
    assert [event["code"] for event in told("warning")] == ["probe_failed:window"]


def test_a_recorder_that_fails_at_once_fails_nothing_else(probe, rec, monkeypatch, told):
    """What else is set up when MindSpore is imported follows."""
    profiler = Profiler()
    monkeypatch.setattr(profiler, "init", lambda _folder: 1 / 0)
    profiler.stop = lambda: None
    native = SimpleNamespace(Profiler=SimpleNamespace(get_instance=lambda _target: profiler))
    monkeypatch.setitem(sys.modules, "mindspore", SimpleNamespace(_c_expression=native))
    monkeypatch.setitem(sys.modules, "mindspore._c_expression", native)
    rec._options_text = json.dumps({"ops": "all", "memory": False})
    made = probe.windows.Windows()
    made.prepare()
    assert made.profiler is None
    assert [event["code"] for event in told("warning")] == ["probe_failed:window"]


def test_automatic_windows_grow_rarer_and_stay_below_their_share(probe, rec):
    made = automatic(probe)
    recorded = []
    for _ in range(20_000):
        recorded.append(made.profiler.folder is not None)
        probe.recorder.now()
        made.step_done()
    assert not recorded[0]
    assert recorded[1]
    assert sum(recorded) < 0.05 * len(recorded)
    openings = [n for n, (one, other) in enumerate(pairwise(recorded)) if other and not one]
    gaps = [later - earlier for earlier, later in pairwise(openings)]
    assert gaps == sorted(gaps)


@pytest.mark.parametrize("step_ms", [1, 100, 1_000])
def test_automatic_windows_leave_most_steps_alone_however_long_a_step_is(probe, rec, monkeypatch, step_ms):
    clock = [1_000_000]
    monkeypatch.setattr(probe.recorder, "now", lambda: clock[0])
    made = automatic(probe)
    recorded = []
    for _ in range(200):
        recorded.append(made.profiler.folder is not None)
        clock[0] += step_ms * 1_000_000
        made.step_done()
    assert sum(recorded) >= 3
    assert sum(recorded) < 0.5 * len(recorded)


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("active=3", (0, 0, 0, 3, 0)),
        ("skip_first=10,wait=5,warmup=1,active=3,repeat=2", (10, 5, 1, 3, 2)),
        (" active=3 , wait=2 ", (0, 2, 0, 3, 0)),
    ],
)
def test_a_schedule_is_read_and_what_is_not_named_is_0(text, schedule):
    assert tuple(parse_schedule(text).values()) == schedule


@pytest.mark.parametrize(
    "text",
    ["active", "active=", "active=x", "active=-1", "active=1.5", "actve=3", "=3", "", "active=3,", "active=3;wait=1",
     "active=²", "active=9999999999"],
)  # fmt: skip
def test_a_part_that_cannot_be_read_is_refused_and_shown(text):
    with pytest.raises(UsageError, match=r"cannot read `.*` in the schedule, expected name=number") as caught:
        parse_schedule(text)
    assert "--schedule" in caught.value.hint


@pytest.mark.parametrize("text", ["active=0", "wait=3", "wait=3,warmup=1,repeat=2"])
def test_a_schedule_that_records_nothing_is_refused(text):
    with pytest.raises(UsageError, match="records nothing: active is 0"):
        parse_schedule(text)


def test_a_number_that_is_said_twice_is_refused():
    with pytest.raises(UsageError, match="says `active` twice"):
        parse_schedule("active=3,wait=1,active=5")


def test_what_is_parsed_is_what_the_probe_takes(probe):
    made = probe.windows.Schedule(**parse_schedule("skip_first=1,active=3"))
    assert (made.skip_first, made.active) == (1, 3)
