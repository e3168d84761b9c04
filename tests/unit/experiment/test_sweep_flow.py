"""A sweep from its file to its result, with made-up repetitions."""

import json
from pathlib import Path

import pytest
from sweep_fake import FakeSweepBench, Killed, by_env

from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment.sweep.run import SweepWish, run_sweep
from pipeprof.experiment.sweep.spec import read_spec
from pipeprof.report.sweep import document, export

KINDS = by_env("KIND", fast=50e6, slow=150e6, both=25e6)


def variant(name, value=None, **more):
    return {"name": name, "env": {"KIND": value or name}} | more


def spec_of(**more):
    content = {"variant": [variant("fast"), variant("slow"), variant("same")], "looks": [3, 5], "seed": 1}
    return read_spec(content | more, "`test.toml`")


@pytest.fixture
def sweep(tmp_path):
    """`sweep(bench, spec)` runs or continues the sweep of one folder; what was said is in `sweep.said`."""

    def call(bench, spec=None, **more):
        wish = SweepWish(spec or spec_of(), tmp_path, ("train",), call.folder, **more)
        return run_sweep(wish, call.said.append, bench)

    call.said = []
    call.folder = tmp_path / "out"
    return call


def words(content, table=0):
    return {row["name"]: row["verdict"] for row in content["tables"][table]["rows"]}


def test_good_bad_and_no_effect_are_told_apart(sweep):
    bench = FakeSweepBench(KINDS)
    found = sweep(bench)
    assert words(found) == {"base": "base", "fast": "better", "slow": "worse", "same": "within noise"}
    assert found["recommendation"]["name"] == "fast"
    assert found["recommendation"]["options"] == {"env": {"KIND": "fast"}}
    assert found["session"]["stopped"] == "decided"
    assert found == json.loads((sweep.folder / "sweep.json").read_text())
    assert next(iter(found)) == "schema_version"


def test_rows_as_good_as_the_recommended_base_are_listed(sweep):
    found = sweep(FakeSweepBench(KINDS), spec_of(variant=[variant("slow"), variant("same")]))
    assert (found["recommendation"]["name"], found["recommendation"]["not_told_apart"]) == ("base", ["same"])


def test_every_round_has_each_variant_once_and_its_own_order(sweep):
    found = sweep(FakeSweepBench(KINDS))
    order = found["session"]["order"][1:]  # the first is the discarded one
    rounds = [order[at : at + 4] for at in range(0, 12, 4)]
    assert all(sorted(one) == ["base", "fast", "same", "slow"] for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1


def test_decided_variants_are_not_run_any_more(sweep):
    drawn = iter(range(1000))

    def steady(order):
        kind = order.env.get("KIND")
        return 110e6 * (1 + next(drawn) % 3 / 4) if kind == "same" else KINDS(order)

    found = sweep(FakeSweepBench(steady))
    runs = {name: found["session"]["order"].count(name) for name in ("base", "fast", "same")}
    assert runs == {"base": 6, "fast": 3, "same": 5}  # one more of the base is the discarded one
    assert words(found)["same"] == "inconclusive"


def test_a_failing_variant_is_recorded_and_the_others_go_on(sweep):
    bench = FakeSweepBench(KINDS, fails=lambda order, number: order.env.get("KIND") == "fast" and number > 5)
    found = sweep(bench)
    assert words(found) == {"base": "base", "fast": "failed", "slow": "worse", "same": "within noise"}
    assert "no such layer" in found["tables"][0]["rows"][1]["failures"][0]
    assert found["recommendation"]["name"] == "base"
    assert any("fast failed" in note for note in found["notes"])
    assert sum(order.env.get("KIND") == "fast" for order in bench.orders) == 2


def test_a_variant_whose_command_is_not_there_has_failed(sweep):
    class Missing(FakeSweepBench):
        def run(self, order, spec):
            if order.command[0] == "nowhere":
                raise UsageError("command not found: `nowhere`")
            return super().run(order, spec)

    found = sweep(Missing(KINDS), spec_of(variant=[variant("fast"), variant("gone", command=["nowhere"])]))
    assert words(found) == {"base": "base", "fast": "better", "gone": "failed"}
    assert "check after 3 rounds: fast better, gone failed" in sweep.said
    assert "2 variants share alpha" in document(found).sections[-1].notes[0]
    spec = spec_of(base={"command": ["nowhere"]}, seed=2)
    sweep.folder = sweep.folder.with_name("other")
    with pytest.raises(UsageError, match="`base` failed in `run-0000`: command not found"):
        sweep(Missing(KINDS), spec)


def test_a_failing_base_ends_the_sweep_and_can_be_repeated(sweep):
    with pytest.raises(WorkloadError, match="`base` failed"):
        sweep(FakeSweepBench(KINDS, fails=lambda order, number: number == 4 or "KIND" not in order.env))
    assert words(sweep(FakeSweepBench(KINDS)))["fast"] == "better"


@pytest.mark.parametrize("dies_at", [1, 2, 6, 11])
def test_a_kill_costs_only_the_repetition_that_ran(sweep, dies_at):
    first, second = FakeSweepBench(KINDS, dies_at=dies_at), FakeSweepBench(KINDS)
    with pytest.raises(Killed):
        sweep(first)
    found = sweep(second)
    assert words(found) == {"base": "base", "fast": "better", "slow": "worse", "same": "within noise"}
    assert found["tables"][0]["rows"][0]["stages"]["steady"]["reps"] == 3
    warm_up = 1 if dies_at > 1 else 0
    assert len(second.orders) == 13 - max(0, dies_at - 1 - warm_up)  # a new start has a warm-up of its own
    assert len({order.path for order in [*first.orders, *second.orders]}) == len(first.orders) + len(second.orders)


def test_a_repetition_that_outlived_a_kill_is_waited_for(sweep):
    with pytest.raises(Killed):
        sweep(FakeSweepBench(KINDS, dies_at=3))
    bench = FakeSweepBench(KINDS)
    bench.still_running = lambda _path: [4711]
    with pytest.raises(UsageError, match="4711"):
        sweep(bench)


def test_secrets_are_not_written(sweep):
    spec = spec_of(variant=[variant("fast", args=["--api-key=abc123"]), {"name": "x", "env": {"MY_TOKEN": "abc123"}}])
    sweep(FakeSweepBench(KINDS), spec)
    text = (sweep.folder / "sweep.json").read_text() + (sweep.folder / "session.json").read_text()
    assert "abc123" not in text
    assert "MY_TOKEN" in text


def test_a_finished_sweep_is_shown_again_without_a_run(sweep):
    found = sweep(FakeSweepBench(KINDS))
    bench = FakeSweepBench(KINDS)
    assert sweep(bench) == found
    assert not bench.orders


def test_the_budget_stops_before_it_is_passed_and_more_goes_on(sweep):
    found = sweep(FakeSweepBench(KINDS), budget_s=100.0)
    assert found["session"]["stopped"] == "budget"
    assert found["session"]["seconds"] <= 100.0
    assert set(words(found).values()) == {"base", "inconclusive"}
    assert found["recommendation"]["name"] == "base"
    assert "budget of 100 s" in found["notes"][-1]
    assert words(sweep(FakeSweepBench(KINDS), budget_s=500.0))["fast"] == "better"


def test_a_folder_holds_one_sweep(sweep):
    sweep(FakeSweepBench(KINDS))
    with pytest.raises(UsageError, match="another sweep"):
        sweep(FakeSweepBench(KINDS), spec_of(alpha=0.02))


def test_another_machine_is_refused(sweep):
    sweep(FakeSweepBench(KINDS), budget_s=100.0)
    path = sweep.folder / "session.json"
    session = json.loads(path.read_text())
    session["fingerprint"]["cpu_model"] = "another"
    path.write_text(json.dumps(session))
    with pytest.raises(MeasureError, match="cpu_model"):
        sweep(FakeSweepBench(KINDS))
    path.write_text(json.dumps(session | {"schema_version": 99}))
    with pytest.raises(RunError, match="schema_version 99"):
        sweep(FakeSweepBench(KINDS))


def test_options_reach_the_command(sweep):
    change = {"op": "Map", "workers": 2}
    spec = spec_of(
        base={"args": ["--a"], "env": {"X": 1}},
        variant=[variant("fast", args=["--b"], dataset=change, context={"mode": "graph"})],
        timeout="2m",
    )
    bench = FakeSweepBench(KINDS)
    sweep(bench, spec)
    order = next(order for order in bench.orders if order.env.get("KIND"))
    assert order.command == ["train", "--a", "--b"]
    assert order.env.keys() == {"PYTHONHASHSEED", "X", "KIND"}
    assert (order.env["X"], order.env["KIND"]) == ("1", "fast")
    assert (order.dataset.workers, order.context.mode, order.longest_s) == (2, "graph", 120.0)


def test_the_number_of_steps_decides_what_is_best(sweep):
    setup = by_env("KIND", fast=60e9)
    spec = spec_of(variant=[variant("fast")])
    few = sweep(FakeSweepBench(KINDS, setup=setup), spec, steps=100)
    row = few["tables"][0]["rows"][1]
    assert row["break_even"]["kind"] == "after"
    assert row["break_even"]["low"] <= row["break_even"]["steps"] <= row["break_even"]["high"]
    assert 1200 < row["break_even"]["steps"] < 1450  # (66 - 0.11) s / 50 ms
    assert few["recommendation"]["name"] == "base"
    many = sweep(FakeSweepBench(KINDS), spec, steps=10_000)
    assert many["recommendation"]["name"] == "fast"
    assert {"base", "fast"} == set(many["tables"][0]["pareto"])


def test_without_a_set_up_it_says_why_nothing_is_recommended_for_a_number_of_steps(sweep):
    class Short(FakeSweepBench):
        def run(self, order, spec):
            return {"steady": super().run(order, spec)["steady"]}

    found = sweep(Short(KINDS), steps=100)
    assert (found["recommendation"], found["note_facts"][-1]["code"]) == (None, "no_cost")
    assert sweep(Short(KINDS))["recommendation"]["name"] == "fast"


def test_greedy_adds_to_the_winner_and_confirms(sweep):
    def steady(order):
        level = KINDS(order)
        return level * (0.8 if order.env.get("MORE") == "good" else 1.0)

    additions = [{"name": "good", "env": {"MORE": "good"}}, {"name": "idle", "env": {"MORE": "idle"}}]
    found = sweep(FakeSweepBench(steady), spec_of(search="greedy", addition=additions))
    assert [table["name"] for table in found["tables"]] == ["first round", "additions", "confirmation"]
    assert [table["reference"] for table in found["tables"]] == ["base", "fast", "base"]
    assert "1 variant has alpha 0.00333 over" in document(found).sections[-1].notes[0]
    assert words(found, 1) == {"fast": "base", "fast + good": "better", "fast + idle": "within noise"}
    assert found["recommendation"]["name"] == "fast + good"
    assert found["recommendation"]["options"]["env"] == {"KIND": "fast", "MORE": "good"}


def test_greedy_never_puts_additions_together(sweep):
    def steady(order):
        return KINDS(order) * (0.8 if "A" in order.env else 1) * (0.7 if "B" in order.env else 1)

    additions = [{"name": "a", "env": {"A": "1"}}, {"name": "b", "env": {"B": "1"}}]
    bench = FakeSweepBench(steady)
    found = sweep(bench, spec_of(search="greedy", addition=additions))
    assert found["recommendation"]["name"] == "fast + b"
    assert not any("A" in order.env and "B" in order.env for order in bench.orders)
    assert "a" not in found["recommendation"]["name"].split(" + ")


def test_greedy_without_a_winner_tries_additions_on_the_base(sweep):
    spec = spec_of(search="greedy", variant=[variant("slow")], addition=[variant("fast")])
    found = sweep(FakeSweepBench(KINDS), spec)
    assert [table["reference"] for table in found["tables"]] == ["base", "base", "base"]
    assert found["recommendation"]["name"] == "fast"
    idle = spec_of(search="greedy", variant=[variant("slow")], addition=[variant("same")])
    with pytest.raises(UsageError):
        sweep(FakeSweepBench(KINDS), idle)


def test_greedy_that_was_cut_short_recommends_the_base(sweep):
    spec = spec_of(search="greedy", addition=[{"name": "more", "env": {"MORE": "1"}}])
    found = sweep(FakeSweepBench(KINDS), spec, budget_s=150.0)
    assert found["tables"][0]["best"]["name"] == "fast"
    assert found["recommendation"]["name"] == "base"
    assert "before its best variant was confirmed" in found["recommendation"]["reason"]
    for budget_s in (200.0, 205.0, 210.0, 215.0, 220.0):  # ends it between the phases, and within the last one
        found = sweep(FakeSweepBench(KINDS), spec, budget_s=budget_s)
        assert "before its best variant was confirmed" in found["recommendation"]["reason"]
    assert len(found["tables"]) == 3
    whole = sweep(FakeSweepBench(KINDS), spec, budget_s=1000.0)
    assert whole["recommendation"]["name"] == "fast"


def test_greedy_whose_winner_is_no_better_in_fresh_repetitions_says_so(sweep):
    spec = spec_of(search="greedy", variant=[variant("fast")])
    bench = FakeSweepBench(lambda order: KINDS(order) if len(bench.orders) < 8 else 100e6)
    found = sweep(bench, spec)
    assert [table["best"]["name"] for table in found["tables"]] == ["fast", "base"]
    assert found["recommendation"]["reason"] == "what was best was not better again in fresh repetitions"


def test_a_winner_that_failed_once_as_the_reference_is_confirmed_all_the_same(sweep):
    spec = spec_of(search="greedy", variant=[variant("fast")], addition=[{"name": "more", "env": {"MORE": "1"}}])
    bench = FakeSweepBench(KINDS, fails=lambda _order, number: number == 8)
    with pytest.raises(WorkloadError, match="`fast` failed"):
        sweep(bench, spec)
    found = sweep(FakeSweepBench(KINDS), spec)
    assert found["recommendation"]["name"] == "fast"
    assert words(found, 2)["fast"] == "better"


def test_a_grid_runs_every_combination(sweep):
    axes = [
        {"option": [variant("fast"), variant("slow")]},
        {"option": [{"name": "more", "env": {"MORE": "1"}}]},
    ]
    spec = read_spec({"search": "grid", "axis": axes, "looks": [3]}, "`test.toml`")
    found = sweep(FakeSweepBench(KINDS), spec)
    assert list(words(found)) == ["base", "more", "fast", "fast + more", "slow", "slow + more"]
    assert found["tables"][0]["family"] == 5


def test_all_variants_may_be_warmed_up(sweep):
    found = sweep(FakeSweepBench(KINDS), spec_of(discard="all"))
    assert found["session"]["runs"] == 4 + 12
    assert sorted(found["session"]["order"][:4]) == ["base", "fast", "same", "slow"]


def test_nothing_to_run_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no command"):
        run_sweep(SweepWish(spec_of(), tmp_path), print, FakeSweepBench(KINDS))


CACHE = variant("fast", prepare=[["tool", "--make", "{artefacts}/cache"]], args=["--cache", "{artefacts}/cache"])


def test_a_variant_is_prepared_once_and_finds_its_artefacts(sweep):
    spec = spec_of(variant=[CACHE, variant("slow", command=["other", "dumped.mge"])])
    bench = FakeSweepBench(KINDS)
    found = sweep(bench, spec)
    (made,) = bench.prepared
    assert made.command[:2] == ["tool", "--make"]
    place = made.command[2]
    assert Path(place).parent.is_dir()
    assert Path(place).is_relative_to(sweep.folder)
    commands = {order.env["KIND"]: order.command for order in bench.orders if "KIND" in order.env}
    assert commands == {"fast": ["train", "--cache", place], "slow": ["other", "dumped.mge"]}
    assert [row["prepare_s"] for row in found["tables"][0]["rows"]] == [None, 30.0, None]
    assert any("`fast` was prepared once, in 30.0 s" in text for text in found["notes"])


def test_the_time_of_preparing_is_spent_once_and_not_expected_again(sweep):
    found = sweep(FakeSweepBench(KINDS), spec_of(variant=[CACHE]), budget_s=110.0)  # 30 s, and 7 runs of 10 s
    assert words(found)["fast"] == "better"
    assert found["session"]["seconds"] == 100.0


@pytest.mark.parametrize("dies_at", range(1, 8))  # before, in and after the first repetition of the prepared variant
def test_a_sweep_that_goes_on_does_not_prepare_again(sweep, dies_at):
    bench = FakeSweepBench(KINDS, dies_at=dies_at)
    with pytest.raises(Killed):
        sweep(bench, spec_of(variant=[CACHE]))
    again = FakeSweepBench(KINDS)
    found = sweep(again, spec_of(variant=[CACHE]))
    assert len(bench.prepared + again.prepared) == 1
    ended = len(bench.orders) - 1 + len(again.orders)  # how long the one that was cut off took is not known
    assert found["session"]["seconds"] == 30 + 10 * ended


def test_preparing_begins_anew_in_an_empty_folder(sweep):
    class Cut(FakeSweepBench):
        def prepare(self, order):
            super().prepare(order)
            Path(order.command[2]).write_text("half")
            raise Killed

    with pytest.raises(Killed):
        sweep(Cut(KINDS), spec_of(variant=[CACHE]))
    again = FakeSweepBench(KINDS)
    sweep(again, spec_of(variant=[CACHE]))
    (made,) = again.prepared
    assert not Path(made.command[2]).exists()


def test_a_variant_that_cannot_be_prepared_has_failed(sweep):
    bench = FakeSweepBench(KINDS)
    bench.unprepared = True
    found = sweep(bench, spec_of(variant=[CACHE, variant("slow")]))
    assert words(found) == {"base": "base", "fast": "failed", "slow": "worse"}
    assert not any(order.env.get("KIND") == "fast" for order in bench.orders)


def test_a_prepared_recommendation_can_be_used(sweep):
    bench = FakeSweepBench(KINDS)
    found = sweep(bench, spec_of(variant=[CACHE]))
    (made,) = bench.prepared
    lines = export(found, "args").splitlines()
    assert f"# first run tool --make {made.command[2]}" in lines
    assert lines[-1] == f"--cache {made.command[2]}"
    assert f"add --cache {made.command[2]}" in document(found).sections[0].strong
