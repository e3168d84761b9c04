"""The verdict on growth: what could not be told is never steady."""

import pytest
from typed_rows import of_dicts

from pipeprof.report.words.memory import worded
from pipeprof.verdict import memory
from pipeprof.verdict.memory import why_unclear, worst

judge_growth = of_dicts(memory.judge_growth)

MIB = 1 << 20


def row(slope, low, high, first=10 * MIB, span=100.0, **more):
    return {
        "rep": 0, "rank": 0, "device": "CPU", "name": "pool", "blocks": 24, "steps": 120, "span_steps": span, "first_bytes": first, "rises": 20,
        "most_rise_bytes": MIB, "most_fall_bytes": MIB,
        "last_bytes": None if first is None or slope is None else first + slope * span, "slope_bytes": slope, "slope_low_bytes": low, "slope_high_bytes": high, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (row(0.1 * MIB, 0.05 * MIB, 0.2 * MIB), "growing"),
        (row(0.001 * MIB, 0.0005 * MIB, 0.002 * MIB), "steady"),  # surely more than 0, and surely nothing
        (row(0.1 * MIB, 0.05 * MIB, 0.2 * MIB, first=10_000 * MIB), "steady"),  # below 1 % of what there is
        (row(-0.1 * MIB, -0.2 * MIB, -0.05 * MIB), "shrinking"),
        (row(0.1 * MIB, 0.05 * MIB, 0.2 * MIB, most_rise_bytes=9.5 * MIB), "unclear"),  # one jump, then nothing
        (row(-0.1 * MIB, -0.2 * MIB, -0.05 * MIB, most_fall_bytes=9.5 * MIB), "unclear"),
        (row(0.0, 0.0, 0.0), "steady"),
        (row(0.0, -0.2 * MIB, 0.2 * MIB), "unclear"),
        (row(0.005 * MIB, 0.001 * MIB, 0.5 * MIB), "unclear"),  # some growth for sure, perhaps much
        (row(0.1 * MIB, None, None), "unclear"),
        (row(None, None, None, span=None, first=None), "unclear"),
    ],
)
def test_verdicts(given, verdict):
    assert judge_growth(given)["verdict"] == verdict


def test_it_says_how_much_and_how_sure():
    judged = judge_growth(row(0.5 * MIB, 0.25 * MIB, 1.0 * MIB))
    assert worded(judged)["why"] == "grew by 512 KiB per step (99 % interval 256 KiB to 1.00 MiB)"
    assert (judged["grown_bytes"], judged["threshold_bytes"]) == (50 * MIB, MIB)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (row(-0.5 * MIB, -1.0 * MIB, -0.25 * MIB), "shrank by 512 KiB per step (99 % interval 256 KiB to 1.00 MiB)"),
        (row(0.0, 0.0, 0.0), "changed by less than 1.00 MiB over 120 steps"),
        (row(0.1 * MIB, 0.05 * MIB, 0.2 * MIB, most_rise_bytes=9.5 * MIB), "most of it is one jump of 9.50 MiB; "),
        (
            row(0.0, -0.25 * MIB, 0.25 * MIB),
            "between -256 KiB and 256 KiB per step (99 % interval): 20 of 23 parts of the training ",
        ),
        (row(None, None, None, span=None, first=None, blocks=1), "only 1 part of the training has samples, at least 7"),
        (row(None, None, None, span=None, first=None, blocks=3), "only 3 parts of the training have samples, at least"),
    ],
)
def test_every_verdict_says_why(given, why):
    assert worded(judge_growth(given))["why"].startswith(why)


def test_growing_wins_and_nothing_is_not_measured():
    judged = [{**row(0, 0, 0), "verdict": verdict} for verdict in ("steady", "unclear", "growing")]
    assert worst(judged) == "growing"
    assert worst(judged[:2]) == "unclear"
    assert worst([]) == "not_measured"


def test_why_it_is_unclear_is_that_of_what_has_enough_samples():
    few = judge_growth(row(None, None, None, span=None, first=None))
    wide = judge_growth(row(0.0, -0.25 * MIB, 0.25 * MIB))
    jump = judge_growth(row(0.1 * MIB, 0.05 * MIB, 0.2 * MIB, most_rise_bytes=9.5 * MIB))
    assert [why_unclear(rows) for rows in ([few], [few, wide], [wide, jump])] == [
        "few_parts", "wide_interval", "one_jump",
    ]  # fmt: skip


def test_the_host_and_the_launcher_are_not_the_training():
    others = [{**row(0, 0, 0), "verdict": "growing", **who} for who in ({"device": "host"}, {"name": "launcher"})]
    assert worst(others) == "not_measured"


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
        return judge_growth(row(0.0, None if low is None else low * MIB, None if low is None else -low * MIB, **who))

    trainer = judged(process, device="process", name="trainer")
    assert worst([judged(pool), trainer]) == verdict
    worker = judged(None, device="process", name="dataset worker", pid=9)
    assert worst([worker, trainer]) == ("unclear" if process is None else "steady")
    assert worst([judged(None), {**trainer, "rank": 1}]) == "unclear"  # another rank says nothing about it
    assert worst([judged(None, device="NPU:0"), trainer]) == "unclear"  # nor does a process about a device


KIB = 1 << 10


@pytest.mark.parametrize(
    ("slope", "low", "high", "verdict"),
    [(48, 46, 51, "steady"), (48, 40, 120, "unclear"), (70, 65, 75, "growing"), (49.1, 49.05, 49.2, "steady")],
)
def test_what_mindspore_keeps_of_each_pynative_step_is_no_leak(slope, low, high, verdict):
    process = {"device": "process", "name": "trainer", "most_rise_bytes": KIB}
    given = row(slope * KIB, low * KIB, high * KIB, span=400.0, **process)
    assert judge_growth(given, "pynative")["verdict"] == verdict
    assert judge_growth(given, "graph")["verdict"] == "growing"
    assert judge_growth(given | {"device": "CPU", "name": "pool"}, "pynative")["verdict"] == "growing"
    if verdict != "growing":
        assert (
            "MindSpore itself keeps of each PyNative step (49.0 KiB)" in worded(judge_growth(given, "pynative"))["why"]
        )
