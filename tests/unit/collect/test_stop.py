"""What takes the place of what counts the steps: a run that ends after so many of them, and a planted slow-down."""

import pytest

MS = 1_000_000


@pytest.fixture
def stop(probe, said):
    """A run of three steps; `counted`: those that were."""
    counted = []
    planted = probe.stop.Stop(3, lambda: counted.append(1))
    planted.counted = counted
    return planted


def test_the_last_step_is_counted_and_then_the_program_is_left_again_if_it_goes_on(stop, said):
    stop()
    stop()
    for number in (3, 4, 5):
        with pytest.raises(SystemExit) as caught:
            stop()
        assert (caught.value.code, len(stop.counted)) == (0, number)
    assert said == [("stopped", "the training was to end after 3 steps, as asked"), ("stopped", {"steps": 3})]


def test_a_loop_in_another_thread_goes_on_and_that_is_said(probe, stop, said, monkeypatch):
    monkeypatch.setattr(probe.stop.threading, "current_thread", lambda: "a thread of the script's")
    for _ in range(6):
        stop()
    assert len(stop.counted) == 6
    assert said == [
        ("stopped", "the training was to end after 3 steps, but goes on: its loop is not in the main thread")
    ]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"stop_after": 7, "stop_after_s": None}, {"steps": 7}),
        ({"stop_after": "soon"}, "stop_after"),
        ({"slow_down": 0.05}, {"share": 0.05}),
        ({"slow_down": "much"}, "slow_down"),
        ({}, None),
    ],
)
def test_only_the_wish_replaces_what_counts_the_steps(probe, rec, failures, options, found):
    rec._options = options
    probe.steps._change_steps(rec)
    planted = vars(probe.windows.WINDOWS).get("step_done")
    assert failures == ([found] if isinstance(found, str) else [])
    assert {name: getattr(planted, name) for name in found} == found if isinstance(found, dict) else planted is None


@pytest.fixture
def timed(probe, said, rec, tmp_path, monkeypatch):
    """`run(rank, times)`: steps of a rank end at these times; the step after which it leaves, None while it goes on.

    A run is to take 9 s and 4 steps.
    """
    rec.root = str(tmp_path)
    ranks = [probe.stop.Stop(4, lambda: None, 9.0) for _ in range(2)]

    def run(rank, times):
        for seconds in times:
            monkeypatch.setattr(probe.recorder, "now", lambda seconds=seconds: int(seconds * 1e9))
            try:
                ranks[rank]()
            except SystemExit:
                return ranks[rank].done
        return None

    return run


@pytest.mark.parametrize(("times", "last"), [(range(100, 200), 10), (range(0, 2000, 100), 4)], ids=["time", "steps"])
def test_a_run_that_is_to_take_a_time_and_so_many_steps_ends_some_steps_after_both(timed, times, last):
    assert timed(0, times) == last + 8  # as far as ranks may be apart


def test_all_ranks_leave_after_the_step_that_the_first_one_chose(timed):
    assert timed(0, range(10)) is None  # the time is over after its tenth step
    assert timed(1, range(9)) is None  # one step behind, and by its clock not yet there
    assert [timed(rank, [9.5] * 20) for rank in (1, 0)] == [18, 18]


def test_a_choice_that_is_being_written_is_no_choice_yet_and_a_disk_that_refuses_it_ends_nothing(timed, tmp_path):
    file = tmp_path / "stop"
    file.write_text("")
    assert timed(0, [0]) is None
    file.write_text("2")
    assert timed(0, [0]) == 2
    file.unlink()
    file.mkdir()
    assert timed(1, range(50)) is None


@pytest.fixture
def slow(probe, said, monkeypatch):
    """`steps(lengths)`: how much longer each step became, ns; its clock only moves on by sleeping and looking."""
    clock = [0]

    def now():
        clock[0] += 1_000
        return clock[0]

    def sleep(seconds):
        steps.sleeps += 1
        clock[0] += int(seconds * 1e9)

    monkeypatch.setattr(probe.recorder, "now", now)
    monkeypatch.setattr(probe.slow.time, "sleep", sleep)

    def steps(lengths, share=0.1):
        done, added = [], []
        planted = probe.slow.Slow(share, lambda: done.append(1))
        for length in lengths:
            clock[0] += length
            before = clock[0]
            planted()
            added.append(clock[0] - before)
        assert len(done) == len(lengths)
        return added

    steps.sleeps = 0
    return steps


def test_each_step_takes_its_share_longer_and_short_ones_are_waited_for_awake(slow):
    added = slow([MS] * 10)
    assert slow.sleeps == 0
    assert added[1:] == pytest.approx([MS // 10] * 9, rel=0.1)
    added = slow([10 * MS] * 20)
    assert added[0] < MS // 10  # nothing is known of the first
    assert added[1:] == pytest.approx([MS] * 19, rel=0.02)
    assert slow.sleeps == 19


def test_an_evaluation_between_two_steps_is_no_long_step(slow):
    added = slow([10 * MS] * 5 + [5000 * MS] + [10 * MS] * 5)
    assert max(added) <= 4.2 * MS
    assert added[-1] == pytest.approx(MS, rel=0.2) or added[-1] < 2 * MS


def test_the_run_says_that_it_was_slowed_down_and_a_failure_is_silent(slow, said, probe, failures, monkeypatch):
    slow([MS] * 3, share=0.05)
    assert said == [("slow_down", "on purpose, every step took 5 % longer")]
    monkeypatch.setattr(probe.slow.time, "sleep", lambda _seconds: 1 / 0)
    slow([10 * MS] * 3)
    assert failures == ["slow_down"] * 2
