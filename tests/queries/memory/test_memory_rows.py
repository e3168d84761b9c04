"""Queries of the memory."""

import numpy as np
import pytest
import table_rows
from query_cases import answers, row, rows
from scipy import stats
from typed_rows import of_dicts

from pipeprof.verdict import memory
from pipeprof.verdict.memory import Z

GIVE = "position name type blocks bytes share t_ns oldest_ns"
block = row("op_id bytes produced_ns released_ns")
TABLES = {
    "op_info": [{"op_id": 0, "name": "conv", "type": "Conv2D"}, {"op_id": 1, "name": "relu", "type": "ReLU"}],
    "allocation": [
        block(0, 60, 0, 100), block(0, 20, 5, 11), block(1, 15, 8, None), block(None, 5, 9, 10),
        block(1, 90, 0, 4), block(1, 4, 10, 11),
    ],
}  # fmt: skip
BY_OP = "position name count self_memory_bytes memory_bytes self_device_memory_bytes blocks allocated_bytes kept_bytes"
LEVELS = "device name pid part t_ns samples first_bytes low_bytes high_bytes high_ns last_bytes reserved_bytes"
judge_growth = of_dicts(memory.judge_growth)
STEP_NS = 1000
MIB = 1 << 20
GROWTH = "device name pid steps samples blocks span_steps first_bytes last_bytes rises most_rise_bytes most_fall_bytes slope_bytes"


def steps(count, warmup=0):
    return table_rows.steps(*["warmup"] * warmup, *["train"] * (count - warmup), length=STEP_NS)


def pool(levels, pid=None):
    """Two samples per step: the level at its start, and much more in the middle."""
    return [
        {"t_ns": n * STEP_NS + at, "device": "CPU", "name": "pool", "pid": pid, "allocated_bytes": int(level) + more}
        for n, level in enumerate(levels)
        for at, more in ((0, 0), (500, 50 * MIB))
    ]


@pytest.fixture
def growth(ask):
    def rows(levels, warmup=0, **params):
        taken = {"skip_steps": 0, "blocks": 24, "z": Z, **params}
        memory = [row for n, level in enumerate(levels) for row in pool(level, n + 1)]
        return ask("memory/growth", {"step": steps(len(levels[0]), warmup), "memory": memory}, **taken)

    return rows


def made(seed, leak=0.0, count=240):
    """Levels of a training: a ramp while caches fill, then noise, and a leak of so many bytes per step."""
    chance = np.random.default_rng(seed)
    at = np.arange(count)
    level = 400 * MIB + chance.exponential(6 * MIB, count) + leak * at
    return level - 200 * MIB * np.exp(-at / 3)


living = row("bytes produced_ns released_ns")
PEAK = "t_ns peak_bytes peak_blocks blocks allocated_bytes kept_blocks kept_bytes"


def of(device, *blocks):
    return [one | {"device": device} for one in blocks]


test_rows_of_memory_alive_at_peak = answers("memory/alive_at_peak", {
    "operators by what they made that was alive": (GIVE, TABLES,
        [(1, "relu", "ReLU", 1, 90, 0.6, 0, 0), (2, "conv", "Conv2D", 1, 60, 0.4, 0, 0)]),
    "operators by what they made that was alive, too": (GIVE, TABLES
        | {"allocation": [row for row in TABLES["allocation"] if row["bytes"] != 90]},
        [(1, "conv", "Conv2D", 2, 80, 0.8, 9, 9), (2, "relu", "ReLU", 1, 15, 0.15, 9, 1)], {"top": 2}),
    "operators by what they made that was alive, as well": ("name bytes", TABLES
        | {"allocation": [row for row in TABLES["allocation"] if row["bytes"] != 90]},
        [("conv", 80), ("relu", 15), (None, 5)], {"top": 3}),
}, top=9)  # fmt: skip

test_rows_of_memory_by_op = answers("memory/by_op", {
    "executions and blocks of one name are added up": ({
            "op_info": [{"op_id": n, "name": name, "type": "T"} for n, name in enumerate(("a", "a", "b"))],
            "op": rows("op_id start_ns dur_ns self_memory_bytes memory_bytes", (0, 0, 1, 5, 9), (1, 2, 1, -2, 1),
                       (2, 4, 1, None, None)),
            "allocation": rows("op_id bytes produced_ns released_ns", (2, 7, 0, 3), (2, 8, 1, None), (None, 1, 1, 4))},
        (BY_OP, [(1, "a", 2, 3, 10, None, None, None, None), (2, "b", None, None, None, None, 2, 15, 8),
                 (3, None, None, None, None, None, 1, 1, 0)]), ("position", [(1,)], {"top": 1})),
}, top=9)  # fmt: skip

test_rows_of_memory_curve = answers("memory/curve", {
    "least and most in equal parts of the time": (LEVELS,
        {"memory": rows("device name t_ns allocated_bytes reserved_bytes pid rss_bytes",
                        ("CPU", "pool", 0, 5, 8, None, None), ("CPU", "pool", 40, 9, 16, None, None),
                        ("CPU", "pool", 60, 2, 8, None, None), ("CPU", "pool", 99, None, None, None, None),
                        ("process", "trainer", 99, 1, None, 7, 70))},
        [("CPU", "pool", 0, 0, 0, 2, 5, 5, 9, 40, 9, 16), ("CPU", "pool", 0, 1, 60, 1, 2, 2, 2, 60, 2, 8),
         ("process", "trainer", 7, 1, 99, 1, 70, 70, 70, 99, 70, None)]),
    "the first and the last level of a part are those by time": ("first_bytes last_bytes",
        {"memory": [{"t_ns": at, "device": "CPU", "name": "pool", "allocated_bytes": level}
                    for at, level in ((0, 5), (1, 2), (2, 9), (3, 7), (0, 6), (3, 3))]}, [(5, 7)], {"points": 1}),
    "an ended process has no resident set": ("device low_bytes",
        {"memory": [{"t_ns": 5, "device": "process", "rss_bytes": 0},
                    {"t_ns": 6, "device": "host", "allocated_bytes": 0}]}, [("host", 0)], {"points": 4}),
}, points=2)  # fmt: skip

test_rows_of_memory_evidence = answers("memory/evidence", {
    "shares of what was released by how it is known": (
        "rank blocks released_bytes matched_bytes inferred_bytes earlier_bytes matched_ratio",
        {"allocation": rows("bytes released_ns evidence rank", (60, 2, "matched", None), (30, 2, "inferred", None),
                            (10, 2, "earlier", None), (900, None, "unseen", None), (5, None, "unseen", 1),
                            (7, 3, None, 2))}, [(0, 4, 100, 60, 30, 10, 0.6), (1, 1, 0, 0, 0, 0, None)]),
})  # fmt: skip

test_rows_of_memory_growth = answers("memory/growth", {
    "floor of each block and the slope between them": (GROWTH,
        {"step": steps(7, warmup=1), "memory": pool([900, 100, 110, 120, 130, 140, 150])},
        [("CPU", "pool", 0, 6, 12, 3, 4.0, 100, 140, 2, 20, -20, 10.0)]),
    "no samples in training steps is no row": ("", {"step": steps(2, warmup=2), "memory": pool([5, 5])}, [],
        {"blocks": 4, "z": Z}),
}, skip_steps=0, blocks=3, z=1.0)  # fmt: skip

test_rows_of_memory_lifetime = answers("memory/lifetime", {
    "the largest first": ({"allocation": rows("address bytes produced_ns released_ns op_id", (16, 4, 9, 12, 0),
            (32, 8, 3, None, 5), (None, 4, 1, 2, None), (1, 0, 1, 2, None)), "op_info": [{"op_id": 0, "name": "conv"}]},
        ("position address bytes produced_ns released_ns op_id name",
         [(1, 32, 8, 3, None, 5, None), (2, None, 4, 1, 2, None, None), (3, 16, 4, 9, 12, 0, "conv")]),
        ("position", [(1,)], {"top": 1})),
}, top=3)  # fmt: skip

test_rows_of_memory_live_curve = answers("memory/live_curve", {
    "blocks add up over their lifetimes": ("t_ns changes low_bytes high_bytes",
        {"allocation": [living(10, 0, 60), living(5, 20, None), living(7, 30, 31), living(99, 40, 40),
                        living(0, 1, 2)]},
        [(0, 1, 10, 10), (20, 1, 15, 15), (30, 1, 22, 22), (31, 1, 15, 15), (60, 1, 5, 5)], {"points": 61}),
    "a block that follows another at once does not add to it": ("changes low_bytes high_bytes high_ns",
        {"allocation": [living(10, 0, 50), living(10, 50, 60)]}, [(3, 0, 10, 0)]),
    "what stays after a part is that of its last change": ("first_bytes high_bytes high_ns last_bytes last_ns",
        {"allocation": [living(10, 0, 50), living(3, 7, None)]}, [(10, 13, 7, 3, 50)]),
    "the moment with the most is known to the ns": ("t_ns high_bytes high_ns",
        {"allocation": [living(10, 0, 50), living(10, 7, 60), living(1, 9, 11)]}, [(0, 21, 9)]),
}, points=1)  # fmt: skip

test_rows_of_memory_peak = answers("memory/peak", {
    "the first moment with the most": (PEAK,
        {"allocation": [living(10, 0, 30), living(5, 10, 20), living(5, 22, None), living(3, 50, 60)]},
        [(10, 15, 2, 4, 23, 1, 5)]),
})  # fmt: skip


def test_bytes_alive_are_those_of_the_peak(ask):
    (peak,) = ask("memory/peak", TABLES)
    alive = ask("memory/alive_at_peak", TABLES, top=99)
    assert sum(row["bytes"] for row in alive) == peak["peak_bytes"]
    assert sum(row["blocks"] for row in alive) == peak["peak_blocks"]


def test_too_few_blocks_have_no_interval(growth):
    (found,) = growth([[10, 20, 30, 40, 50, 60]])
    assert (found["slope_bytes"], found["slope_low_bytes"], found["slope_high_bytes"]) == (10.0, None, None)
    assert judge_growth(found)["verdict"] == "unclear"


def test_first_training_steps_may_be_left_out(growth):
    (found,) = growth([[0, 500, 1000, 1000, 1000, 1000]], skip_steps=2)
    assert (found["steps"], found["slope_bytes"]) == (4, 0)


def test_slope_and_interval_as_by_another_program(growth):
    levels = (np.random.default_rng(3).normal(0, 3 * MIB, 24) + 100 * MIB + np.arange(24) * MIB // 4).astype(np.int64)
    (found,) = growth([levels])
    slope, _, low, high = stats.theilslopes(levels, np.arange(24), alpha=0.99)
    assert found["slope_bytes"] == pytest.approx(slope)
    assert found["slope_low_bytes"] <= low
    assert found["slope_high_bytes"] >= high
    assert found["slope_high_bytes"] - found["slope_low_bytes"] < 1.2 * (high - low)


def test_noise_is_seldom_taken_for_a_leak(growth):
    judged = [judge_growth(row)["verdict"] for row in growth([made(seed) for seed in range(100)], warmup=10)]
    assert judged.count("growing") <= 3


def test_a_leak_of_a_fortieth_of_the_noise_per_step_is_found(growth):
    leak = 0.15 * MIB
    found = growth([made(seed, leak) for seed in range(100)], warmup=10)
    judged = [judge_growth(row)["verdict"] for row in found]
    assert judged.count("growing") >= 95
    inside = [row["slope_low_bytes"] <= leak <= row["slope_high_bytes"] for row in found]
    assert sum(inside) >= 95


def test_one_jump_is_seldom_taken_for_a_leak(growth):
    def jumped(seed):
        chance = np.random.default_rng(seed)
        level = 400 * MIB + chance.exponential(6 * MIB, 240)
        level[chance.integers(20, 220) :] += 40 * MIB
        return level

    judged = [judge_growth(row)["verdict"] for row in growth([jumped(seed) for seed in range(100)], warmup=10)]
    assert judged.count("growing") <= 3


def test_of_several_devices_the_one_that_held_most_counts(ask):
    allocation = [
        *of("CPU", living(60, 0, 50), living(30, 5, None)), *of("CUDA:0", living(70, 0, 10), living(70, 20, 30)),
        *of("CUDA:1", living(80, 2, 40), living(12, 3, None), living(1, 3, 3)),
    ]  # fmt: skip
    tables = {"allocation": allocation}
    assert ask("memory/peak", tables, give=f"device devices {PEAK}") == [("CUDA:1", 3, 3, 92, 2, 3, 93, 1, 12)]
    found = ask("memory/live_curve", tables, points=1, give="device low_bytes high_bytes last_bytes")
    assert found == [("CUDA:1", 12, 92, 12)]
    assert ask("memory/alive_at_peak", tables, top=9, give="blocks bytes share") == [(2, 92, 1)]
    assert ask("memory/lifetime", tables, top=9, give="bytes") == [(80,), (12,), (1,)]
