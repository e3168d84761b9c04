"""Ranks that do the same work, their own division of the steps, and what they are compared by."""

import pytest
from table_rows import op, phased_step

PEERS = "SELECT rank, peers, basis FROM rank_peer ORDER BY rank"


def step(rank, number=0, **more):
    begin = 100 * number
    return phased_step(number, begin, begin + 10, begin + 70, begin + 100, rank=rank, **more)


def reduced(*ranks):
    """Tables of ranks with an all-reduce in the tail of their step."""
    made = [{"rank": rank, "step": 0, "start_ns": 60, "dur_ns": 20} for rank in ranks]
    return {"step": [step(rank) for rank in ranks], "collective": made}


def moves(rank, *kinds):
    return [
        {"rank": rank, "step": 0, "name": f"{kind}{place}", "kind": kind, "start_ns": place, "dur_ns": 1}
        for place, kind in enumerate(kinds)
    ]


def test_without_stages_all_ranks_are_peers(look):
    assert look(PEERS, {"step": [step(0), step(3)]}) == [(0, 0, "all"), (3, 0, "all")]


def test_a_stage_goes_from_its_first_rank_to_the_next_stage(look):
    rows = [{"rank": rank, "stage_index": index} for rank, index in ((0, 0), (4, 1), (6, 2))]
    found = look(PEERS, {"step": [step(rank) for rank in (0, 3, 4, 5, 9)], "step_split": rows})
    assert [row for row in found if row[0] in (0, 3, 4, 5, 9)] == [
        (0, 0, "stage"), (3, 0, "stage"), (4, 1, "stage"), (5, 1, "stage"), (9, 2, "stage"),
    ]  # fmt: skip


def test_ranks_that_send_and_receive_alike_are_peers(look):
    ends = {"send": ("send", "receive"), "receive": ("receive", "send")}
    collective = [
        *moves(0, *ends["send"]), *moves(1, *ends["send"]), *moves(2, *ends["receive"]), *moves(3, "all_reduce"),
    ]  # fmt: skip
    found = look(PEERS, {"step": [step(rank) for rank in range(4)], "collective": collective})
    assert [row[2] for row in found] == ["send_receive"] * 4
    groups = [row[1] for row in found]
    assert groups[0] == groups[1]
    assert len({groups[0], groups[2], groups[3]}) == 3


def pipeline(*chains):
    """Rows of `collective` in which each chain's ranks pass a batch down and its gradients up, in groups of two."""
    rows = []
    for chain in chains:
        for place, rank in enumerate(chain):
            before, behind = chain[place - 1 : place], chain[place + 1 : place + 2]
            calls = [("receive", other) for other in before if place] + [("send", other) for other in behind]
            calls += [("receive", other) for other in behind] + [("send", other) for other in before if place]
            rows += [
                {"rank": rank, "step": 0, "name": kind, "kind": kind, "start_ns": number, "dur_ns": 1,
                 "group_name": "pair-{}-{}".format(*sorted((rank, other)))}
                for number, (kind, other) in enumerate(calls)
            ]  # fmt: skip
    return rows


@pytest.mark.parametrize(
    "chains", [((0, 2, 4, 6), (1, 3, 5, 7)), ((7, 5, 3, 1), (6, 4, 2, 0)), ((0, 1, 2, 3), (4, 5, 6, 7))]
)
def test_stages_in_the_middle_are_told_apart_by_what_they_receive_from(look, chains):
    found = look(PEERS, {"step": [step(rank) for rank in range(8)], "collective": pipeline(*chains)})
    assert {rank: peers for rank, peers, _basis in found} == {
        rank: stage for chain in chains for stage, rank in enumerate(chain)
    }


def test_without_every_sender_ranks_are_compared_by_how_they_send_and_receive(look):
    rows = [row for row in pipeline((0, 1, 2, 3)) if row["rank"] != 0]
    found = look(PEERS, {"step": [step(rank) for rank in range(1, 4)], "collective": rows})
    assert [(rank, peers) for rank, peers, _basis in found] == [(1, 1), (2, 1), (3, 0)]


def test_the_division_of_a_rank_leaves_out_stages_and_warm_up(look):
    common = {"source": "step_trace_time", "computing_ns": 50, "exposed_ns": 30}
    tables = {
        "step": [step(0, 0, kind="warmup"), step(0, 1)],
        "step_split": [
            {**common, "step": 0, "source_step": 1},
            {
                **common,
                "step": 1,
                "source_step": 2,
                "free_ns": 20,
                "exposed_without_receive_ns": 10,
                "overlapped_ns": 5,
            },
            {**common, "stage_index": 0, "source_step": 2},
            {**common, "rank": 1},
        ],
    }
    text = "SELECT rank, position, step_ns, receive_ns, communication_ns FROM rank_split ORDER BY rank, position"
    assert look(text, tables) == [(0, 2, 100, 20, 35), (1, 0, 80, None, None)]


def phases(look, tables):
    columns = "source, phase, rank, phase_ns, step_ns"
    return look(f"SELECT {columns} FROM rank_phase WHERE position = 0 ORDER BY source, phase, rank", tables)  # noqa: S608


def test_a_step_trace_is_compared_without_its_communication(look):
    found = [row for row in phases(look, reduced(0, 1)) if row[2] == 0]
    assert found == [
        ("trace", "communication", 0, 20, 100),
        ("trace", "data_wait", 0, 10, 100),
        ("trace", "forward_backward", 0, 50, 100),
        ("trace", "own", 0, 80, 100),
        ("trace", "step", 0, 100, 100),
        ("trace", "tail", 0, 20, 100),
        ("trace", "until_bp", 0, 70, 100),
    ]  # fmt: skip


def test_without_communication_the_plain_phases_are_compared(look):
    found = phases(look, {"step": [step(0), step(1, bp_ns=None)]})
    assert {row[0] for row in found} == {"phase"}
    assert [(row[1], row[3]) for row in found if row[2] == 1] == [("compute", 90), ("data_wait", 10), ("step", 100)]
    assert ("phase", "until_bp", 0, 70, 100) in found


def test_the_source_that_most_ranks_share_is_taken(look):
    times = {"computing_ns": 60, "exposed_ns": 30, "free_ns": 10}
    split = {"source": "step_trace_time", "source_step": 0, "step": 0, **times}
    both = [{**split, "rank": rank} for rank in (0, 1)]
    assert {row[0] for row in phases(look, {**reduced(0, 1), "step_split": both})} == {"split"}
    assert {row[0] for row in phases(look, {**reduced(0, 1), "step_split": both[:1]})} == {"trace"}


@pytest.mark.parametrize(("ops", "expected"), [((0, 1), "parts"), ((0,), "trace")])
def test_recorded_operators_count_most(look, ops, expected):
    tables = {
        "op": [op(0, 40, start=10, rank=rank) for rank in ops],
        "op_info": [{"rank": rank, "op_id": 0, "phase": "forward"} for rank in ops],
    }
    found = phases(look, reduced(0, 1) | tables)
    assert {row[0] for row in found} == {expected}
    if expected == "parts":
        assert ("parts", "own", 0, 80, 100) in found
        assert ("parts", "forward", 1, 40, 100) in found
