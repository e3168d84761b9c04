"""fleet/wait: workloads by the rank-hours that they wait for data."""

from fleet_rows import HOUR, rank

GIVE = "place workload runs input_bound rank_hours wait_hours data_wait_share"


def test_ranks_and_repetitions_add_up(ask):
    rows = [rank("a", rep=rep, rank=at, wait_ns=HOUR // 2, cause="input_bound") for rep in (0, 1) for at in (0, 1)]
    rows += [rank("b", wait_ns=0), rank("c", workload="other", wait_ns=HOUR)]
    assert ask("fleet/wait", {"fleet_rank": rows}, give=GIVE, top=5) == [
        (1, "train", 2, 1, 5.0, 2.0, 0.4), (2, "other", 1, 0, 1.0, 1.0, 1.0),
    ]  # fmt: skip


def test_waiting_that_was_not_seen_is_unknown_and_last(ask):
    rows = [rank("a", wait_ns=None), rank("b", workload="other", wait_ns=0), {"run": "c", "state": "damaged"}]
    found = ask("fleet/wait", {"fleet_rank": rows}, give=GIVE, top=5)
    assert [(row[1], row[5], row[6]) for row in found] == [("other", 0.0, 0.0), ("train", None, None)]
    assert len(ask("fleet/wait", {"fleet_rank": rows}, top=1)) == 1
