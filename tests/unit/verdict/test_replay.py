"""A step executed again: who waits for whom, S and its parts by hand, and what cannot be replayed."""

import numpy as np
import pytest

from pipeprof.verdict.replay.causes import Facts, _beside, _doubts, effects_of, judged
from pipeprof.verdict.replay.graph import Graph, NotPairedError
from pipeprof.verdict.replay.operations import operations, parted
from pipeprof.verdict.replay.schedule import CircleError, Schedule
from pipeprof.verdict.replay.slowdown import parts_of, replay_of, slowest

MS = 1_000_000
TEXTS = ("name", "track", "group_name", "kind")


def row(rank, kind, start, end, *, step=0, stage=0, name="", group=""):
    """In ms; what is in a group is communication."""
    return {
        "position": step, "rank": rank, "start_ns": start * MS, "end_ns": end * MS, "peers": stage,
        "name": name or kind, "track": name if group else "", "group_name": group, "kind": kind, "is_comm": bool(group),
    }  # fmt: skip


def made(rows):
    """Operations of these rows."""
    columns = {}
    for name in rows[0]:
        values = np.array([one[name] for one in rows])
        if name in TEXTS:
            texts, values = np.unique(values, return_inverse=True)
            values = (values, texts.tolist())
        columns[name] = values
    return operations(columns)


def replayed(rows):
    return replay_of(made(rows))


def replica(rank, forward, last, *, step=0):
    """A forward and a backward pass twice as long, then an all-reduce that takes 3 after the last rank begins it."""
    end = 3 * forward
    return [
        row(rank, "forward", 0, forward, step=step),
        row(rank, "backward", forward, end, step=step),
        row(rank, "all_reduce", end, last + 3, step=step, name="grads", group="dp"),
        row(rank, "optimizer", last + 3, last + 4, step=step),
    ]


def replicas(steps):
    return [one for step in range(steps) for rank in (0, 1) for one in replica(rank, 10 * (rank + 1), 60, step=step)]


def test_a_slow_replica_by_hand():
    """30 + 3 + 1 and 60 + 3 + 1; with both average 45 + 3 + 1."""
    replay = replayed(replicas(1))
    assert (replay.taken_ns.tolist(), replay.ideal_ns, replay.error) == ([64 * MS], 49 * MS, pytest.approx(0))
    parts = parts_of(replay)
    assert parts.replicas == pytest.approx({0: 1.0, 1: 64 / 49})
    assert (parts.m_w, parts.m_s) == (pytest.approx(1), None)
    assert parts.types["backward"] == pytest.approx((49 + 10) / 49)
    assert parts.types["grads"] == pytest.approx(1)


def pipeline(slow=1, *, gap=0):
    """Two stages, a microbatch: forward 4 on each, backward 8 on each, transfers of 1; the last stage `slow` times."""
    there = 5 + gap
    back = there + 12 * slow
    return [
        row(0, "forward", 0, 4),
        row(0, "send", 4, 5, name="forward-send", group="p"),
        row(1, "receive", 0, 5, stage=1, name="forward-recv", group="p"),
        row(1, "forward", there, there + 4 * slow, stage=1),
        row(1, "backward", there + 4 * slow, back, stage=1),
        row(1, "send", back, back + 1, stage=1, name="backward-send", group="p"),
        row(0, "receive", 4, back + 1, name="backward-recv", group="p"),
        row(0, "backward", back + 1, back + 9),
    ]


def test_a_pipeline_by_hand():
    """4 + 1 + 24 + 1 + 8 with a last stage of twice the time, 4 + 8 + 24 + 2 with both of 1.5 times; 26 when alike.

    With only the last stage as measured 6 + 1 + 24 + 1 + 12.
    """
    replay = replayed(pipeline(2))
    assert (replay.taken_ns.tolist(), replay.ideal_ns) == ([38 * MS], 38 * MS)
    assert parts_of(replay).stages == pytest.approx({0: (4 + 18 + 8 + 2) / 38, 1: 44 / 38})
    replay = replayed(pipeline(gap=13))  # what the host waits is no part of the slow-down
    assert (replay.measured_ns.tolist(), replay.taken_ns.tolist()) == ([39 * MS], [26 * MS])
    assert (replay.launch_slowdown, replay.error) == (pytest.approx(1.5), pytest.approx(0))


def test_communication_beside_a_pass_does_not_hold_it_up():
    """A reduction of 9 begins behind the first backward pass, and the optimizer waits for it."""
    rows = [
        one
        for rank in (0, 1)
        for one in (
            row(rank, "backward", 0, 10),
            row(rank, "reduce_scatter", 10, 19, name="grads", group="dp"),
            row(rank, "backward", 10, 15),
            row(rank, "optimizer", 19, 20),
        )
    ]
    replay = replayed(rows)
    assert replay.taken_ns.tolist() == [20 * MS]
    shorter = np.where((replay.ops.type == replay.ops.types.index("grads"))[:, None], 2.0 * MS, replay.dur)
    assert replay.time_ns(shorter) == 16 * MS


def test_what_has_other_operations_no_pair_or_overlaps_is_left_out_or_refused():
    ops = made(replicas(4)[:-1])
    assert (ops.positions.tolist(), ops.dropped_steps) == ([0, 1, 2], 1)
    twice = [*replica(0, 10, 30), row(0, "all_reduce", 40, 41, name="grads", group="dp")]
    for rows in ([one for one in pipeline() if one["name"] != "forward-recv"], twice + replica(1, 10, 30)):
        with pytest.raises(NotPairedError):
            replayed(rows)
    with pytest.raises(CircleError):
        Schedule(Graph(np.array([0, 1]), np.array([1, 0]), np.array([0, 1])))
    # Two streams of passes are not understood: one after the other they take longer than recorded.
    passes = [(0, 10), (0, 9), (1, 10)]
    found = judged(made([row(rank, "forward", 0, end, step=step) for step in range(3) for rank, end in passes]))
    assert (found["verdict"], found["why"]) == ("not_measured", "inexact")
    assert judged(made(replicas(2)))["why"] == "few_steps"


def late_from(onset, steps=10):
    """Three replicas; the third takes half as long again from this step on."""
    rows = []
    for step in range(steps):
        forwards = [10, 10, 15 if step >= onset else 10]
        rows += [one for rank in range(3) for one in replica(rank, forwards[rank], 3 * max(forwards), step=step)]
    return rows


@pytest.mark.parametrize(("onset", "expected"), [(6, ("fail_slow", 2, 6)), (0, ("slow_worker", 2, None))])
def test_a_rank_that_becomes_slow_has_its_onset(onset, expected):
    (found,) = judged(made(late_from(onset)))["found"]
    assert (found["code"], found["rank"], found["since"]) == expected
    if onset:
        assert found["late"] == pytest.approx(0.5)
        assert found["cost"] == pytest.approx(4 * 15 / (6 * 34 + 4 * 49))


@pytest.mark.parametrize(
    ("costs", "beside"),
    [((0.25, 0.2), [0.8, 1.25]), ((0.4, 0.2), [None, None]), ((0.4, 0.3, 0.15), [0.75, 4 / 3, None]), ((0.4,), [None])],
)
def test_a_doubt_says_what_another_cause_costs_beside_the_one_that_is_doubted(costs, beside):
    facts = Facts(20, 0.0, None, None, None, 0.0, None, 0, None, None, 0.0, None)
    found = [{"code": "slow_link", "cost": cost} for cost in costs]
    doubts = [_doubts(item["code"], _beside(facts, item, found)) for item in found]
    assert [one[0]["value"] if one else None for one in doubts] == [value and pytest.approx(value) for value in beside]


def test_a_slow_rank_does_not_make_its_stage_late_and_of_many_several_are_the_slowest():
    effects = effects_of(replayed(late_from(0)))
    assert effects.late_stage is None
    assert np.allclose(effects.stage, 1)
    assert [(slow.rank, round(slow.late, 6)) for slow in effects.slow_ranks] == [(2, 0.5)]
    assert parted("chunk1/forward-send") == ("forward-send", 1, 0)
    assert parted("model_chunk_12.backward 3") == ("model_backward #", 12, 1)
    assert parted("all_reduce_7") == ("all_reduce_#", 0, -1)
    assert slowest({rank: 1.0 + (rank in (5, 9)) for rank in range(100)}) == [5, 9, 0]  # three of a hundred
    assert slowest({0: 1.0, 1: 2.0}) == [1]
