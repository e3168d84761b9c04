"""fleet/cause: which operators limit, over runs and workloads."""

from fleet_rows import HOUR, rank

BOUND = {"cause": "input_bound", "op_type": "MapOp", "op_name": "decode"}


def test_the_same_code_is_one_cause_in_all_workloads(ask):
    rows = [
        rank("a", **BOUND, code="t.py:3", op_kind="cpu", wait_ns=HOUR // 2),
        rank("b", **BOUND, code="t.py:3", op_kind="cpu", wait_ns=HOUR // 2, workload="other"),
        rank("c", **BOUND, code="t.py:3", op_kind="gil", wait_ns=HOUR // 4),
        rank("d", **BOUND, call="t.py:9", wait_ns=HOUR // 4), rank("e", wait_ns=HOUR),
    ]  # fmt: skip
    give = "place op_type op_name code op_kind runs workloads rank_hours wait_hours"
    assert ask("fleet/cause", {"fleet_rank": rows}, give=give, top=5) == [
        (1, "MapOp", "decode", "t.py:3", "cpu", 3, 2, 3.0, 1.25), (2, "MapOp", "decode", "t.py:9", None, 1, 1, 1.0, 0.25),
    ]  # fmt: skip
