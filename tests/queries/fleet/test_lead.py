"""fleet/lead: what leads the verdicts, and what it costs."""

import pytest
from fleet_rows import rank


def test_what_costs_most_hours_is_first_and_what_costs_nobody_knows_last(ask):
    part = {"cause": "part", "cause_detail": "evaluation"}
    rows = [
        rank("a", **part, cause_share=0.5), rank("b", **part, cause_share=0.25, workload="other"),
        rank("c", cause="input_bound", cause_detail="cpu", cause_share=0.6),
        rank("d", cause="input_bound", cause_detail="wait", cause_share=0.1), rank("e"), {"run": "f", "state": "damaged"},
    ]  # fmt: skip
    give = "place cause detail runs workloads rank_hours lost_hours"
    assert ask("fleet/lead", {"fleet_rank": rows}, give=give, top=5) == [
        (1, "part", "evaluation", 2, 2, 2.0, pytest.approx(0.75)),
        (2, "input_bound", None, 2, 1, 2.0, pytest.approx(0.7)),
        (3, "compute", None, 1, 1, 1.0, None),
    ]
    assert len(ask("fleet/lead", {"fleet_rank": rows}, top=1)) == 1
