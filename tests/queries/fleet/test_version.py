"""fleet/version: each version beside the one before it."""

from fleet_rows import rank


def test_versions_in_the_order_of_their_first_use(ask):
    rows = [
        rank("a", mindspore="2.10", started_at="2026-11-01T00:00:00Z", median_ns=100.0),
        rank("b", mindspore="2.9", started_at="2026-11-03T00:00:00Z", median_ns=150.0),
        rank("c", mindspore="2.9", started_at="2026-11-04T00:00:00Z", median_ns=250.0),
        rank("d", mindspore=None), rank("e", mindspore="2.9", machine="other"),
    ]  # fmt: skip
    found = ask("fleet/version", {"fleet_rank": rows}, give="machine turn mindspore runs step_ns before ratio")
    assert found == [
        ("m", 1, "2.10", 1, 100.0, None, None), ("m", 2, "2.9", 2, 200.0, "2.10", 2.0),
        ("other", 1, "2.9", 1, 100.0, None, None),
    ]  # fmt: skip
