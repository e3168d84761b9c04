import pytest
from table_rows import MS, depths, fed, times

GIVE = "op_id consumer_id producers wait_share read_bytes in_bytes out_bytes source_rows epoch_batches batch_bytes"


def tables(**more):
    """A source of 10 ms, 5 of which it waits and 2 without a core, before a batch."""
    source = {"name": "F", "is_python": True, "source_rows": 160}
    timing = {"max_ns": 12 * MS, "cpu_ns": 3 * MS, "delay_ns": 2 * MS, "read_bytes": 900, "in_bytes": 0}
    service = times(1, "hook", 10, rows=8, out_bytes=1000, **timing)
    found = fed(("BatchOp", {}), ("GeneratorOp", source), **{"op_service": service, "queue": depths(0, 1)} | more)
    found["pipeline"][0] |= {"epoch_batches": 20, "batch_bytes": 8000}
    for row in found["fetch"]:
        row["depth"] = 0
    return found


def test_what_a_source_waits_for_and_what_it_hands_on(ask):
    assert ask("diagnose/storage", tables(), give=GIVE) == [
        (0, None, 1, None, None, None, None, None, 20, 8000),
        (1, 0, 0, pytest.approx(5 / 8), 900, 0, 1000, 160, 20, 8000),
    ]


def test_calls_before_the_steady_state_count_only_alone(ask):
    found = tables()
    found["op_service"][0] = found["op_service"][0] | {"read_bytes": 90_000}
    assert ask("diagnose/storage", found, give="read_bytes")[-1] == (900,)
    found["op_service"] = found["op_service"][:1]
    assert ask("diagnose/storage", found, give="read_bytes")[-1] == (90_000,)


def test_a_native_source_says_how_long_it_reads(ask):
    found = tables(op_service=times(1, "log", 10, rows=8, io_ns=4 * MS))
    assert ask("diagnose/storage", found, give="wait_share read_bytes")[-1] == (pytest.approx(0.4), None)


def test_hand_over_is_the_shortest_wait_with_batches_behind(ask):
    found = tables()
    assert ask("diagnose/storage", found, give="hand_over_ns")[-1] == (None,)
    for number, row in enumerate(found["fetch"][-5:]):
        row |= {"depth": 1, "wait_ns": (number + 2) * MS}
    assert ask("diagnose/storage", found, give="hand_over_ns")[-1] == (2 * MS,)
