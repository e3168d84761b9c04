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
TOLD_APART = {"base": "base", "fast": "better", "slow": "worse", "same": "within noise"}
MORE = {"name": "more", "env": {"MORE": "1"}}


def variant(name, **more):
    return {"name": name, "env": {"KIND": name}} | more


def spec_of(*variants, **more):
    """Of the variants of these names, or all; looks after 3 and 5 rounds."""
    listed = [variant(one) if isinstance(one, str) else one for one in variants or ("fast", "slow", "same")]
    return read_spec({"variant": listed, "looks": [3, 5], "seed": 1} | more, "`test.toml`")


def greedy(*variants, **more):
    return spec_of(*variants, search="greedy", **more)


@pytest.fixture
def sweep(tmp_path):
    """`sweep(bench, spec)` runs or continues the sweep of one folder; what was said is in `sweep.said`."""

    def call(bench=None, spec=None, **more):
        call.bench = bench or FakeSweepBench(KINDS)
        wish = SweepWish(spec or spec_of(), tmp_path, ("train",), call.folder, **more)
        return run_sweep(wish, call.said.append, call.bench)

    def refused(error, words, *args, **more):
        with pytest.raises(error, match=words):
            call(*args, **more)

    def killed(at, **more):
        refused(Killed, None, FakeSweepBench(KINDS, dies_at=at), **more)
        return call.bench

    call.said, call.folder, call.refused, call.killed = [], tmp_path / "out", refused, killed
    return call


def words(content, table=0):
    return {row["name"]: row["verdict"] for row in content["tables"][table]["rows"]}


def test_good_bad_and_no_effect_are_told_apart(sweep):
    found = sweep()
    assert words(found) == TOLD_APART
    assert found["recommendation"]["name"] == "fast"
    assert found["recommendation"]["options"] == {"env": {"KIND": "fast"}}
    assert found["session"]["stopped"] == "decided"
    assert found == json.loads((sweep.folder / "sweep.json").read_text())
    assert next(iter(found)) == "schema_version"
    assert sweep() == found  # shown again without a run
    assert not sweep.bench.orders
    sweep.refused(UsageError, "another sweep", spec=spec_of(alpha=0.02))


def test_rows_as_good_as_the_recommended_base_are_listed(sweep):
    best = sweep(spec=spec_of("slow", "same"))["recommendation"]
    assert (best["name"], best["not_told_apart"]) == ("base", ["same"])


def test_every_round_has_each_variant_once_and_its_own_order(sweep):
    order = sweep()["session"]["order"][1:]  # the first is the discarded one
    rounds = [order[at : at + 4] for at in range(0, 12, 4)]
    assert all(sorted(one) == ["base", "fast", "same", "slow"] for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1


def test_decided_variants_are_not_run_any_more(sweep):
    drawn = iter(range(1000))

    def steady(order):
        return 110e6 * (1 + next(drawn) % 3 / 4) if order.env.get("KIND") == "same" else KINDS(order)

    found = sweep(FakeSweepBench(steady))
    runs = {name: found["session"]["order"].count(name) for name in ("base", "fast", "same")}
    assert runs == {"base": 6, "fast": 3, "same": 5}  # one more of the base is the discarded one
    assert words(found)["same"] == "inconclusive"


def test_a_failing_variant_is_recorded_and_the_others_go_on(sweep):
    bench = FakeSweepBench(KINDS, fails=lambda order, number: order.env.get("KIND") == "fast" and number > 5)
    found = sweep(bench)
    assert words(found) == TOLD_APART | {"fast": "failed"}
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

    found = sweep(Missing(KINDS), spec_of("fast", variant("gone", command=["nowhere"])))
    assert words(found) == {"base": "base", "fast": "better", "gone": "failed"}
    assert "check after 3 rounds: fast better, gone failed" in sweep.said
    assert "2 variants share alpha" in document(found).sections[-1].notes[0]
    sweep.folder = sweep.folder.with_name("other")
    spec = spec_of(base={"command": ["nowhere"]}, seed=2)
    sweep.refused(UsageError, "`base` failed in `run-0000`: command not found", Missing(KINDS), spec)


def test_a_failing_base_ends_the_sweep_and_can_be_repeated(sweep):
    bench = FakeSweepBench(KINDS, fails=lambda order, number: number == 4 or "KIND" not in order.env)
    sweep.refused(WorkloadError, "`base` failed", bench)
    assert words(sweep())["fast"] == "better"


@pytest.mark.parametrize("dies_at", [1, 2, 6, 11])
def test_a_kill_costs_only_the_repetition_that_ran(sweep, dies_at):
    first = sweep.killed(dies_at)
    found = sweep()
    assert words(found) == TOLD_APART
    assert found["tables"][0]["rows"][0]["stages"]["steady"]["reps"] == 3
    second, warm_up = sweep.bench, 1 if dies_at > 1 else 0
    assert len(second.orders) == 13 - max(0, dies_at - 1 - warm_up)  # a new start has a warm-up of its own
    assert len({order.path for order in [*first.orders, *second.orders]}) == len(first.orders) + len(second.orders)


def test_a_repetition_that_outlived_a_kill_is_waited_for(sweep):
    sweep.killed(3)
    bench = FakeSweepBench(KINDS)
    bench.still_running = lambda _path: [4711]
    sweep.refused(UsageError, "4711", bench)


def test_secrets_are_not_written(sweep):
    secret = {"name": "x", "env": {"MY_TOKEN": "abc123"}}
    sweep(spec=spec_of(variant("fast", args=["--api-key=abc123"]), secret))
    text = (sweep.folder / "sweep.json").read_text() + (sweep.folder / "session.json").read_text()
    assert ("abc123" in text, "MY_TOKEN" in text) == (False, True)


def test_the_budget_stops_before_it_is_passed_and_more_goes_on(sweep):
    found = sweep(budget_s=100.0)
    assert found["session"]["stopped"] == "budget"
    assert found["session"]["seconds"] <= 100.0
    assert set(words(found).values()) == {"base", "inconclusive"}
    assert found["recommendation"]["name"] == "base"
    assert (found["note_facts"][-1]["code"], found["note_facts"][-1]["budget_s"]) == ("sweep_budget", 100.0)
    assert words(sweep(budget_s=500.0))["fast"] == "better"


def test_another_machine_is_refused(sweep):
    sweep(budget_s=100.0)
    path = sweep.folder / "session.json"
    session = json.loads(path.read_text())
    session["fingerprint"]["cpu_model"] = "another"
    path.write_text(json.dumps(session))
    sweep.refused(MeasureError, "cpu_model")
    path.write_text(json.dumps(session | {"schema_version": 99}))
    sweep.refused(RunError, "schema_version 99")


def test_options_reach_the_command(sweep):
    fast = variant("fast", args=["--b"], dataset={"op": "Map", "workers": 2}, context={"mode": "graph"})
    sweep(spec=spec_of(fast, base={"args": ["--a"], "env": {"X": 1}}, timeout="2m"))
    order = next(order for order in sweep.bench.orders if order.env.get("KIND"))
    assert order.command == ["train", "--a", "--b"]
    assert order.env == {"PYTHONHASHSEED": order.env["PYTHONHASHSEED"], "X": "1", "KIND": "fast"}
    assert (order.dataset.workers, order.context.mode, order.longest_s) == (2, "graph", 120.0)


def test_the_number_of_steps_decides_what_is_best(sweep):
    few = sweep(FakeSweepBench(KINDS, setup=by_env("KIND", fast=60e9)), spec_of("fast"), steps=100)
    even = few["tables"][0]["rows"][1]["break_even"]
    assert even["kind"] == "after"
    assert even["low"] <= even["steps"] <= even["high"]
    assert 1200 < even["steps"] < 1450  # (66 - 0.11) s / 50 ms
    assert few["recommendation"]["name"] == "base"
    many = sweep(spec=spec_of("fast"), steps=10_000)
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
        return KINDS(order) * {"good": 0.7, "fair": 0.8}.get(order.env.get("MORE"), 1.0)

    additions = [{"name": name, "env": {"MORE": name}} for name in ("fair", "good", "idle")]
    found = sweep(FakeSweepBench(steady), greedy(addition=additions))
    tables = [(table["name"], table["reference"]) for table in found["tables"]]
    assert tables == [("first round", "base"), ("additions", "fast"), ("confirmation", "base")]
    assert "1 variant has alpha 0.00333 over" in document(found).sections[-1].notes[0]
    better = {"fast": "base", "fast + fair": "better", "fast + good": "better"}
    assert words(found, 1) == better | {"fast + idle": "within noise"}  # each alone
    assert found["recommendation"]["name"] == "fast + good"
    assert found["recommendation"]["options"]["env"] == {"KIND": "fast", "MORE": "good"}


def test_greedy_that_was_cut_short_recommends_the_base(sweep):
    spec = greedy(addition=[MORE])
    for budget_s in (150.0, 200.0, 205.0, 210.0, 215.0, 220.0):  # ends it between the phases, and within the last one
        found = sweep(spec=spec, budget_s=budget_s)
        assert found["tables"][0]["best"]["name"] == "fast"
        assert found["recommendation"]["name"] == "base"
        assert "was confirmed" in found["recommendation"]["reason"]
    assert len(found["tables"]) == 3
    assert sweep(spec=spec, budget_s=1000.0)["recommendation"]["name"] == "fast"


def test_greedy_whose_winner_is_no_better_in_fresh_repetitions_says_so(sweep):
    bench = FakeSweepBench(lambda order: KINDS(order) if len(bench.orders) < 8 else 100e6)
    found = sweep(bench, greedy("fast"))
    assert [table["best"]["name"] for table in found["tables"]] == ["fast", "base"]
    assert found["recommendation"]["reason"] == "what was best was not better again in fresh repetitions"


def test_a_winner_that_failed_once_as_the_reference_is_confirmed_all_the_same(sweep):
    spec = greedy("fast", addition=[MORE])
    bench = FakeSweepBench(KINDS, fails=lambda _order, number: number == 8)
    sweep.refused(WorkloadError, "`fast` failed", bench, spec)
    found = sweep(spec=spec)
    assert (found["recommendation"]["name"], words(found, 2)["fast"]) == ("fast", "better")


def test_a_grid_runs_every_combination(sweep):
    axes = [{"option": [variant("fast"), variant("slow")]}, {"option": [MORE]}]
    found = sweep(spec=read_spec({"search": "grid", "axis": axes, "looks": [3]}, "`test.toml`"))
    assert list(words(found)) == ["base", "more", "fast", "fast + more", "slow", "slow + more"]
    assert found["tables"][0]["family"] == 5


def test_all_variants_may_be_warmed_up(sweep):
    session = sweep(spec=spec_of(discard="all"))["session"]
    assert (session["runs"], sorted(session["order"][:4])) == (4 + 12, ["base", "fast", "same", "slow"])


def test_nothing_to_run_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no command"):
        run_sweep(SweepWish(spec_of(), tmp_path), print, FakeSweepBench(KINDS))


CACHE = variant("fast", prepare=[["tool", "--make", "{artefacts}/cache"]], args=["--cache", "{artefacts}/cache"])


def test_a_variant_is_prepared_once_and_finds_its_artefacts(sweep):
    found = sweep(spec=spec_of(CACHE, variant("slow", command=["other", "dumped.mge"])))
    (made,) = sweep.bench.prepared
    place = made.command[2]
    assert made.command[:2] == ["tool", "--make"]
    assert Path(place).parent.is_dir()
    assert Path(place).is_relative_to(sweep.folder)
    commands = {order.env["KIND"]: order.command for order in sweep.bench.orders if "KIND" in order.env}
    assert commands == {"fast": ["train", "--cache", place], "slow": ["other", "dumped.mge"]}
    assert [row["prepare_s"] for row in found["tables"][0]["rows"]] == [None, 30.0, None]
    assert any("`fast` was prepared once, in 30.0 s" in text for text in found["notes"])
    lines = export(found, "args").splitlines()  # a recommendation that can be used
    assert f"# first run tool --make {place}" in lines
    assert lines[-1] == f"--cache {place}"
    assert f"add --cache {place}" in document(found).sections[0].strong


def test_the_time_of_preparing_is_spent_once_and_not_expected_again(sweep):
    found = sweep(spec=spec_of(CACHE), budget_s=110.0)  # 30 s, and 7 runs of 10 s
    assert (words(found)["fast"], found["session"]["seconds"]) == ("better", 100.0)


@pytest.mark.parametrize("dies_at", range(1, 8))  # before, in and after the first repetition of the prepared variant
def test_a_sweep_that_goes_on_does_not_prepare_again(sweep, dies_at):
    bench = sweep.killed(dies_at, spec=spec_of(CACHE))
    found = sweep(spec=spec_of(CACHE))
    assert len(bench.prepared + sweep.bench.prepared) == 1
    ended = len(bench.orders) - 1 + len(sweep.bench.orders)  # how long the one that was cut off took is not known
    assert found["session"]["seconds"] == 30 + 10 * ended


def test_preparing_begins_anew_in_an_empty_folder(sweep):
    class Cut(FakeSweepBench):
        def prepare(self, order):
            super().prepare(order)
            Path(order.command[2]).write_text("half")
            raise Killed

    sweep.refused(Killed, None, Cut(KINDS), spec_of(CACHE))
    sweep(spec=spec_of(CACHE))
    (made,) = sweep.bench.prepared
    assert not Path(made.command[2]).exists()


def test_a_variant_that_cannot_be_prepared_has_failed(sweep):
    bench = FakeSweepBench(KINDS)
    bench.unprepared = True
    assert words(sweep(bench, spec_of(CACHE, "slow"))) == {"base": "base", "fast": "failed", "slow": "worse"}
    assert not any(order.env.get("KIND") == "fast" for order in bench.orders)
