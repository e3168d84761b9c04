import pytest


def step(number, bp, end, kind="train", **more):
    return {"step": number, "kind": kind, "start_ns": 0, "bp_ns": bp, "end_ns": end, **more}


def event(start, dur, step=0, kind="all_reduce", **more):
    return {"step": step, "kind": kind, "start_ns": start, "dur_ns": dur, **more}


def test_counts_and_times_of_each_kind(ask):
    tables = {
        "step": [step(0, 50, 100), step(1, 50, 100)],
        "collective": [
            event(0, 10, bytes=8),
            event(10, 20, bytes=8),
            event(0, 30, step=1, bytes=8),
            event(0, 5, kind="broadcast"),
        ],
    }
    give = "kind events steps events_per_step total_ns mean_ns median_ns max_ns bytes tail_ns"
    assert ask("comm/summary", tables, give=give) == [
        ("all_reduce", 3, 2, 1.5, 60, 20.0, 20.0, 30, 24, 0),
        ("broadcast", 1, 2, 0.5, 5, 5.0, 5.0, 5, None, 0),
    ]


@pytest.mark.parametrize(
    ("events", "tail"),
    [
        pytest.param([event(0, 40)], 0, id="before the tail"),
        pytest.param([event(40, 20)], 10, id="across its start"),
        pytest.param([event(60, 10)], 10, id="inside"),
        pytest.param([event(90, 50)], 10, id="across its end"),
        pytest.param([event(60, 10), event(60, 10)], 10, id="twice the same"),
        pytest.param([event(60, 20), event(65, 5), event(70, 20)], 30, id="overlapping"),
        pytest.param([event(0, 70), event(55, 5), event(80, 5)], 25, id="a long one over a short one"),
        pytest.param([event(120, 10)], 0, id="behind the step"),
    ],
)
def test_the_tail_holds_the_union_of_the_events(ask, events, tail):
    tables = {"step": [step(0, 50, 100)], "collective": events}
    assert ask("comm/summary", tables, give="tail_ns") == [(tail,)]


def test_tails_of_different_steps_add_up(ask):
    tables = {"step": [step(0, 50, 100), step(1, 150, 200)], "collective": [event(60, 10), event(160, 10, step=1)]}
    assert ask("comm/summary", tables, give="tail_ns") == [(20,)]


def test_the_tail_is_unknown_without_a_backward_end(ask):
    tables = {"step": [step(0, None, 100)], "collective": [event(60, 10)]}
    assert ask("comm/summary", tables, give="total_ns tail_ns") == [(10, None)]


def test_warmup_does_not_count_beside_training(ask):
    tables = {"step": [step(0, 5, 9, "warmup"), step(1, 50, 100)], "collective": [event(0, 900), event(60, 10, step=1)]}
    assert ask("comm/summary", tables, give="events total_ns") == [(1, 10)]


def test_events_without_steps_count_when_no_event_has_one(ask):
    tables = {"collective": [event(0, 10, step=None)]}
    assert ask("comm/summary", tables, give="events steps events_per_step tail_ns") == [(1, 0, None, None)]
