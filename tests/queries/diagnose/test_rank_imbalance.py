import pytest
from table_rows import op, step


def tables(times, length=100):
    """Per rank and step: time in the forward pass, then an all-reduce until the end of the step."""
    found = {"step": [], "op": [], "op_info": []}
    for rank, forwards in times.items():
        here = {"rank": rank}
        found["op_info"] += [{**here, "op_id": 0, "phase": "forward"}, {**here, "op_id": 1, "phase": "communication"}]
        for number, forward in enumerate(forwards):
            begin = number * length
            found["step"].append(step(number, begin, begin + length, rank=rank))
            if forward is None:
                continue
            found["op"].append(op(0, forward, number, begin, rank=rank))
            found["op"].append(op(1, length - forward, number, begin + forward, rank=rank))
    return found


GIVE = "rank part median_ns diff_ns diff_low_ns diff_high_ns"


def of(rows, part):
    return [row[:1] + row[2:] for row in rows if row[1] == part]


def test_the_slow_rank_has_the_longest_own_time_and_the_least_communication(ask):
    rows = ask("diagnose/rank_imbalance", tables({0: [30, 30, 30], 1: [50, 50, 50], 2: [40, 40, 40]}), give=GIVE)
    assert of(rows, "own") == [(0, 30.0, -15.0, -15.0, -15.0), (1, 50.0, 15.0, 15.0, 15.0), (2, 40.0, 0.0, 0.0, 0.0)]
    assert of(rows, "forward") == of(rows, "own")
    assert [row[:2] for row in of(rows, "communication")] == [(0, 70.0), (1, 50.0), (2, 60.0)]
    assert [row[:2] for row in of(rows, "waiting")] == [(0, 20.0), (1, 0.0), (2, 10.0)]
    assert [row[:2] for row in of(rows, "host_gap")] == [(0, 0.0), (1, 0.0), (2, 0.0)]


def test_what_all_ranks_have_in_common_cancels(ask):
    rows = ask("diagnose/rank_imbalance", tables({0: [10, 50, 90], 1: [12, 52, 92]}), give=GIVE)
    assert of(rows, "own")[1] == (1, 52.0, 2.0, 2.0, 2.0)


def test_only_steps_of_every_rank_count(ask):
    rows = ask("diagnose/rank_imbalance", tables({0: [10, None, 30], 1: [20, 20, 70]}), give="part ranks steps diff_ns")
    assert [row[1:] for row in rows if row[0] == "own"] == [(2, 2, -25.0), (2, 2, 25.0)]


def test_quartiles_and_means(ask):
    rows = ask(
        "diagnose/rank_imbalance", tables({0: [0, 0, 0, 0, 0], 1: [0, 10, 20, 30, 90]}), give=f"{GIVE} mean_ns step_ns"
    )
    assert of(rows, "own")[1] == (1, 20.0, 20.0, 10.0, 30.0, pytest.approx(30), 100.0)


@pytest.mark.parametrize("times", [{0: [10, 10]}, {0: [10, None], 1: [None, 10]}])
def test_one_rank_or_no_common_step_gives_nothing(ask, times):
    assert ask("diagnose/rank_imbalance", tables(times)) == []


def stages_of_two(times):
    """As `tables`, of ranks whose steps send first (0 and 1) or receive first (2 and 3)."""
    found = tables(times)
    found["collective"] = [
        {"rank": rank, "step": number, "kind": kind, "name": kind, "start_ns": 100 * number + place, "dur_ns": 0}
        for rank in times
        for number in range(len(times[rank]))
        for place, kind in enumerate(("send", "receive") if rank < 2 else ("receive", "send"))
    ]
    return found


def test_ranks_of_different_stages_are_not_compared(ask):
    even = stages_of_two({0: [20, 20], 1: [20, 20], 2: [80, 80], 3: [80, 80]})
    assert [row[3] for row in ask("diagnose/rank_imbalance", even, give=GIVE) if row[1] == "own"] == [0.0] * 4
    slow = stages_of_two({0: [20, 20], 1: [30, 30], 2: [80, 80], 3: [80, 80]})
    assert of(ask("diagnose/rank_imbalance", slow, give=GIVE), "own")[1] == (1, 30.0, 10.0, 10.0, 10.0)


def test_the_only_rank_of_its_stage_has_nothing_to_be_compared_with(ask):
    alone = stages_of_two({1: [20, 20], 2: [80, 80]})
    assert [row[2:] for row in of(ask("diagnose/rank_imbalance", alone, give=GIVE), "own")] == [(None, None, None)] * 2
