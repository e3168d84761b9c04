"""The slope of the floor: by hand, against another program's, and how often it errs."""

import numpy as np
import pytest
import table_rows
from scipy import stats
from typed_rows import of_dicts

from pipeprof.verdict import memory
from pipeprof.verdict.memory import Z

judge_growth = of_dicts(memory.judge_growth)

STEP_NS = 1000
MIB = 1 << 20
GIVE = "device name pid steps samples blocks span_steps first_bytes last_bytes rises most_rise_bytes most_fall_bytes slope_bytes"


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


def test_floor_of_each_block_and_the_slope_between_them(ask):
    memory = pool([900, 100, 110, 120, 130, 140, 150])
    tables = {"step": steps(7, warmup=1), "memory": memory}
    (found,) = ask("memory/growth", tables, skip_steps=0, blocks=3, z=1.0, give=GIVE)
    assert found == ("CPU", "pool", 0, 6, 12, 3, 4.0, 100, 140, 2, 20, -20, 10.0)


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


def made(seed, leak=0.0, count=240):
    """Levels of a training: a ramp while caches fill, then noise, and a leak of so many bytes per step."""
    chance = np.random.default_rng(seed)
    at = np.arange(count)
    level = 400 * MIB + chance.exponential(6 * MIB, count) + leak * at
    return level - 200 * MIB * np.exp(-at / 3)


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


def test_no_samples_in_training_steps_is_no_row(ask):
    memory = pool([5, 5])
    assert ask("memory/growth", {"step": steps(2, warmup=2), "memory": memory}, skip_steps=0, blocks=4, z=Z) == []
