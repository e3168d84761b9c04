"""Queries of the communication."""

import pytest
from query_cases import answers, row, rows
from table_rows import phased_step


def step(number, kind="train"):
    begin = 100 * number
    return {"step": number, "kind": kind, "start_ns": begin, "fp_ns": begin, "bp_ns": begin + 60, "end_ns": begin + 100}


event = row("start_ns dur_ns name step", kind="all_reduce", name="a", step=0)
GIVE = "source steps step_ns comm_ns overlapped_ns exposed_ns data_wait_ns forward_backward_ns tail_ns"
until = row("step bp_ns end_ns kind", start_ns=0, kind="train")
MOVED = "transport moves moved_bytes moving_ns rate median_rate"
moved = row("bytes dur_ns transport src_rank dst_rank", transport="HCCS")

test_rows_of_comm_by_collective = answers("comm/by_collective", {
    "most time first with the share in the tail": ({"step": [step(0), step(1)],
            "collective": [event(50, 20, bytes=8), event(160, 20, step=1, bytes=8), event(0, 50, "b")]},
        ("place name kind events steps total_ns mean_ns median_ns max_ns moved_bytes tail_share",
         [(1, "b", "all_reduce", 1, 1, 50, 50.0, 50.0, 50, None, 0.0),
          (2, "a", "all_reduce", 2, 2, 40, 20.0, 20.0, 20, 16, 0.75)]), ("name", [("b",)], {"top": 1})),
    "costs stand beside events of the same name": ("name events total_ns transit_ns wait_ns profiler_share",
        {"step": [step(0)], "collective": [event(0, 22)],
         "collective_cost": [{"name": "a", "kind": "all_reduce", "step": 0, "transit_ns": 5, "wait_ns": 15},
                             {"step": 0, "wait_ns": 99}]}, [("a", 1, 22, 5, 15, 0.75)]),
    "events without a group are those of the costs of that name": ("name group_name events wait_ns",
        {"step": [step(0)], "collective": [event(0, 22)],
         "collective_cost": [{"name": "a", "group_name": "g", "step": 0, "transit_ns": 5, "wait_ns": 15}]},
        [("a", "g", 1, 15)]),
    "costs alone count by transfer and waiting": ("name events steps total_ns mean_ns tail_share",
        {"collective_cost": [{"name": "a", "step": n, "transit_ns": 5, "wait_ns": 15} for n in (0, 1)]},
        [("a", None, 2, 40, 20.0, None)]),
    "costs of warm up do not count beside training": ("steps total_ns",
        {"step": [step(0, "warmup"), step(1)],
         "collective_cost": [{"name": "a", "step": n, "transit_ns": 0, "wait_ns": wait}
                             for n, wait in ((0, 900), (1, 10))]}, [(1, 10)]),
}, top=5)  # fmt: skip

test_rows_of_comm_by_stream = answers("comm/by_stream", {
    "each stream with its share of the steps": ("track events steps events_per_step total_ns mean_ns max_ns step_share",
        {"step": [{"step": n, "kind": "train", "start_ns": 100 * n, "end_ns": 100 * (n + 1)} for n in (0, 1)],
         "collective": rows("step track start_ns dur_ns", (0, "stream 1", 0, 30), (0, "stream 1", 40, 10),
                            (1, "stream 1", 100, 20), (1, None, 100, 50), (None, "stream 1", 900, 50))},
        [("", 1, 1, 1.0, 50, 50.0, 50, 0.5), ("stream 1", 3, 2, 1.5, 60, 20.0, 30, 0.3)]),
})  # fmt: skip

test_rows_of_comm_split = answers("comm/split", {
    "events tell the phase but not what ran beside them": (GIVE,
        {"step": [phased_step()], "collective": [{"step": 0, "start_ns": 10, "dur_ns": 80}]},
        [("trace", 1, 100.0, 80.0, None, None, 10.0, 50.0, 20.0)]),
    "the profilers own division": ({"step_split": [{"source": "step_trace_time", "computing_ns": 50, "exposed_ns": 30,
            "free_ns": 20, "overlapped_ns": 5, "source_step": n} for n in (1, 2)]},
        (GIVE, [("split", 2, 100.0, 35.0, 5.0, 30.0, None, None, None)]), ("comm_share exposed_share", [(0.35, 0.3)])),
    "what is not known is not made up": ("comm_ns exposed_ns comm_share exposed_share",
        {"step_split": [{"source": "cluster_analyse", "computing_ns": 50, "exposed_ns": 50}]},
        [(None, 50.0, None, 0.5)]),
})  # fmt: skip

test_rows_of_comm_summary = answers("comm/summary", {
    "counts and times of each kind": (
        "kind events steps events_per_step total_ns mean_ns median_ns max_ns bytes tail_ns",
        {"step": [until(0, 50, 100), until(1, 50, 100)],
         "collective": [event(0, 10, bytes=8), event(10, 20, bytes=8), event(0, 30, step=1, bytes=8),
                        event(0, 5, kind="broadcast")]},
        [("all_reduce", 3, 2, 1.5, 60, 20.0, 20.0, 30, 24, 0), ("broadcast", 1, 2, 0.5, 5, 5.0, 5.0, 5, None, 0)]),
    "tails of different steps add up": ("tail_ns",
        {"step": [until(0, 50, 100), until(1, 150, 200)], "collective": [event(60, 10), event(160, 10, step=1)]},
        [(20,)]),
    "the tail is unknown without a backward end": ("total_ns tail_ns",
        {"step": [until(0, None, 100)], "collective": [event(60, 10)]}, [(10, None)]),
    "warmup does not count beside training": ("events total_ns",
        {"step": [until(0, 5, 9, "warmup"), until(1, 50, 100)], "collective": [event(0, 900), event(60, 10, step=1)]},
        [(1, 10)]),
    "events without steps count when no event has one": ("events steps events_per_step tail_ns",
        {"collective": [event(0, 10, step=None)]}, [(1, 0, None, None)]),
})  # fmt: skip

test_rows_of_comm_transport = answers("comm/transport", {
    "sums of a kind count alone when they are there": (MOVED,
        {"rank_link": [moved(100, 10), moved(300, 10), moved(50, 10, "RDMA"), moved(999, 1, "HCCS", 0, 1)]},
        [("HCCS", 2, 400, 20, 2e10, 2e10), ("RDMA", 1, 50, 10, 5e9, 5e9)]),
    "sdma is not counted beside its parts": ("transport moved_bytes",
        {"rank_link": [moved(100, 10), moved(100, 10, "SDMA"), moved(7, 1, "SDMA")]}, [("HCCS", 100)]),
    "sdma is not counted beside its parts, too": ("transport moved_bytes",
        {"rank_link": [moved(100, 10, "SDMA"), moved(7, 1, "SDMA")]}, [("SDMA", 107)]),
    "else single links are added up and copies to itself are apart": (MOVED,
        {"rank_link": [moved(100, 10, "HCCS", 0, 1), moved(100, 30, "HCCS", 1, 0), moved(80, 1, "HCCS", 0, 0),
                       moved(0, 5, "HCCS", 0, 1)]},
        [("HCCS", 2, 200, 40, 5e9, (1e10 + 1e9 * 100 / 30) / 2), ("own memory", 1, 80, 1, 8e10, 8e10)]),
})  # fmt: skip


def test_operators_tell_overlapped_from_exposed(ask):
    tables = {
        "step": [phased_step()],
        "collective": [{"step": 0, "start_ns": 50, "dur_ns": 40}],
        "op": [{"op_id": 0, "step": 0, "start_ns": 20, "dur_ns": 40, "track": "0"}],
        "op_info": [{"op_id": 0, "phase": "forward"}],
    }
    found = {row[0]: row[1:] for row in ask("comm/split", tables, give=GIVE)}
    assert found["parts"] == (1, 100.0, 40.0, 10.0, 30.0, None, None, 20.0)
    assert found["trace"][2] == 40.0


@pytest.mark.parametrize(("events", "tail"), [
    pytest.param([event(0, 40)], 0, id="before the tail"), pytest.param([event(40, 20)], 10, id="across its start"),
    pytest.param([event(60, 10)], 10, id="inside"), pytest.param([event(90, 50)], 10, id="across its end"),
    pytest.param([event(60, 10), event(60, 10)], 10, id="twice the same"),
    pytest.param([event(60, 20), event(65, 5), event(70, 20)], 30, id="overlapping"),
    pytest.param([event(0, 70), event(55, 5), event(80, 5)], 25, id="a long one over a short one"),
    pytest.param([event(120, 10)], 0, id="behind the step"),
])  # fmt: skip
def test_the_tail_holds_the_union_of_the_events(ask, events, tail):
    tables = {"step": [until(0, 50, 100)], "collective": events}
    assert ask("comm/summary", tables, give="tail_ns") == [(tail,)]
