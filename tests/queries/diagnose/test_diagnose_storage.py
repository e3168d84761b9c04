import pytest

MS = 1_000_000
KEY = {"pipeline_id": 0}
ENDS = range(100, 4001, 100)
GIVE = "op_id consumer_id producers wait_share read_bytes in_bytes out_bytes source_rows epoch_batches batch_bytes"


def tables(**more):
    """A source of 10 ms, 5 of which it waits and 2 without a core, before a batch."""
    ops = [{"op_type": "BatchOp"}, {"op_type": "GeneratorOp", "name": "F", "is_python": True, "source_rows": 160}]
    timing = {
        "source": "hook", "avg_ns": 10 * MS, "max_ns": 12 * MS, "cpu_ns": 3 * MS, "delay_ns": 2 * MS, "rows": 8,
        "batches": 1, "read_bytes": 900, "in_bytes": 0, "out_bytes": 1000,
    }  # fmt: skip
    return {
        "pipeline": [KEY | {"pipeline_key": "a", "role": "train", "epoch_batches": 20, "batch_bytes": 8000}],
        "pipeline_op": [KEY | {"op_id": n, "workers": 1, "capacity": 4, "node": n} | op for n, op in enumerate(ops)],
        "pipeline_edge": [KEY | {"producer_id": 1, "consumer_id": 0}],
        "fetch": [
            KEY | {"fetch": n, "start_ns": (end - 60) * MS, "wait_ns": 60 * MS, "side": "iterator", "depth": 0}
            for n, end in enumerate(ENDS)
        ],
        "op_service": [KEY | {"op_id": 1, "t_ns": end * MS} | timing for end in ENDS],
        "queue": [KEY | {"op_id": 0, "t_ns": end * MS, "depth": 1, "capacity": 4} for end in ENDS],
    } | more


def test_what_a_source_waits_for_and_what_it_hands_on(ask):
    assert (
        ask("diagnose/storage", tables(), give=GIVE)
        == [
            (-1, None, 0, None, None, None, None, None, 20, 8000),
            (0, None, 1, None, None, None, None, None, 20, 8000),
            (1, 0, 0, pytest.approx(5 / 8), 900, 0, 1000, 160, 20, 8000),
        ][1:]
    )


def test_calls_before_the_steady_state_count_only_alone(ask):
    found = tables()
    found["op_service"][0] = found["op_service"][0] | {"read_bytes": 90_000}
    assert ask("diagnose/storage", found, give="read_bytes")[-1] == (900,)
    found["op_service"] = found["op_service"][:1]
    assert ask("diagnose/storage", found, give="read_bytes")[-1] == (90_000,)


def test_a_native_source_says_how_long_it_reads(ask):
    line = {"source": "log", "avg_ns": 10 * MS, "io_ns": 4 * MS, "rows": 8, "batches": 1}
    found = tables(op_service=[KEY | {"op_id": 1, "t_ns": end * MS} | line for end in ENDS])
    assert ask("diagnose/storage", found, give="wait_share read_bytes")[-1] == (pytest.approx(0.4), None)


def test_hand_over_is_the_shortest_wait_with_batches_behind(ask):
    found = tables()
    assert ask("diagnose/storage", found, give="hand_over_ns")[-1] == (None,)
    for number, row in enumerate(found["fetch"][-5:]):
        row |= {"depth": 1, "wait_ns": (number + 2) * MS}
    assert ask("diagnose/storage", found, give="hand_over_ns")[-1] == (2 * MS,)
