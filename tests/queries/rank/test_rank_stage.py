import pytest


def row(rank, computing, exposed, **more):
    return {"rank": rank, "source": "cluster_step_trace", "computing_ns": computing, "exposed_ns": exposed, **more}


def test_stages_with_their_bubbles_and_the_rank_that_computes_longest(ask):
    rows = [
        row(0, 70, 30, free_ns=0, stage_ns=100, bubble_ns=0),
        row(1, 90, 10, free_ns=0, stage_ns=100, bubble_ns=0),
        row(2, 80, 60, free_ns=20, stage_ns=80, bubble_ns=80, exposed_without_receive_ns=10),
        {"rank": 0, "stage_index": 0, "computing_ns": 90, "exposed_ns": 30},
        {"rank": 2, "stage_index": 1, "computing_ns": 80, "exposed_ns": 60},
    ]
    give = "peers basis first_rank last_rank ranks step_ns computing_ns exposed_ns receive_ns bubble_ns bubble_share slowest_rank"
    assert ask("rank/stage", {"step_split": rows}, give=give) == [
        (0, "stage", 0, 1, 2, 100.0, 80.0, 20.0, None, 0.0, 0.0, 1),
        (1, "stage", 2, 2, 1, 160.0, 80.0, 60.0, 50.0, 80.0, 0.5, 2),
    ]
    excess = [found["computing_excess"] for found in ask("rank/stage", {"step_split": rows})]
    assert excess == [pytest.approx(0.125), pytest.approx(0.0)]
