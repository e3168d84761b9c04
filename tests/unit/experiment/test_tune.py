"""A tuning of known response surfaces: what it accepts, what it never recommends, and what it proves."""

from dataclasses import replace
from math import fsum

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tune_fake import COMMAND, SITE, FakeBench, epoch, pipeline, slow_map, which, with_a_cache, workers_of

from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment.journal import SESSION
from pipeprof.experiment.tune import search
from pipeprof.experiment.tune.goal import LOOKS, is_hopeless, policy_of, proof_plan, sides_of
from pipeprof.experiment.tune.patch import content_of, write_files
from pipeprof.experiment.tune.rows import compared
from pipeprof.experiment.tune.search import TuneWish, run_tune
from pipeprof.experiment.tune.state import Final, Trial, TuneState, new_state
from pipeprof.experiment.tune.trial import is_proven
from pipeprof.record.settings_file import Settings
from pipeprof.report import tune_text
from pipeprof.verdict.gate.sequential_test import judge_looks


def always(rate):
    """The speed whatever is changed."""
    return lambda _settings: rate


def trial_of(key, verdict, **more):
    return Trial(key=key, what=[], prediction={}, settings=Settings(), verdict=verdict, **more)


def test_the_slow_map_gets_the_workers_that_it_needs(tune):
    bench = slow_map()
    state = tune(bench)
    assert workers_of(state.settings, 1) >= 4
    assert is_proven(state)
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)
    assert (tune.word(), state.ended) == ("proven", "loop_limits")
    assert any("proving" in line for line in tune.said)
    assert {settings.site for _, _, settings in bench.runs} == {SITE}  # of the training's own iterator, on both sides


def test_after_each_accepted_step_it_is_recorded_again(tune):
    bench = slow_map(source=20)
    state = tune(bench)
    accepted = [one for one in state.trials if one.verdict == "accepted"]
    assert len(bench.looks) == len(accepted) + 1 == len(state.seen)
    assert bench.looks[-1] == state.settings
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)


def test_what_a_generator_would_gain_if_its_rows_had_numbers_is_said_and_not_tried(tune):
    loop = pipeline(6, 6, 40, consumer=100.0)
    loop = replace(loop, stages=tuple(replace(one, iterated=one.op_type == "GeneratorOp") for one in loop.stages))
    state = tune(FakeBench(loop, always(25.0)))
    assert not [one for one in state.trials if one.key.startswith("2:workers")]
    (told,) = state.seen[0]["iterated"]
    assert (told["op_id"], told["workers"]) == (2, 5)  # that are polled often enough
    assert 3.0 < told["low"] <= told["high"] < 5.0


def test_a_loop_that_limits_itself_has_nothing_to_gain(tune):
    bench = FakeBench(pipeline(2, 3, 2, consumer=50.0))
    state = tune(bench)
    assert (state.trials, state.final, state.ended, bench.runs) == ([], None, "loop_limits", [])
    content = tune.content()
    assert (content["verdict"], content["exit_code"]) == ("nothing_to_gain", 0)


def test_predictions_that_fail_are_shown_and_cost_no_wrong_advice(tune):
    state = tune(slow_map(lambda settings: 25.0 / workers_of(settings, 1)))
    assert state.trials
    assert which(state) <= {"slower", "no_gain"}
    assert any(one.predicted_wrong for one in state.trials)
    assert (state.settings.is_empty, tune.word()) == (True, "nothing_to_gain")


def test_a_prediction_that_failed_corrects_those_of_the_same_settings(tune):
    """Two workers bring nothing: three, four and all are not tried."""
    keys = [one.key for one in tune(slow_map(always(25.0))).trials]
    assert len([key for key in keys if key.startswith("1:workers=") and "+" not in key and "," not in key]) == 1
    state = tune(slow_map(lambda settings: 25.0 * workers_of(settings, 1) ** 0.25), folder="a quarter of it")
    assert state.trials[0].predicted_wrong
    assert all(one.prediction["ratio"] < 2 for one in state.trials if one.prediction["learned"])


def test_a_cache_is_judged_by_the_epochs_after_the_one_that_fills_it(tune):
    state = tune(with_a_cache(epochs=2))
    assert [one.verdict for one in state.trials if "cache" in one.key] == ["accepted"]
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)
    assert [one["why"] for one in tune.content()["patch"]["by_hand"]] == ["cache"]
    assert state.seen[0]["caches"][0]["tried"]
    assert state.seen[1]["caches"] == []


def test_a_cache_is_not_tried_where_no_epoch_follows_and_fails_where_the_second_is_too_short(tune):
    state = tune(with_a_cache(epochs=1))
    assert not any("cache" in one.key for one in state.trials)
    assert not state.seen[0]["caches"][0]["tried"]
    state = tune(with_a_cache(epochs=2, later=lambda _rate, _settings: None), folder="short")
    failed = next(one for one in state.trials if "cache" in one.key)
    assert (failed.verdict, "more epochs" in failed.error) == ("failed", True)


def economy(loop):
    """As fast whatever one gives back, but needs 100 for each worker, and 500 for each operator with processes."""

    def need(settings):
        changed = {one.node: one for one in settings.operators}
        total = 1000.0
        for stage in loop.stages:
            one = changed.get(stage.op_id)
            processes = stage.uses_processes if one is None or one.processes is None else one.processes
            total += 100.0 * ((one and one.workers) or stage.workers) + 500.0 * processes
        return total

    return need


STEADY = always(20.0)


def idle(truth=STEADY, **given):
    """Operators that have four workers each, one with processes, in front of a loop that takes longer than all."""
    loop = pipeline(1, 4, 1, consumer=20.0)
    stages = tuple(
        replace(one, workers=4, rate=4 * one.rate, uses_processes=one.op_id == 1, kind="cpu") for one in loop.stages
    )
    loop = replace(loop, stages=stages, rate=20.0)
    return FakeBench(loop, truth, **({"need": economy(loop)} | given))


@pytest.mark.parametrize("goal", ["memory", "cores"])
def test_what_the_training_does_not_need_is_given_back(tune, goal):
    state = tune(idle(), goal=goal)
    assert tune.word() == "proven"
    assert all(workers_of(state.settings, node) == 1 for node in range(3))
    assert next(one.processes for one in state.settings.operators if one.node == 1) is False
    assert state.final.need[0] == pytest.approx(1300 / 2700, rel=0.02)
    assert state.final.low > 0.95


@pytest.mark.parametrize(
    ("changed", "given", "verdict"), [(18.0, {}, "slower"), (20.0, {"need": always(1000.0)}, "no_gain")]
)
def test_what_is_saved_at_the_price_of_speed_and_what_saves_nothing_is_not_taken(tune, changed, given, verdict):
    state = tune(idle(lambda settings: 20.0 if settings.is_empty else changed, **given), goal="memory")
    assert (which(state), tune.word()) == ({verdict}, "nothing_to_gain")
    tune.refused(RunError, "another command, folder, goal", idle())


@pytest.mark.parametrize(
    ("rates", "hopeless"),
    [([10.0, 10.2, 9.9], True), ([9.0, 11.0, 10.0], True), ([10.0, 13.0, 14.0], False), ([8.0, 20.0, 21.0], False)],
)
def test_a_trial_that_its_best_pair_could_not_save_is_hopeless(rates, hopeless):
    trial = trial_of("1", "undecided", a=[10.0] * 3, b=rates)
    assert is_hopeless(trial, "time", 6) == hopeless
    saving = trial_of("1", "undecided", a=[10.0] * 3, b=[10.0] * 3, need_a=rates, need_b=[10.0] * 3)
    assert is_hopeless(saving, "memory", 6) == hopeless
    assert trial.interval is None  # nothing of it is kept


def test_of_what_nothing_was_predicted_not_all_pairs_are_made_where_they_cannot_help(tune):
    loop = replace(pipeline(6, 40, 6, consumer=100.0), free_cores=0.1)
    hopeless = [one for one in tune(FakeBench(loop, always(25.0), 0.1)).trials if one.verdict == "hopeless"]
    assert hopeless
    assert all(one.prediction["high"] is None and len(one.a) < 6 for one in hopeless)


def test_what_changes_the_batches_is_never_accepted(tune):
    state = tune(slow_map(handed=lambda settings, _number: ("one", "two") if settings.is_empty else ("two", "one")))
    assert which(state) <= {"other_data", "no_gain", "slower"}
    assert (state.trials[0].verdict, len(state.trials[0].a)) == ("other_data", 2)
    assert state.settings.is_empty


def test_a_step_whose_later_rows_are_others_is_taken_back_and_the_rest_is_proven(tune):
    def whole(settings, _number):
        return [epoch("x", "others") if workers_of(settings, 2) > 1 else epoch()]

    state = tune(slow_map(source=20, whole=whole))
    steps = [one.verdict for one in state.trials if one.verdict in ("accepted", "other_data")]
    assert steps == ["accepted", "other_data"]
    assert (tune.word(), len(state.seen)) == ("proven", 2)
    assert {one.node for one in state.settings.operators} == {1}
    assert any("other rows" in line for line in tune.said)


def test_a_candidate_that_breaks_is_listed_and_the_next_is_tried(tune):
    state = tune(slow_map(breaks=lambda settings: any(one.workers == 4 for one in settings.operators)))
    assert {one.error for one in state.trials if one.verdict == "failed"} == {"it does not pickle"}
    assert state.final.ratio > 1.5
    tune.refused(WorkloadError, "pickle", slow_map(breaks=lambda settings: settings.is_empty), folder="unchanged")
    assert which(tune(slow_map(breaks=lambda settings: bool(settings.operators)), folder="each")) == {"failed"}
    assert tune.word() == "not_judged"


def failing(folder, *runs):
    """A bench whose runs of these names in a folder fail once each."""
    bench, left = slow_map(), list(runs)
    run = bench.run

    def breaking(settings, of, name, longest_s):
        if of.name == folder and name in left:
            left.remove(name)
            raise WorkloadError("signal 9")
        return run(settings, of, name, longest_s)

    bench.run = breaking
    return bench


@pytest.mark.parametrize(("folder", "name"), [("trial-0", ("a", 0)), ("trial-0", ("b", 1)), ("final", ("b", 0))])
def test_a_run_that_fails_by_chance_is_made_again_and_told(tune, folder, name):
    state = tune(failing(folder, name))
    assert (tune.word(), state.trials[0].verdict) == ("proven", "accepted")
    assert [(one.folder, one.side, one.error) for one in state.failed_runs] == [(folder, name[0], "signal 9")]
    assert "  a run failed, and is made again: signal 9" in tune.said


def test_a_set_that_fails_more_often_than_the_original_is_not_recommended_until_it_does_not(tune):
    state = tune(failing("final", ("b", 0), ("b", 2)))
    assert (tune.word(), state.final.error) == ("not_judged", "signal 9")
    assert tune.content()["lacks_time"]  # which says how to go on
    state = tune(slow_map())
    assert (tune.word(), [one.side for one in state.failed_runs]) == ("proven", ["b", "b"])


def test_a_set_that_cannot_be_recorded_is_proven_all_the_same(tune):
    bench = slow_map()
    look = bench.look

    def without_memory(settings, path, longest_s=None):
        if not settings.is_empty:
            raise WorkloadError("the command failed: signal 9")
        return look(settings, path, longest_s)

    bench.look = without_memory
    state = tune(bench)
    assert (tune.word(), state.ended, len(state.trials)) == ("proven", "unrecorded", 1)
    assert any("cannot be recorded" in line and line.endswith("signal 9") for line in tune.said)


def test_runs_that_vary_too_much_are_no_proof_that_nothing_is_to_be_gained(tune):
    state = tune(slow_map(always(20.0), noise=0.4, seed=3))
    assert "undecided" in which(state)
    assert (state.settings.is_empty, tune.word()) == (True, "undecided")


def test_an_end_after_many_trials_does_not_say_that_nothing_is_left(tune, monkeypatch):
    monkeypatch.setattr(search, "MOST_TRIALS", 1)
    state = tune(slow_map(always(20.0), source=20))
    assert (len(state.trials), state.ended) == (1, "trials")


def test_a_source_whose_workers_change_stays_in_threads_where_it_ran_in_threads(tune):
    """MindSpore's default for a source of several workers is processes."""
    state = tune(FakeBench(pipeline(6, 6, 40, consumer=100.0), always(20.0)))
    of_workers = [one for one in state.trials if one.key.startswith("2:workers=") and "processes" not in one.key]
    assert {one.processes for trial in of_workers for one in trial.settings.operators} == {False}
    assert {tuple(trial.what[0]["change"]["processes"]) for trial in of_workers} == {(False, False)}


SAME, OTHER = ("a", "b", "c"), ("a", "c", "b")


@pytest.mark.parametrize(
    ("plain", "changed", "word"),
    [
        ([SAME], [SAME], "same"), ([SAME], [SAME[:2]], "same"), ([SAME] * 2, [OTHER] * 2, "other"),
        ([SAME] * 2, [SAME, OTHER], "other"), ([SAME, OTHER], [SAME] * 2, "not_reproducible"),
        ([SAME], [OTHER], "not_seen"),  # a second unchanged run says which of the two it is
        ([()], [SAME], "not_seen"),
    ],
)  # fmt: skip
def test_batches_are_compared_with_those_of_every_run(plain, changed, word):
    assert compared(plain, changed) == word


works, effects = (st.tuples(*[st.floats(low, high)] * 3) for low, high in ((2.0, 60.0), (0.5, 2.2)))
LIGHT = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture], "derandomize": True}


@settings(max_examples=60, **LIGHT)
@given(work=works, effect=effects, seed=st.integers(0, 9), budget_s=st.floats(5.0, 900.0))
def test_it_never_recommends_a_slower_set_and_stays_in_its_budget(tmp_path_factory, work, effect, seed, budget_s):
    """Whatever the truth is, and however wrong the predictions are."""
    loop = pipeline(*work, consumer=150.0)

    def truth(changed):
        rate = loop.rate
        for one in changed.operators:
            rate *= effect[one.node] if (one.workers or 1) > 1 else 1.0
            rate *= 0.9 if one.processes else 1.0
        return rate

    bench = FakeBench(loop, truth, noise=0.01, seed=seed)
    folder = tmp_path_factory.mktemp("tune")
    state, _ = run_tune(TuneWish(COMMAND, folder, folder / "tuned", budget_s), bench, lambda _line: None)
    assert state.state == "finished"
    if is_proven(state):
        assert truth(state.settings) > truth(Settings())
    # A recording that was begun, and the runs of one pair, are not cut short.
    assert bench.clock <= budget_s + 4 * bench.run_s
    assert state.spent_s == pytest.approx(bench.clock)


def test_a_tuning_needs_a_command_and_keeps_no_secret_of_it(tmp_path):
    with pytest.raises(UsageError, match="no command"):
        run_tune(TuneWish((), tmp_path), None, print)
    command = (*COMMAND, "--token", "c0ffee-do-not-keep")
    state, folder = run_tune(TuneWish(command, tmp_path, tmp_path / "tuned"), slow_map(), print)
    content = content_of(state, tmp_path, allow_unchecked=False)
    assert content["command"] == [*COMMAND, "--token", "***"]
    assert "c0ffee" not in (folder / SESSION).read_text() + tune_text.pull_request(content)
    (folder / "patch.diff").unlink(missing_ok=True)
    (folder / "patch.diff").mkdir()
    with pytest.raises(MeasureError, match="cannot write into"):
        write_files(folder, content, "why")


def test_runs_of_a_training_whose_recording_was_ended_take_a_quarter_of_its_steps(tune):
    bench = slow_map(source=20, ended_after=410, interrupt_after=5)
    tune.refused(KeyboardInterrupt, None, bench)
    again = slow_map(source=20, ended_after=408)  # of the recordings with what was accepted, as long as 102 steps want
    state = tune(again)
    assert set(bench.steps_of_runs + again.steps_of_runs) == {102} == {state.stop_after}
    assert (state.final.verdict, len(state.seen)) == ("improved", 3)
    assert not any("long training" in line for line in tune.said)


@pytest.mark.parametrize(("asked", "ended_after", "steps"), [(50, 200, 50), ("all", None, None)])
def test_steps_that_the_user_chose_stay(tune, asked, ended_after, steps):
    bench = slow_map(source=20, ended_after=ended_after)
    assert {tune(bench, stop_after=asked).stop_after} == set(bench.steps_of_runs) == {steps}


@pytest.mark.parametrize(("rate", "runs"), [(25.0, 0.6 * (40 - 300 / 25)), (5.0, 0.6 * 10), (0.0, 0.6 * 40)])
def test_the_first_run_is_expected_to_take_what_its_steps_leave_of_the_recording(rate, runs):
    state = TuneState(tune="t", command=[], started_at="", look_s=40.0, stop_after=100, seen=[{"rate": rate}])
    assert state.run_s == pytest.approx(runs)
    state.stop_after = None
    assert state.run_s == pytest.approx(0.6 * 40)
    state.run_seconds = [9.0, 8.0]
    assert state.run_s == 9.0


def test_a_proof_ends_where_the_batches_turn_out_to_be_others(tune):
    bench = slow_map()
    bench.handed = lambda settings, _number: ("x",) if bench.runs[-1][0] == "final" and settings.operators else ("one",)
    state = tune(bench)
    assert (state.final.batches, len(state.final.a), tune.word()) == ("other", 2, "not_judged")


@pytest.mark.parametrize(
    ("verdicts_before", "goal", "again"),
    [
        (("no_gain", "accepted"), "time", True), (("slower", "accepted"), "time", True),
        (("accepted", "no_gain"), "time", False), (("no_gain", "accepted", "no_gain"), "time", False),
        (("other_data", "accepted"), "time", False), (("no_gain", "accepted"), "memory", False),
    ],
)  # fmt: skip
def test_what_was_no_gain_while_another_operator_limited_is_tried_again(tmp_path, verdicts_before, goal, again):
    bench, wish = idle(None) if goal == "memory" else slow_map(), TuneWish(COMMAND, tmp_path, goal=goal)
    seen, state = bench._seen(Settings()), new_state(wish)
    tuning = search.Tuning(wish, bench, tmp_path, state, print)
    best = tuning._following(seen).key
    state.trials = [trial_of("2:workers=3" if word == "accepted" else best, word) for word in verdicts_before]
    following = tuning._following(seen)
    assert (following is not None and following.key == best) is again


def test_operators_are_known_by_their_places_in_the_users_graph(tune, tmp_path):
    """An accepted batch in front of its map has the map's op_id: what was tried of the map is not tried of it."""
    bench = slow_map()
    state = tune(bench, 1.0)
    seen = bench._seen(state.settings)
    moved = replace(seen, ops=[row | {"node": 7} if row["op_id"] == 1 else row for row in seen.ops])
    tuning = search.Tuning(TuneWish(COMMAND, tmp_path), bench, tmp_path, state, print)
    keys = [[one.key for one in tuning._candidates(each)] for each in (seen, moved)]
    assert [{"1:workers=4", "7:workers=4"} & set(of) for of in keys] == [{"1:workers=4"}, {"7:workers=4"}]
    assert not any(key.startswith(":") or key == "" for key in keys[0])


ALPHA = policy_of("time").alpha


def test_the_last_look_of_a_proof_that_the_time_allows_has_half_of_what_is_left():
    plan = proof_plan(Final(), "time", 6)
    assert [look.reps for look in plan] == [4, 6]
    assert fsum(look.alpha for look in plan) == pytest.approx(ALPHA / 2)
    assert fsum(look.alpha for look in proof_plan(Final(), "time", LOOKS[-1])) == pytest.approx(ALPHA)


@given(st.lists(st.integers(4, 12), min_size=1, max_size=6))
def test_however_often_more_time_is_given_false_alarms_are_no_more_likely(mosts):
    final, last = Final(), 0
    for most in sorted(set(mosts)):
        plan = proof_plan(final, "time", most)
        assert [look.reps for look in plan if look.reps <= last] == final.looks
        final.looks, final.alphas = [look.reps for look in plan], [look.alpha for look in plan]
        assert min(final.alphas) >= 0
        last = most
    assert fsum(final.alphas) <= ALPHA * (1 + 1e-9)
    assert (fsum(final.alphas) == pytest.approx(ALPHA)) is (last == LOOKS[-1])


def test_a_proof_that_ends_with_the_budget_is_judged_by_what_it_could_have(tune):
    loop = pipeline(6, 12, 6, consumer=110.0)  # two workers for the second stage: x1.3
    final = tune(FakeBench(loop, seed=3, proof_noise=0.07), 120.0).final
    assert (len(final.a) < LOOKS[-1], final.looks[-1], final.verdict) == (True, len(final.a), "improved")
    assert judge_looks(*sides_of(final, "time"), policy_of("time")).verdict == "inconclusive"
