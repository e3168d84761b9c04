"""Queries of ranks."""

import pytest
from query_cases import answers, rows
from table_rows import collectives, own_times

GIVE = "place name ranks steps events transfer_ns waiting_ns wait_share last_rank last_share"


CURVE = "phase point first_position last_position ranks median_ns min_ns max_ns slowest_rank"
LINKS = "transport src_rank dst_rank links moves moved_bytes moving_ns rate compared ratio"


def link(src, dst, size, dur, name="a", transport="HCCS", **more):
    ends = {"src_rank": src, "dst_rank": dst, "transport": transport}
    return {"step": 0, "name": name, "bytes": size, "dur_ns": dur, **ends, **more}


MS = 1_000_000


def tables(steps=((0, (0, 1)),)):
    """Per (step, ranks): two ranks of two stages, one microbatch, in ms; rank 1 receives what rank 0 sends."""
    found = {"step": [], "op": [], "op_info": [], "collective": []}
    for rank in (0, 1):
        info = {"rank": rank, "op_id": 0, "name": "Chunk1/Forward-3", "phase": "forward", "category": "pass"}
        found["op_info"] += [info, info | {"op_id": 1, "name": "MatMul", "category": "kernel"}]
    for step, ranks in steps:
        for rank in ranks:
            here, begin = {"rank": rank, "step": step}, (100 * step + 10 * rank) * MS
            found["step"].append({**here, "kind_step": step, "kind": "train", "start_ns": 0, "end_ns": 1000 * MS})
            found["op"] += [{**here, "op_id": op_id, "start_ns": begin, "dur_ns": 8 * MS} for op_id in (0, 1)]
            moved = {"kind": "receive" if rank else "send", "name": f"chunk_1_Forward-{'recv' if rank else 'send'}"}
            found["collective"].append({**here, **moved, "group_name": "p", "track": "s", "start_ns": 8 * MS, "dur_ns": 2 * MS})  # fmt: skip
    return found


test_rows_of_rank_collective_wait = answers("rank/collective_wait", {
    "the largest waiting comes first with the rank that causes it": (GIVE,
        collectives({"a": [30, 10], "b": [40, 100]}, 2),
        [(1, "b", 2, 2, 2, 40.0, 120, 120 / 280, 0, 1.0), (2, "a", 2, 2, 2, 10.0, 40, 40 / 80, 1, 1.0)]),
    "no rank is last when all are alike": ("waiting_ns last_rank last_share", collectives({"a": [10, 10]}),
        [(0, None, None)]),
    "top": ("name", collectives({"a": [30, 10], "b": [40, 100]}), [("b",)], {"top": 1}),
}, top=5)  # fmt: skip

test_rows_of_rank_last_arrival = answers("rank/last_arrival", {
    "who is last and how long the others wait": (
        "rank steps events last_share expected_share waited_ns caused_ns per_rank_ns collective collective_ns",
        collectives({"a": [30, 10, 40], "b": [25, 5, 65], "c": [5, 15, 15]}),
        [(0, 1, 3, pytest.approx(1 / 3), pytest.approx(1 / 3), 40, 20, 10.0, "c", 20),
         (1, 1, 3, pytest.approx(2 / 3), pytest.approx(1 / 3), 10, 130, 65.0, "b", 80),
         (2, 1, 3, 0.0, pytest.approx(1 / 3), 100, 0, 0.0, None, None)]),
})  # fmt: skip

test_rows_of_rank_phase_diff = answers("rank/phase_diff", {
    "one rank alone has no rows": ("", own_times({0: [10, 20]}), []),
})  # fmt: skip

test_rows_of_rank_link = answers("rank/link", {
    "links are compared with those that moved as much": (LINKS,
        {"rank_link": [link(0, 1, 100, 10), link(1, 2, 100, 10), link(2, 0, 100, 20), link(0, 2, 900, 10)]},
        [("HCCS", 2, 0, 4, 1, 100, 20, 5e9, 1, 0.5), ("HCCS", 0, 1, 4, 1, 100, 10, 1e10, 1, 1.0),
         ("HCCS", 1, 2, 4, 1, 100, 10, 1e10, 1, 1.0), ("HCCS", 0, 2, 4, 1, 900, 10, 9e10, 0, None)]),
    "quartiles over operators": ("src_rank dst_rank compared ratio ratio_low ratio_high",
        {"rank_link": [link(*ends, 100, dur, name) for name in "abcd"
                       for ends, dur in (((0, 1), 10), ((1, 0), 10), ((0, 2), 40))]}, [(0, 2, 4, 0.25, 0.25, 0.25)],
        {"top": 1}),
    "kinds are apart and own memory and sums are left out": ("transport src_rank dst_rank ratio",
        {"rank_link": [link(0, 1, 100, 10), link(0, 0, 100, 1), link(None, None, 100, 9),
                       link(1, 0, 100, 50, transport="RDMA")]}, [("HCCS", 0, 1, None), ("RDMA", 1, 0, None)]),
    "what moved nothing or took no time is left out": ("",
        {"rank_link": [link(0, 1, 0, 10), link(0, 1, 10, 0), link(0, 1, None, 10)]}, []),
}, top=9)  # fmt: skip

test_rows_of_rank_operation = answers("rank/operation", {
    "passes and communication with what they belong to": (
        "rank place name kind group_name peers is_comm start_ns end_ns", tables(),
        [(0, 1, "chunk1/forward-3", "forward", "", 0, False, 0, 8 * MS),
         (0, 2, "chunk_1_forward-send", "send", "p", 0, True, 8 * MS, 10 * MS),
         (1, 1, "chunk_1_forward-recv", "receive", "p", 1, True, 8 * MS, 10 * MS),
         (1, 2, "chunk1/forward-3", "forward", "", 1, False, 10 * MS, 18 * MS)]),
    "without whole passes there is nothing": ("", tables()
        | {"op_info": [row | {"category": "kernel"} for row in tables()["op_info"]]}, []),
}, steps=5)  # fmt: skip

test_rows_of_rank_passes = answers("rank/passes", {
    "ranks with whole passes": ("rank kinds",
        {"op_info": rows("rank op_id category", (0, 0, "pass"), (0, 1, "pass"), (0, 2, "kernel"), (1, 0, "kernel"),
                         (1, 1, None), (2, 0, "pass"))}, [(0, 2), (2, 1)]),
})  # fmt: skip

test_rows_of_rank_stage = answers("rank/stage", {
    "stages with their bubbles and the rank that computes longest": ({"step_split": rows(
            "rank computing_ns exposed_ns source free_ns stage_ns bubble_ns exposed_without_receive_ns stage_index",
            (0, 70, 30, "cluster_step_trace", 0, 100, 0, None, None),
            (1, 90, 10, "cluster_step_trace", 0, 100, 0, None, None),
            (2, 80, 60, "cluster_step_trace", 20, 80, 80, 10, None), (0, 90, 30, None, None, None, None, None, 0),
            (2, 80, 60, None, None, None, None, None, 1))},
        ("peers basis first_rank last_rank ranks step_ns computing_ns exposed_ns receive_ns bubble_ns bubble_share slowest_rank",
         [(0, "stage", 0, 1, 2, 100.0, 80.0, 20.0, None, 0.0, 0.0, 1),
          (1, "stage", 2, 2, 1, 160.0, 80.0, 60.0, 50.0, 80.0, 0.5, 2)]),
        ("computing_excess", [(pytest.approx(0.125),), (pytest.approx(0.0),)])),
})  # fmt: skip


HALF = own_times({0: [10, 10], 1: [20, 20], 2: [30, None], 3: [40, None], 4: [50, None]})
OWN = {
    "two ranks are compared with each other": ("diff_ns", own_times({0: [10], 1: [50]}), {0: (-40.0,), 1: (40.0,)}),
    "of three each with the middle of the others": ("diff_ns", own_times({0: [10], 1: [20], 2: [60]}),
        {0: (-30.0,), 1: (-15.0,), 2: (45.0,)}),
    "of four each with the median of three": ("diff_ns", own_times({0: [10], 1: [20], 2: [40], 3: [80]}),
        {0: (-30.0,), 1: (-20.0,), 2: (20.0,), 3: (60.0,)}),
    "ranks that are alike do not differ": ("diff_ns", own_times({0: [5], 1: [5], 2: [5], 3: [5], 4: [90]}),
        {0: (0.0,), 1: (0.0,), 2: (0.0,), 3: (0.0,), 4: (85.0,)}),
    "what all ranks have in common cancels": ("diff_ns diff_low_ns diff_high_ns diff_sd_ns",
        own_times({0: [10, 300, 600], 1: [12, 302, 602]}), {1: (2.0, 2.0, 2.0, 0.0)}),
    "halves of the steps and steps that are held up": ("early_ns late_ns held_up held_up_ns",
        own_times({0: [100] * 5, 1: [100, 100, 100, 250, 350]}),
        {0: (0.0, -200.0, 0, None), 1: (0.0, 200.0, 2, 400.0)}),
    "steps by turns on either side": ("pairs same_side", own_times({0: [100] * 4, 1: [100, 300, 100, 300]}),
        {1: (3, 0)}),
    "steps like the step before": ("pairs same_side", own_times({0: [100] * 4, 1: [100, 100, 300, 300]}), {1: (3, 2)}),
    "three steps have no pairs": ("pairs same_side", own_times({0: [100] * 3, 1: [100, 200, 300]}), {1: (0, 0)}),
    "runs of steps that are held up": ("held_up episodes", own_times({0: [100] * 6, 1: [500, 500, 100, 500, 150, 500]}),
        {1: (4, 3)}),
    "steps that fewer than half of the ranks have do not count": ("steps", HALF, dict.fromkeys(range(5), (1,))),
    "other stages are not compared": ("peers diff_ns", own_times({0: [10], 1: [20], 2: [500], 3: [540]})
        | {"step_split": rows("rank stage_index", (0, 0), (2, 1))},
        {0: (0, -10.0), 1: (0, 10.0), 2: (1, -40.0), 3: (1, 40.0)}),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "tables", "expected"), OWN.values(), ids=OWN)
def test_own_times_of_ranks_beside_the_others(ask, columns, tables, expected):
    found = ask("rank/phase_diff", tables, give=f"phase rank {columns}")
    assert {rank: tuple(values) for phase, rank, *values in found if phase == "own" and rank in expected} == expected


def test_the_phases_of_a_step_trace_and_their_share(ask):
    give = "rank phase source ranks steps step_ns median_ns diff_ns"
    rows = ask("rank/phase_diff", own_times({0: [400], 1: [500]}), give=give)
    found = {row[1]: row[2:] for row in rows if row[0] == 1}
    assert found["until_bp"] == ("trace", 2, 1, 1000.0, 500.0, 100.0)
    assert found["communication"] == ("trace", 2, 1, 1000.0, 500.0, -100.0)
    assert found["step"][-1] == 0.0


@pytest.mark.parametrize(("times", "points", "expected"), [
    ({0: [10, 20], 1: [30, 20], 2: [20, 80]}, 9,
     [(0, 0, 0, 3, 20.0, 10.0, 30.0, 1), (1, 1, 1, 3, 20.0, 20.0, 80.0, 2)]),
    ({0: [10, 20, 30, 40], 1: [0] * 4}, 2, [(0, 0, 1, 2, 7.5, 0.0, 15.0, 0), (1, 2, 3, 2, 17.5, 0.0, 35.0, 0)]),
])  # fmt: skip
def test_the_middle_and_the_extremes_of_the_ranks_at_points_of_one_step_or_several(ask, times, points, expected):
    rows = ask("rank/curve", own_times(times), give=CURVE, points=points)
    assert [row[1:] for row in rows if row[0] == "own"] == expected


PAIRS = {"front": (4, 5), "back": (6, 7)}


@pytest.mark.parametrize(("rows", "give", "expected"), [
    ([link(src, dst, 100, 10 if group == "front" else 40, group_name=group, rank=rank)
      for group, members in PAIRS.items() for rank in members for src, dst in ((0, 1), (1, 0))],
     "src_rank dst_rank moves moving_ns local_group",
     [(4, 5, 1, 20, ""), (5, 4, 1, 20, ""), (6, 7, 1, 80, ""), (7, 6, 1, 80, "")]),
    ([link(0, 1, 100, 10 * place, group_name=group, rank=9) for place, group in enumerate("ab", 1)],
     "src_rank dst_rank moving_ns local_group", [(0, 1, 10, "a"), (0, 1, 20, "b")]),
    ([link(src, dst, 100, 10, group_name="pair", rank=rank) for rank in (1, 2) for src, dst in ((1, 2), (2, 1))],
     "src_rank dst_rank moves local_group", [(1, 2, 1, ""), (2, 1, 1, "")]),
], ids=["numbers become ranks of the job", "unknown members are not added up", "ranks of the job stay"])  # fmt: skip
def test_links_of_a_group_are_those_of_its_members(ask, rows, give, expected):
    assert sorted(ask("rank/link", {"rank_link": rows}, give=give, top=9)) == expected


@pytest.mark.parametrize(("steps", "most", "shown"), [
    ([(0, (0, 1)), (1, (0,)), (2, (0, 1))], 5, {0, 2}), ([(step, (0, 1)) for step in range(9)], 3, {0, 3, 6}),
])  # fmt: skip
def test_steps_that_all_ranks_have_are_shown_evenly_spaced_ones_of_many(ask, steps, most, shown):
    assert {row["position"] for row in ask("rank/operation", tables(steps), steps=most)} == shown
