"""Queries of the timeline."""

import pytest
from query_cases import answers, rows

LENGTHS = (50, 10, 12, 11, 30)  # the first is warm-up


def step(number, length, **more):
    return {"step": number, "kind_step": number, "kind": "train" if number else "warmup", "start_ns": number * 100,
            "end_ns": number * 100 + length, "pipeline_id": 3, **more}  # fmt: skip


@pytest.fixture
def chosen(ask):
    def rows(steps, ops=()):
        tables = {"step": steps, "op": [{"op_id": 0, "step": number} for number in ops]}
        give = "shown step dur_ns middle_ns operators pipeline_id"
        return ask("timeline/shown_step", tables, give=give, rep=0, rank=0)

    return rows


test_rows_of_timeline_event = answers("timeline/event", {
    "what touches the stretch the longest first": ({"fetch": [
            {"pipeline_id": 0, "fetch": n, "start_ns": at, "wait_ns": 5, "side": "iterator"}
            for n, at in enumerate((0, 12, 30))],
            "op_info": [{"op_id": 0, "name": "net/conv", "phase": "forward"},
                        {"op_id": 1, "name": "ProfilerStep*", "category": "user_annotation"}],
            "op": rows("op_id start_ns dur_ns track rank", (0, 15, 10, "CPU", None), (1, 10, 20, "CPU", None),
                       (0, 15, 10, "CPU", 1)),
            "collective": [{"name": "sum", "kind": "all_reduce", "track": "stream 1", "start_ns": 19, "dur_ns": 3}],
            "span": rows("track category name start_ns dur_ns", ("main", "callback", "log", 5, 7),
                         ("main", "window", "w", 0, 50))},
        ("place kind track name phase start_ns dur_ns",
         [(1, "op", "CPU", "net/conv", "forward", 15, 10), (2, "span", "callback", "log", None, 5, 7),
          (3, "fetch", "iterator", None, None, 12, 5), (4, "collective", "stream 1", "sum", "communication", 19, 3)]),
        ("place kind", [(1, "op")], {"top": 1})),
}, rep=0, rank=0, first_ns=10, last_ns=20, top=9)  # fmt: skip

test_rows_of_timeline_queue_depth = answers("timeline/queue_depth", {
    "samples of one iterator from the last one before the stretch": ({"queue": [
            {"pipeline_id": pipeline, "op_id": op, "t_ns": at, "depth": at // 10, "capacity": 8} for pipeline in (0, 1)
            for op in (0, 1) for at in (10, 20, 30, 40, 50) if at != 30 or op]},
        ("op_id t_ns depth fill_ratio",
         [(0, 20, 2, 0.25), (0, 40, 4, 0.5), (1, 20, 2, 0.25), (1, 30, 3, 0.375), (1, 40, 4, 0.5)]),
        ("op_id t_ns", [(0, 20), (1, 20)], {"top": 1})),
}, rep=0, rank=0, pipeline_id=1, first_ns=25, last_ns=45, top=9)  # fmt: skip

test_rows_of_timeline_step_window = answers("timeline/step_window", {
    "from the first start to the last end of the steps": ("rank first_step last_step start_ns end_ns",
        {"step": [{"step": n, "rank": rank, "start_ns": n * 10, "end_ns": n * 10 + 10} for rank in (0, 1)
                  for n in range(4)][:7]}, [(0, 2, 3, 20, 40), (1, 2, 2, 20, 30)]),
}, first=2, last=9)  # fmt: skip


def test_the_nearest_to_the_median_and_the_slowest_without_warmup(chosen):
    steps = [step(number, length) for number, length in enumerate(LENGTHS)]
    assert chosen(steps) == [("slowest", 4, 30, 11.5, False, 3), ("usual", 2, 12, 11.5, False, 3)]


def test_a_step_with_operators_is_shown_where_there_is_one(chosen):
    steps = [step(number, length, in_window=number == 4) for number, length in enumerate(LENGTHS)]
    assert chosen(steps, ops=(0, 4)) == [("slowest", 2, 12, 11.0, False, 3), ("usual", 4, 30, 30.0, True, 3)]


def test_other_ranks_have_no_part_in_it(chosen):
    steps = [step(1, 10), step(2, 99, rank=1), step(3, 10, rep=1)]
    assert chosen(steps) == [("slowest", 1, 10, 10.0, False, 3), ("usual", 1, 10, 10.0, False, 3)]
