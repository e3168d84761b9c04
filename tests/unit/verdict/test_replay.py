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


def row(rank, kind, start, end, *, step=0, stage=0, name="", group="", track=""):
    """In ms; what is in a group is communication."""
    return {
        "position": step, "rank": rank, "start_ns": start * MS, "end_ns": end * MS, "peers": stage,
        "name": name or kind, "track": track or (name if group else ""), "group_name": group, "kind": kind,
        "is_comm": bool(group),
    }  # fmt: skip


def columns_of(rows):
    columns = {}
    for name in rows[0]:
        values = np.array([one[name] for one in rows])
        if name in TEXTS:
            texts, values = np.unique(values, return_inverse=True)
            values = (values, texts.tolist())
        columns[name] = values
    return columns


def replayed(rows):
    return replay_of(operations(columns_of(rows)))


def replica(rank, forward, last, *, step=0, begin=0):
    """A forward and a backward pass twice as long, then an all-reduce that takes 3 after the last rank begins it."""
    middle, end = begin + forward, begin + 3 * forward
    return [
        row(rank, "forward", begin, middle, step=step),
        row(rank, "backward", middle, end, step=step),
        row(rank, "all_reduce", end, last + 3, step=step, name="grads", group="dp"),
        row(rank, "optimizer", last + 3, last + 4, step=step),
    ]


def test_a_slow_replica_by_hand():
    """30 + 3 + 1 and 60 + 3 + 1; with both average 45 + 3 + 1."""
    replay = replayed(replica(0, 10, 60) + replica(1, 20, 60))
    assert replay.error == pytest.approx(0)
    assert replay.taken_ns.tolist() == [64 * MS]
    assert replay.ideal_ns == 49 * MS
    parts = parts_of(replay)
    assert parts.replicas == pytest.approx({0: 1.0, 1: 64 / 49})
    assert parts.m_w == pytest.approx(1)
    assert parts.m_s is None
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
    """4 + 1 + 24 + 1 + 8 with a last stage of twice the time, 4 + 8 + 24 + 2 with both of 1.5 times."""
    replay = replayed(pipeline(2))
    assert replay.taken_ns.tolist() == [38 * MS]
    assert replay.ideal_ns == 38 * MS
    even = replayed(pipeline())
    assert even.taken_ns.tolist() == [26 * MS]


def test_the_last_stage_alone():
    """Only the last stage as measured: 6 + 1 + 24 + 1 + 12."""
    assert parts_of(replayed(pipeline(2))).stages == pytest.approx({0: (4 + 18 + 8 + 2) / 38, 1: 44 / 38})


def test_what_the_host_waits_is_no_part_of_the_slow_down():
    replay = replayed(pipeline(gap=13))
    assert replay.measured_ns.tolist() == [39 * MS]
    assert replay.taken_ns.tolist() == [26 * MS]
    assert replay.launch_slowdown == pytest.approx(1.5)
    assert replay.error == pytest.approx(0)


def test_communication_beside_a_pass_does_not_hold_it_up():
    """A reduction of 9 begins behind the first backward pass, and the optimizer waits for it."""
    rows = [
        row(rank, kind, start, end, name=name, group=group)
        for rank in (0, 1)
        for kind, start, end, name, group in (
            ("backward", 0, 10, "", ""),
            ("reduce_scatter", 10, 19, "grads", "dp"),
            ("backward", 10, 15, "", ""),
            ("optimizer", 19, 20, "", ""),
        )
    ]
    replay = replayed(rows)
    assert replay.taken_ns.tolist() == [20 * MS]
    shorter = np.where((replay.ops.type == replay.ops.types.index("grads"))[:, None], 2.0 * MS, replay.dur)
    assert replay.time_ns(shorter) == 16 * MS


def test_steps_with_other_operations_are_left_out():
    rows = [one for step in range(4) for one in replica(0, 10, 60, step=step) + replica(1, 20, 60, step=step)]
    ops = operations(columns_of(rows[:-1]))
    assert ops.positions.tolist() == [0, 1, 2]
    assert ops.dropped_steps == 1


def test_a_sending_without_its_receiver_is_refused():
    with pytest.raises(NotPairedError):
        replayed([one for one in pipeline() if one["name"] != "forward-recv"])


def test_a_collective_that_a_rank_lacks_is_refused():
    twice = [*replica(0, 10, 30), row(0, "all_reduce", 40, 41, name="grads", group="dp")]
    with pytest.raises(NotPairedError):
        replayed(twice + replica(1, 10, 30))


def test_operations_that_wait_for_each_other_are_refused():
    with pytest.raises(CircleError):
        Schedule(Graph(np.array([0, 1]), np.array([1, 0]), np.array([0, 1])))


def test_passes_that_overlap_on_a_rank_are_not_judged():
    """Two streams of passes are not understood: one after the other they take longer than recorded."""
    rows = [
        one
        for step in range(3)
        for one in (
            row(0, "forward", 0, 10, step=step),
            row(0, "forward", 0, 9, step=step),
            row(1, "forward", 0, 10, step=step),
        )
    ]
    found = judged(operations(columns_of(rows)))
    assert (found["verdict"], found["why"]) == ("not_measured", "inexact")


def test_two_steps_are_too_few():
    rows = [one for step in range(2) for one in replica(0, 10, 60, step=step) + replica(1, 20, 60, step=step)]
    assert judged(operations(columns_of(rows)))["why"] == "few_steps"


def late_from(onset, steps=10):
    """Three replicas; the third takes half as long again from this step on."""
    rows = []
    for step in range(steps):
        forwards = [10, 10, 15 if step >= onset else 10]
        rows += [one for rank in range(3) for one in replica(rank, forwards[rank], 3 * max(forwards), step=step)]
    return rows


def test_a_rank_that_becomes_slow_has_its_onset():
    found = judged(operations(columns_of(late_from(6))))["found"]
    assert [(item["code"], item["rank"], item["since"]) for item in found] == [("fail_slow", 2, 6)]
    assert found[0]["late"] == pytest.approx(0.5)
    assert found[0]["cost"] == pytest.approx(4 * 15 / (6 * 34 + 4 * 49))
    always = judged(operations(columns_of(late_from(0))))["found"]
    assert [(item["code"], item["rank"], item["since"]) for item in always] == [("slow_worker", 2, None)]


@pytest.mark.parametrize(
    ("costs", "beside"),
    [((0.25, 0.2), [0.8, 1.25]), ((0.4, 0.2), [None, None]), ((0.4, 0.3, 0.15), [0.75, 4 / 3, None]), ((0.4,), [None])],
)
def test_a_doubt_says_what_another_cause_costs_beside_the_one_that_is_doubted(costs, beside):
    facts = Facts(20, 0.0, None, None, None, 0.0, None, 0, None, None, 0.0, None)
    found = [{"code": "slow_link", "cost": cost} for cost in costs]
    doubts = [_doubts(item["code"], _beside(facts, item, found)) for item in found]
    assert [one[0]["value"] if one else None for one in doubts] == [value and pytest.approx(value) for value in beside]


def test_a_slow_rank_does_not_make_its_stage_late():
    effects = effects_of(replayed(late_from(0)))
    assert effects.late_stage is None
    assert np.allclose(effects.stage, 1)
    assert [(slow.rank, round(slow.late, 6)) for slow in effects.slow_ranks] == [(2, 0.5)]


def test_what_a_name_says():
    assert parted("chunk1/forward-send") == ("forward-send", 1, 0)
    assert parted("model_chunk_12.backward 3") == ("model_backward #", 12, 1)
    assert parted("all_reduce_7") == ("all_reduce_#", 0, -1)


def test_of_a_hundred_ranks_three_are_the_slowest():
    assert slowest({rank: 1.0 + (rank in (5, 9)) for rank in range(100)}) == [5, 9, 0]
    assert slowest({0: 1.0, 1: 2.0}) == [1]
