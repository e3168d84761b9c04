"""The verdict on growth: what could not be told is never steady."""

import pytest
from typed_rows import of_dicts

from pipeprof.report.words.memory import worded
from pipeprof.verdict import memory
from pipeprof.verdict.memory import why_unclear, worst

judge_growth = of_dicts(memory.judge_growth)

KIB, MIB = 1 << 10, 1 << 20


def row(slope, low, high, first=10 * MIB, span=100.0, **more):
    return {
        "rep": 0, "rank": 0, "device": "CPU", "name": "pool", "blocks": 24, "steps": 120, "span_steps": span,
        "first_bytes": first, "rises": 20, "most_rise_bytes": MIB, "most_fall_bytes": MIB,
        "last_bytes": None if first is None or slope is None else first + slope * span, "slope_bytes": slope,
        "slope_low_bytes": low, "slope_high_bytes": high, **more,
    }  # fmt: skip


def mib(*slopes, **more):
    return row(*(slope and slope * MIB for slope in slopes), **more)


def few(blocks=24):
    return row(None, None, None, span=None, first=None, blocks=blocks)


JUMP = mib(0.1, 0.05, 0.2, most_rise_bytes=9.5 * MIB)  # and then nothing
WIDE = mib(0.0, -0.25, 0.25)


@pytest.mark.parametrize(
    ("given", "verdict", "why"),
    [
        (mib(0.5, 0.25, 1.0), "growing", "grew by 512 KiB per step (99 % interval 256 KiB to 1.00 MiB)"),
        (mib(0.1, 0.05, 0.2), "growing", ""),
        (mib(0.001, 0.0005, 0.002), "steady", ""),  # surely more than 0, and surely nothing
        (mib(0.1, 0.05, 0.2, first=10_000 * MIB), "steady", ""),  # below 1 % of what there is
        (mib(-0.5, -1.0, -0.25), "shrinking", "shrank by 512 KiB per step (99 % interval 256 KiB to 1.00 MiB)"),
        (JUMP, "unclear", "most of it is one jump of 9.50 MiB; "),
        (mib(-0.1, -0.2, -0.05, most_fall_bytes=9.5 * MIB), "unclear", ""),
        (mib(0.0, 0.0, 0.0), "steady", "changed by less than 1.00 MiB over 120 steps"),
        (WIDE, "unclear", "between -256 KiB and 256 KiB per step (99 % interval): 20 of 23 parts of the training "),
        (mib(0.005, 0.001, 0.5), "unclear", ""),  # some growth for sure, perhaps much
        (mib(0.1, None, None), "unclear", ""),
        (few(1), "unclear", "only 1 part of the training has samples, at least 7"),
        (few(3), "unclear", "only 3 parts of the training have samples, at least"),
    ],
)
def test_verdicts_say_why(given, verdict, why):
    judged = judge_growth(given)
    assert judged["verdict"] == verdict
    assert worded(judged)["why"].startswith(why)


def test_it_says_how_much_and_why_not_and_growing_wins():
    judged = judge_growth(mib(0.5, 0.25, 1.0))
    assert (judged["grown_bytes"], judged["threshold_bytes"]) == (50 * MIB, MIB)
    steady, unclear, growing = ({**row(0, 0, 0), "verdict": word} for word in ("steady", "unclear", "growing"))
    assert (worst([steady, unclear, growing]), worst([steady, unclear]), worst([])) == (
        "growing", "unclear", "not_measured",
    )  # fmt: skip
    assert worst([growing | {"device": "host"}, growing | {"name": "launcher"}]) == "not_measured"
    little, wide, jump = map(judge_growth, (few(), WIDE, JUMP))
    found = [why_unclear(rows) for rows in ([little], [little, wide], [wide, jump])]
    assert found == ["few_parts", "wide_interval", "one_jump"]


@pytest.mark.parametrize(
    ("pool", "process", "verdict"),
    [
        (None, -0.001, "steady"),  # the process holds what the pool holds
        (None, None, "unclear"),
        (-0.5, -0.001, "unclear"),  # the pool has samples, and they do not say
    ],
)
def test_a_host_pool_with_too_few_samples_leaves_the_word_to_its_process(pool, process, verdict):
    def judged(low, **who):
        return judge_growth(mib(0.0, low, low and -low, **who))

    trainer = judged(process, device="process", name="trainer")
    assert worst([judged(pool), trainer]) == verdict
    worker = judged(None, device="process", name="dataset worker", pid=9)
    assert worst([worker, trainer]) == ("unclear" if process is None else "steady")
    assert worst([judged(None), {**trainer, "rank": 1}]) == "unclear"  # another rank says nothing about it
    assert worst([judged(None, device="NPU:0"), trainer]) == "unclear"  # nor does a process about a device


@pytest.mark.parametrize(
    ("slope", "low", "high", "verdict"),
    [(48, 46, 51, "steady"), (48, 40, 120, "unclear"), (70, 65, 75, "growing"), (49.1, 49.05, 49.2, "steady")],
)
def test_what_mindspore_keeps_of_each_pynative_step_is_no_leak(slope, low, high, verdict):
    process = {"device": "process", "name": "trainer", "most_rise_bytes": KIB}
    given = row(slope * KIB, low * KIB, high * KIB, span=400.0, **process)
    judged = judge_growth(given, "pynative")
    assert judged["verdict"] == verdict
    assert judge_growth(given, "graph")["verdict"] == "growing"
    assert judge_growth(given | {"device": "CPU", "name": "pool"}, "pynative")["verdict"] == "growing"
    assert verdict == "growing" or "keeps of each PyNative step (49.0 KiB)" in worded(judged)["why"]
