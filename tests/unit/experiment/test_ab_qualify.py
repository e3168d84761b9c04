"""`pipeprof qualify` on made-up repetitions: rates, power, what is seen, and what is said about it."""

import json
import math
import os
import random
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest
from ab_bench import STEP, FakeBench, Killed
from git_repository import GitRepository

from pipeprof.collect import fingerprint
from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment.qualify.pool import Order, Pool, collect_pool
from pipeprof.experiment.qualify.rates import Draws, evaluate, exit_code, run_qualify, sees, wilson, within
from pipeprof.report import document, qualify_text
from pipeprof.verdict.gate.policy import Policy, Rule

POLICY = Policy(looks=(3, 5), metrics={STEP: Rule(unit="ns")})


def order(rounds=5, slow_downs=(0.05, 0.10), budget_s=None):
    return Order(("train",), Path(), slow_downs, rounds, 3, budget_s, seed=7)


def pool_of(spread, slow=lambda value, share: value * (1 + share), rounds=12, slow_downs=(0.05, 0.10), **constant):
    """Rounds with steps of 10 ms and normal noise, and values of other metrics by round."""
    chance = random.Random(3)  # noqa: S311 - no secret
    names = {"same-a": 0.0, "same-b": 0.0} | {f"slow-{share:g}": share for share in slow_downs}
    found = [
        {
            name: {STEP: slow(1e7, share) * chance.lognormvariate(0, spread)}
            | {metric: of_round(at) for metric, of_round in constant.items()}
            for name, share in names.items()
        }
        for at in range(rounds)
    ]
    return Pool(rounds=found, seconds=[6.0] * rounds * len(names))


@pytest.fixture
def qualify(tmp_path):
    """`qualify(order, bench, folder)`: the content; `qualify.refused(error, words, order)`."""

    def run(asked, bench=None, folder="q"):
        run.bench = bench or FakeBench()
        return run_qualify(asked, 20, POLICY, tmp_path / folder, lambda _line: None, run.bench)

    def refused(error, words, asked, **more):
        with pytest.raises(error, match=words):
            run(asked, **more)

    run.refused = refused
    return run


def collected(asked, folder, bench=None):
    return collect_pool(asked, folder, bench or FakeBench(), lambda _line: None)


def said(content):
    return " ".join(document.text(qualify_text.document(content)).split())


def test_rounds_are_run_back_and_forth_after_one_that_is_discarded(tmp_path):
    bench = FakeBench({"train": (1e7,)})
    pool = collected(order(rounds=3), tmp_path, bench)
    ran = [name.rpartition("-")[0] for name in bench.ran]
    assert bench.ran[0] == "warm-up"
    assert ran[1:5] == ran[5:9][::-1] == ran[9:13]
    assert set(ran[1:5]) == {"same-a", "same-b", "slow-0.05", "slow-0.1"}
    assert (len(pool.rounds), pool.discarded, len(pool.seconds)) == (3, 1, 13)
    change, low, high = pool.effect("slow-0.1")  # it reaches the recorder and is measured
    assert change == pytest.approx(0.10)
    assert low <= change <= high


def test_the_budget_ends_it_after_whole_rounds(tmp_path):
    pool = collected(order(rounds=9, budget_s=140.0), tmp_path)
    assert len(pool.rounds) == 3  # 10 s of warm-up and three rounds of 40 s
    assert (pool.notes[0]["code"], pool.notes[0]["budget_s"]) == ("pool_budget", 140)
    (tmp_path / "other").mkdir()
    with pytest.raises(MeasureError, match="only 1 round"):
        collected(order(rounds=9, budget_s=60.0), tmp_path / "other")


def test_after_a_kill_it_goes_on_where_it_was_whenever_that_is(tmp_path, qualify):
    for point in range(2, 60, 9):
        folder = f"q{point}"
        with pytest.raises(Killed):
            qualify(order(rounds=4), FakeBench({"train": (1e7, 1.01e7)}, dies_at=point), folder)
        kept = set(json.loads((tmp_path / folder / "pool.json").read_text())["repetitions"])
        bench = FakeBench({"train": (1e7, 1.01e7)})
        content = qualify(replace(order(rounds=4), seed=None), bench, folder)
        assert not kept & set(bench.ran)
        assert (content["seed"], content["pool"]["rounds"]) == (7, 4)
        assert content["pool"]["discarded"] == len([name for name in {*kept, *bench.ran} if name.startswith("warm-up")])
        assert qualify(order(rounds=4), folder=folder) == content
        assert qualify.bench.ran == []


def test_more_rounds_are_added_to_those_that_are_there_though_words_are_not_utf8(qualify):
    for rounds, runs in ((3, 1 + 3 * 4), (5, 1 + 2 * 4)):
        odd = replace(order(rounds=rounds), command=("train", os.fsdecode(b"data-\xff")))
        assert qualify(odd)["pool"]["rounds"] == rounds
        assert len(qualify.bench.ran) == runs


def test_what_was_measured_counts_whatever_the_budget_and_no_run_is_made_for_nothing(qualify):
    qualify(order(rounds=4, budget_s=180.0))
    for budget_s in (180.0, 100.0):
        pool = qualify(order(rounds=6, budget_s=budget_s))["pool"]
        assert (pool["rounds"], pool["discarded"], qualify.bench.ran) == (4, 1, [])


def test_runs_of_another_order_machine_or_folder_are_not_gone_on_with(tmp_path, monkeypatch, qualify):
    qualify(order(rounds=3))
    qualify.refused(UsageError, "another order", order(rounds=3, slow_downs=(0.2,)))
    qualify.refused(UsageError, "another order", replace(order(rounds=3), command=("other",)))
    qualify.refused(UsageError, "--seed 7, not 5", replace(order(rounds=3), seed=5))
    monkeypatch.setattr(fingerprint, "job", lambda: "boot:other")
    qualify.refused(MeasureError, "another machine", order(rounds=3))
    (tmp_path / "q" / "pool.json").write_text("{")
    qualify.refused(RunError, "damaged", order(rounds=3))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    qualify.refused(UsageError, "exists", order(rounds=3), folder="mine")


def test_runs_of_other_code_are_not_gone_on_with(tmp_path, monkeypatch, qualify):
    code = GitRepository(tmp_path / "code")
    code.commit({"train.py": "steps = 1\n"}, "first")
    monkeypatch.chdir(code.root)
    for rounds in (3, 4):
        qualify(order(rounds=rounds))
    code.write({"train.py": "steps = 2\n"})
    qualify.refused(MeasureError, "of other code", order(rounds=5))


def test_a_folder_is_qualified_by_one_process_at_a_time(qualify):
    class Nested(FakeBench):
        def run(self, *args, **more):
            qualify.refused(UsageError, "another pipeprof", order(rounds=3))
            super().run(*args, **more)

    bench = Nested()
    qualify(order(rounds=3), bench)
    assert len(bench.ran) == 13


def test_fewer_rounds_than_are_judged_are_refused_before_anything_runs(tmp_path, qualify):
    qualify.refused(UsageError, "--rounds 2: at least 3", order(rounds=2))
    assert (qualify.bench.ran, (tmp_path / "q").exists()) == ([], False)


def test_a_failing_command_is_named(tmp_path):
    with pytest.raises(WorkloadError, match=r"failed in `slow-0\.1-001`"):
        collected(order(), tmp_path, FakeBench(fails=["slow-0.1-001"]))


def test_quiet_pool_finds_every_slow_down_and_gives_no_alarm():
    content = evaluate(order(), pool_of(0.005), 60, POLICY)
    alarms = content["false_alarms"]
    assert (alarms["count"], sum(alarms["verdicts"].values())) == (0, 60)
    assert 0 < alarms["high"] < 0.1
    assert [(row["rate"], row["how"]) for row in content["slow_downs"]] == [(1.0, "sleep")] * 2
    assert exit_code(content) == 0


def test_noisy_pool_gives_no_alarm_either_but_is_inconclusive():
    content = evaluate(order(), pool_of(0.25), 60, POLICY)
    assert content["false_alarms"]["rate"] <= 0.05
    assert content["false_alarms"]["verdicts"]["inconclusive"] >= 50
    assert content["slow_downs"][0]["rate"] < 0.5
    assert content["sees"][0]["repetitions"] is None


def test_a_hidden_sleep_is_replaced_by_arithmetic_and_said():
    content = evaluate(order(), pool_of(0.005, slow=lambda value, _share: value), 40, POLICY)
    assert {row["how"] for row in content["slow_downs"]} == {"arithmetic"}
    assert abs(content["slow_downs"][1]["measured"]) < 0.02
    assert content["slow_downs"][1]["rate"] == 1.0
    assert "was hidden" in said(content)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((None, 0.08, 0.051), "in 5 minutes not even a slow-down of 50 %, in 10 minutes slow-downs of 8 % or more, in"),
        ((0.08, 0.0301, 0.03), "in 5 minutes slow-downs of 8 % or more, in 10 or 30 minutes slow-downs of 3 % or more"),
        ((None, 0.06), "find in 5 minutes not even a slow-down of 50 %, in 10 minutes slow-downs of 6 % or more."),
    ],
)
def test_one_sentence_says_what_is_found_in_which_time(changes, words):
    content = evaluate(order(), pool_of(0.01), 5, POLICY)
    assert [row["minutes"] for row in content["within"]] == [5, 10, 30]
    rows = [{"minutes": time, "change": one} for time, one in zip((5, 10, 30), changes, strict=False)]
    assert words in said(content | {"within": rows})


def drawn(pool, length, condition=None, metrics=(STEP,), sessions=200):
    draws = Draws(pool, metrics, length, random.Random(5))  # noqa: S311 - no secret
    return [draws.session(condition, 0.0) for _ in range(sessions)]


def test_with_enough_rounds_sessions_hold_real_repetitions_once():
    pool = pool_of(0.02)
    known = {one[name][STEP] for one in pool.rounds for name in ("same-a", "same-b")}
    for base, new in drawn(pool, 12):
        assert {*base[STEP].values, *new[STEP].values} == known


def test_with_fewer_rounds_repetitions_are_mixed_and_the_spread_stays():
    pool = pool_of(0.02, rounds=6)
    values = [value for base, new in drawn(pool, 20) for side in (base, new) for value in side[STEP].values]
    assert len(set(values)) > 100
    assert stdev(map(math.log, values)) == pytest.approx(pool.spread(STEP), rel=0.05)
    slowed = [value for _, new in drawn(pool, 20, "slow-0.1") for value in new[STEP].values]
    level = mean(math.log(one["slow-0.1"][STEP]) for one in pool.rounds)
    assert mean(map(math.log, slowed)) == pytest.approx(level, abs=0.002)


def test_values_of_zero_are_mixed_as_they_are():
    pool = pool_of(0.02, rounds=4, data_wait=lambda _round: 0.0)
    ((base, _),) = drawn(pool, 9, metrics=[STEP, "data_wait"], sessions=1)
    assert set(base["data_wait"].values) == {0.0}


def test_larger_changes_and_less_noise_need_fewer_repetitions():
    noisy, quiet = pool_of(0.03), pool_of(0.01)
    needed = [sees(noisy, change, POLICY)["repetitions"] for change in (0.05, 0.10)]
    assert needed[0] > needed[1] >= 3
    assert sees(quiet, 0.05, POLICY)["repetitions"] < needed[0]
    row = sees(quiet, 0.10, POLICY)
    assert row["minutes"] == pytest.approx((2 * row["repetitions"] + 2) * 6.0 / 60)


def test_a_change_that_the_policy_does_not_count_is_never_seen():
    row = sees(pool_of(0.001), 0.02, Policy(metrics={STEP: Rule(unit="ns", min_effect=0.03)}))
    assert (row["counts"], row["repetitions"], row["minutes"]) == (False, None, None)


def test_the_table_of_what_is_seen_keeps_its_promise():
    pool = pool_of(0.02, rounds=400, slow_downs=(0.05,))
    policy = Policy(metrics={STEP: Rule(unit="ns")})
    needed = sees(pool, 0.05, policy)["repetitions"]
    plain = Policy(looks=(needed,), metrics={STEP: Rule(unit="ns")})
    content = evaluate(order(slow_downs=(0.05,)), pool, 300, plain)
    assert content["slow_downs"][0]["high"] > policy.power


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (1, 500, 0.00035, 0.01125)],
)
def test_wilson_intervals_are_those_of_the_tables(count, total, low, high):
    assert wilson(count, total) == pytest.approx((low, high), abs=1e-4)


def test_too_many_false_alarms_have_an_exit_code():
    assert [exit_code({"false_alarms": {"low": low}, "alpha": 0.01}) for low in (0.02, 0.005)] == [1, 0]


def test_metrics_that_some_repetitions_lack_are_left_out_and_without_step_times_nothing_is_said():
    pool = pool_of(0.01)
    for one in pool.rounds[1:]:
        one["same-a"]["peak_memory"] = 1.0
    assert pool.metrics([STEP, "peak_memory"]) == [STEP]
    empty = Pool(rounds=[{name: {} for name in order().conditions}] * 3, seconds=[1.0])
    with pytest.raises(MeasureError, match="no step time"):
        evaluate(order(), empty, 20, POLICY)


def test_a_policy_that_does_not_decide_by_the_step_time_is_qualified_all_the_same():
    policy = Policy(looks=(3, 5), metrics={STEP: Rule(unit="ns", family="informing"), "peak_memory": Rule()})
    content = evaluate(order(), pool_of(0.01, peak_memory=lambda at: 1e9 + at), 20, policy)
    assert set(content["pool"]["spread"]) == {STEP, "peak_memory"}  # `ab` says by the first what will be found
    assert content["false_alarms"]["verdicts"] == {"unchanged": 20}
    assert content["slow_downs"][0]["measured"] == pytest.approx(0.05, abs=0.01)
    assert content["slow_downs"][0]["count"] == 0


def test_the_result_is_written_and_says_what_the_intervals_leave_out(tmp_path, qualify):
    content = qualify(order())
    assert json.loads((tmp_path / "q" / "qualify.json").read_text()) == content
    assert next(iter(content)) == "schema_version"
    for words in ("False alarms", "how typical these runs", "found on this machine"):
        assert words in said(content)


def test_more_minutes_find_smaller_changes_until_the_last_look_ends_it():
    policy, pool = Policy(looks=(5, 20), metrics={STEP: Rule(unit="ns")}), pool_of(0.03)
    short, long, endless = (within(pool, minutes, policy)["change"] for minutes in (1.5, 4, 1e6))
    assert short > long >= endless
    for minutes, change in ((1.5, short), (4, long)):
        assert sees(pool, change, policy)["minutes"] <= minutes
    assert sees(pool, endless, policy)["repetitions"] <= 20
    smaller = sees(pool, endless - 0.01, policy)
    assert not smaller["counts"] or smaller["repetitions"] is None or smaller["repetitions"] > 20
