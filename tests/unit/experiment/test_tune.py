"""A tuning of known response surfaces: what it accepts, what it never recommends, and what it proves."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tune_fake import (
    COMMAND,
    SITE,
    FakeBench,
    epoch,
    final_word,
    pipeline,
    verdicts,
    with_a_cache,
    workers_of,
)

from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment.journal import SESSION
from pipeprof.experiment.tune import search
from pipeprof.experiment.tune.goal import is_hopeless
from pipeprof.experiment.tune.patch import content_of, write_files
from pipeprof.experiment.tune.rows import compared
from pipeprof.experiment.tune.search import TuneWish, run_tune
from pipeprof.experiment.tune.state import Trial, TuneState, new_state
from pipeprof.experiment.tune.trial import is_proven
from pipeprof.record.settings_file import Settings
from pipeprof.report import tune_text


def test_the_slow_map_gets_the_workers_that_it_needs(tune, tmp_path):
    state, said = tune(FakeBench(pipeline(6, 40, 6, consumer=100.0)))
    assert workers_of(state.settings, 1) >= 4
    assert is_proven(state)
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)
    assert final_word(state, tmp_path) == "proven"
    assert state.ended == "loop_limits"
    assert any("proving" in line for line in said)


def test_after_each_accepted_step_it_is_recorded_again(tune):
    bench = FakeBench(pipeline(6, 40, 20, consumer=100.0))
    state, _ = tune(bench)
    accepted = [one for one in state.trials if one.verdict == "accepted"]
    assert len(bench.looks) == len(accepted) + 1 == len(state.seen)
    assert bench.looks[-1] == state.settings
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)


def test_what_a_generator_would_gain_if_its_rows_had_numbers_is_said_and_not_tried(tune):
    loop = pipeline(6, 6, 40, consumer=100.0)
    loop = replace(loop, stages=tuple(replace(one, iterated=one.op_type == "GeneratorOp") for one in loop.stages))
    state, _ = tune(FakeBench(loop, lambda _settings: 25.0))
    assert not [one for one in state.trials if one.key.startswith("2:workers")]
    (told,) = state.seen[0]["iterated"]
    assert (told["op_id"], told["workers"]) == (2, 5)  # that are polled often enough
    assert 3.0 < told["low"] <= told["high"] < 5.0


def test_a_loop_that_limits_itself_has_nothing_to_gain(tune, tmp_path):
    bench = FakeBench(pipeline(2, 3, 2, consumer=50.0))
    state, _ = tune(bench)
    assert (state.trials, state.final, state.ended) == ([], None, "loop_limits")
    assert bench.runs == []
    content = content_of(state, tmp_path, allow_unchecked=False)
    assert (content["verdict"], content["exit_code"]) == ("nothing_to_gain", 0)


def test_predictions_that_fail_are_shown_and_cost_no_wrong_advice(tune, tmp_path):
    state, _ = tune(FakeBench(pipeline(6, 40, 6, consumer=100.0), lambda settings: 25.0 / workers_of(settings, 1)))
    assert state.trials
    assert {one.verdict for one in state.trials} <= {"slower", "no_gain"}
    assert any(one.predicted_wrong for one in state.trials)
    assert state.settings.is_empty
    assert final_word(state, tmp_path) == "nothing_to_gain"


def test_a_prediction_that_failed_corrects_those_of_the_same_settings(tune):
    """Two workers bring nothing: three, four and all are not tried."""
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(FakeBench(loop, lambda _settings: 25.0))
    one_map = [
        one.key
        for one in state.trials
        if one.key.startswith("1:workers=") and "+" not in one.key and "," not in one.key
    ]
    assert len(one_map) == 1
    state, _ = tune(FakeBench(loop, lambda settings: 25.0 * workers_of(settings, 1) ** 0.25), folder="a quarter of it")
    corrected = [one.prediction for one in state.trials if one.prediction["learned"]]
    assert state.trials[0].predicted_wrong
    assert all(one["ratio"] < 2 for one in corrected)


def test_a_cache_is_judged_by_the_epochs_after_the_one_that_fills_it(tune, tmp_path):
    state, _ = tune(with_a_cache(epochs=2))
    assert [one.verdict for one in state.trials if "cache" in one.key] == ["accepted"]
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)
    patch = content_of(state, tmp_path, allow_unchecked=False)["patch"]
    assert [one["why"] for one in patch["by_hand"]] == ["cache"]
    assert state.seen[0]["caches"][0]["tried"]
    assert state.seen[1]["caches"] == []


def test_a_cache_is_not_tried_where_no_epoch_follows(tune):
    state, _ = tune(with_a_cache(epochs=1))
    assert not any("cache" in one.key for one in state.trials)
    assert not state.seen[0]["caches"][0]["tried"]


def test_a_cache_whose_second_epoch_is_too_short_fails(tune):
    bench = with_a_cache(epochs=2)
    bench.later = lambda _rate, _settings: None
    state, _ = tune(bench)
    failed = next(one for one in state.trials if "cache" in one.key)
    assert failed.verdict == "failed"
    assert "more epochs" in failed.error


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


def idle_pipeline():
    """Operators that have four workers each, one with processes, in front of a loop that takes longer than all."""
    loop = pipeline(1, 4, 1, consumer=20.0)
    stages = tuple(
        replace(one, workers=4, rate=4 * one.rate, uses_processes=one.op_id == 1, kind="cpu") for one in loop.stages
    )
    return replace(loop, stages=stages, rate=20.0)


@pytest.mark.parametrize("goal", ["memory", "cores"])
def test_what_the_training_does_not_need_is_given_back(tune, tmp_path, goal):
    loop = idle_pipeline()
    bench = FakeBench(loop, lambda _settings: 20.0)
    bench.need = economy(loop)
    state, _ = tune(bench, goal=goal)
    assert final_word(state, tmp_path) == "proven"
    assert all(workers_of(state.settings, node) == 1 for node in range(3))
    assert next(one.processes for one in state.settings.operators if one.node == 1) is False
    assert state.final.need[0] == pytest.approx(1300 / 2700, rel=0.02)
    assert state.final.low > 0.95


def test_what_is_saved_at_the_price_of_speed_is_not_taken(tune, tmp_path):
    loop = idle_pipeline()
    bench = FakeBench(loop, lambda settings: 20.0 if settings.is_empty else 18.0)
    bench.need = economy(loop)
    state, _ = tune(bench, goal="memory")
    assert state.trials
    assert {one.verdict for one in state.trials} == {"slower"}
    assert final_word(state, tmp_path) == "nothing_to_gain"


@pytest.mark.parametrize(
    ("rates", "hopeless"),
    [([10.0, 10.2, 9.9], True), ([9.0, 11.0, 10.0], True), ([10.0, 13.0, 14.0], False), ([8.0, 20.0, 21.0], False)],
)
def test_a_trial_that_its_best_pair_could_not_save_is_hopeless(rates, hopeless):
    trial = Trial(key="1", what=[], prediction={}, settings=Settings(), a=[10.0] * 3, b=rates)
    assert is_hopeless(trial, "time", 6) == hopeless
    saving = Trial(key="1", what=[], prediction={}, settings=Settings(), a=[10.0] * 3, b=[10.0] * 3)
    saving.need_a, saving.need_b = rates, [10.0] * 3
    assert is_hopeless(saving, "memory", 6) == hopeless
    assert trial.interval is None  # nothing of it is kept


def test_of_what_nothing_was_predicted_not_all_pairs_are_made_where_they_cannot_help(tune):
    loop = replace(pipeline(6, 40, 6, consumer=100.0), free_cores=0.1)
    state, _ = tune(FakeBench(loop, lambda _settings: 25.0, noise=0.1))
    hopeless = [one for one in state.trials if one.verdict == "hopeless"]
    assert hopeless
    assert all(one.prediction["high"] is None and len(one.a) < 6 for one in hopeless)


def test_what_saves_nothing_is_not_taken(tune, tmp_path):
    loop = idle_pipeline()
    bench = FakeBench(loop, lambda _settings: 20.0)
    bench.need = lambda _settings: 1000.0
    state, _ = tune(bench, goal="memory")
    assert {one.verdict for one in state.trials} == {"no_gain"}
    assert final_word(state, tmp_path) == "nothing_to_gain"
    with pytest.raises(RunError, match="another command, folder, goal"):
        tune(FakeBench(loop, lambda _settings: 20.0))


def test_what_changes_the_batches_is_never_accepted(tune):
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
    bench.handed = lambda settings, _number: ("one", "two") if settings.is_empty else ("two", "one")
    state, _ = tune(bench)
    assert state.trials
    assert {one.verdict for one in state.trials} <= {"other_data", "no_gain", "slower"}
    assert state.trials[0].verdict == "other_data"
    assert len(state.trials[0].a) == 2
    assert state.settings.is_empty


def test_a_step_whose_later_rows_are_others_is_taken_back_and_the_rest_is_proven(tune, tmp_path):
    bench = FakeBench(pipeline(6, 40, 20, consumer=100.0))
    bench.whole = lambda settings, _number: [epoch("x", "others") if workers_of(settings, 2) > 1 else epoch()]
    state, said = tune(bench)
    steps = [(one.key, one.verdict) for one in state.trials if one.verdict in ("accepted", "other_data")]
    assert [word for _, word in steps] == ["accepted", "other_data"]
    assert (final_word(state, tmp_path), len(state.seen)) == ("proven", 2)
    assert {one.node for one in state.settings.operators} == {1}
    assert any("with it the whole set hands out other rows" in line for line in said)


def test_batches_that_no_two_runs_share_are_not_taken_unasked(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop)
    bench.handed = lambda _settings, number: (f"random {number}",)
    state, _ = tune(bench)
    assert state.trials[0].verdict == "unchecked"
    assert state.settings.is_empty
    bench = FakeBench(loop)
    bench.handed = lambda _settings, number: (f"random {number}",)
    state, _ = tune(bench, folder="allowed", allow_unchecked=True)
    assert state.final.batches == "not_reproducible"
    assert final_word(state, tmp_path, allow_unchecked=True) == "proven"
    assert final_word(state, tmp_path) == "not_judged"


def test_a_candidate_that_breaks_is_listed_and_the_next_is_tried(tune):
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
    bench.breaks = lambda settings: any(one.workers == 4 for one in settings.operators)
    state, _ = tune(bench)
    broken = [one for one in state.trials if one.verdict == "failed"]
    assert broken
    assert all(one.error == "it does not pickle" for one in broken)
    assert state.final.ratio > 1.5


def test_an_unchanged_command_that_fails_ends_it(tune):
    bench = FakeBench(pipeline(6, 40, 6))
    bench.breaks = lambda settings: settings.is_empty
    with pytest.raises(WorkloadError):
        tune(bench)


def failing(bench, folder, *runs):
    """The bench, whose runs of these names in a folder fail once each."""
    left, run = list(runs), bench.run

    def breaking(settings, of, name, longest_s):
        if of.name == folder and name in left:
            left.remove(name)
            raise WorkloadError("signal 9")
        return run(settings, of, name, longest_s)

    bench.run = breaking
    return bench


@pytest.mark.parametrize(("folder", "name"), [("trial-0", ("a", 0)), ("trial-0", ("b", 1)), ("final", ("b", 0))])
def test_a_run_that_fails_by_chance_is_made_again_and_told(tune, tmp_path, folder, name):
    state, said = tune(failing(FakeBench(pipeline(6, 40, 6, consumer=100.0)), folder, name))
    assert (final_word(state, tmp_path), verdicts(state)[0][1]) == ("proven", "accepted")
    assert [(one.folder, one.side, one.error) for one in state.failed_runs] == [(folder, name[0], "signal 9")]
    assert "  a run failed, and is made again: signal 9" in said


def test_a_set_that_fails_more_often_than_the_original_is_not_recommended_until_it_does_not(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(failing(FakeBench(loop), "final", ("b", 0), ("b", 2)))
    assert (final_word(state, tmp_path), state.final.error) == ("not_judged", "signal 9")
    assert content_of(state, tmp_path, allow_unchecked=False)["lacks_time"]  # which says how to go on
    state, _ = tune(FakeBench(loop))
    assert (final_word(state, tmp_path), [one.side for one in state.failed_runs]) == ("proven", ["b", "b"])


def test_a_set_that_cannot_be_recorded_is_proven_all_the_same(tune, tmp_path):
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
    look = bench.look

    def without_memory(settings, path, longest_s=None):
        if not settings.is_empty:
            raise WorkloadError("the command failed: signal 9")
        return look(settings, path, longest_s)

    bench.look = without_memory
    state, said = tune(bench)
    assert (final_word(state, tmp_path), state.ended, len(state.trials)) == ("proven", "unrecorded", 1)
    assert "the training cannot be recorded with what was accepted: the command failed: signal 9" in said


def test_runs_that_vary_too_much_are_no_proof_that_nothing_is_to_be_gained(tune, tmp_path):
    state, _ = tune(FakeBench(pipeline(6, 40, 6, consumer=100.0), lambda _settings: 20.0, noise=0.4, seed=3))
    assert "undecided" in {one.verdict for one in state.trials}
    assert state.settings.is_empty
    assert final_word(state, tmp_path) == "undecided"


def test_both_sides_show_the_batches_of_the_trainings_own_iterator(tune):
    """A loop that validates with an iterator of its own hands out those, too."""
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop)
    tune(bench)
    assert {settings.site for _, _, settings in bench.runs} == {SITE}


def test_an_end_after_many_trials_does_not_say_that_nothing_is_left(tune, monkeypatch):
    monkeypatch.setattr(search, "MOST_TRIALS", 1)
    state, _ = tune(FakeBench(pipeline(6, 40, 20, consumer=100.0), lambda _settings: 20.0))
    assert (len(state.trials), state.ended) == (1, "trials")


def test_a_source_whose_workers_change_stays_in_threads_where_it_ran_in_threads(tune):
    """MindSpore's default for a source of several workers is processes."""
    state, _ = tune(FakeBench(pipeline(6, 6, 40, consumer=100.0), lambda _settings: 20.0))
    of_workers = [one for one in state.trials if one.key.startswith("2:workers=") and "processes" not in one.key]
    assert of_workers
    assert {one.processes for trial in of_workers for one in trial.settings.operators} == {False}
    assert {tuple(trial.what[0]["change"]["processes"]) for trial in of_workers} == {(False, False)}


def test_a_command_is_needed(tmp_path):
    with pytest.raises(UsageError, match="no command"):
        run_tune(TuneWish((), tmp_path), None, print)


def test_batches_are_compared_with_those_of_every_run():
    same, other = ("a", "b", "c"), ("a", "c", "b")
    assert compared([same], [same]) == "same"
    assert compared([same], [same[:2]]) == "same"
    assert compared([same, same], [other, other]) == "other"
    assert compared([same, same], [same, other]) == "other"
    assert compared([same, other], [same, same]) == "not_reproducible"
    assert compared([same], [other]) == "not_seen"  # a second unchanged run says which of the two it is
    assert compared([()], [same]) == "not_seen"


works = st.floats(2.0, 60.0)


surfaces = st.fixed_dictionaries(
    {"map": st.floats(0.5, 2.2), "source": st.floats(0.5, 2.2), "batch": st.floats(0.5, 2.2)}
)


LIGHT = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture], "derandomize": True}


@settings(max_examples=60, **LIGHT)
@given(work=st.tuples(works, works, works), surface=surfaces, seed=st.integers(0, 9), budget_s=st.floats(5.0, 900.0))
def test_it_never_recommends_a_slower_set_and_stays_in_its_budget(tmp_path_factory, work, surface, seed, budget_s):
    """Whatever the truth is, and however wrong the predictions are."""
    loop = pipeline(*work, consumer=150.0)
    effect = dict(zip(range(3), (surface["batch"], surface["map"], surface["source"]), strict=True))

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
        assert truth(state.settings) > truth(type(state.settings)())
    # A recording that was begun, and the runs of one pair, are not cut short.
    assert bench.clock <= budget_s + 4 * bench.run_s
    assert state.spent_s == pytest.approx(bench.clock)


def test_a_tuning_keeps_no_secret_of_the_command(tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    command = (*COMMAND, "--token", "c0ffee-do-not-keep")
    state, folder = run_tune(TuneWish(command, tmp_path, tmp_path / "tuned"), FakeBench(loop), print)
    content = content_of(state, tmp_path, allow_unchecked=False)
    assert content["command"] == [*COMMAND, "--token", "***"]
    assert "c0ffee" not in (folder / SESSION).read_text() + tune_text.pull_request(content)


def test_runs_of_a_training_whose_recording_was_ended_take_a_quarter_of_its_steps(tune):
    loop = pipeline(6, 40, 20, consumer=100.0)
    bench = FakeBench(loop)
    bench.ended_after, bench.interrupt_after = 410, 5
    with pytest.raises(KeyboardInterrupt):
        tune(bench)
    again = FakeBench(loop)
    again.ended_after = 408  # of the recordings with what was accepted, which are as long as 102 steps want them
    state, said = tune(again)
    assert set(bench.steps_of_runs + again.steps_of_runs) == {102} == {state.stop_after}
    assert (state.final.verdict, len(state.seen)) == ("improved", 3)
    assert not any("long training" in line for line in said)


@pytest.mark.parametrize("asked", [50, "all"])
def test_steps_that_the_user_chose_stay(tune, asked):
    bench = FakeBench(pipeline(6, 40, 20, consumer=100.0))
    bench.ended_after = 200 if asked == 50 else None
    state, _ = tune(bench, stop_after=asked)
    assert set(bench.steps_of_runs) == {None if asked == "all" else 50} == {state.stop_after}


@pytest.mark.parametrize(("rate", "runs"), [(25.0, 0.6 * (40 - 300 / 25)), (5.0, 0.6 * 10), (0.0, 0.6 * 40)])
def test_the_first_run_is_expected_to_take_what_its_steps_leave_of_the_recording(rate, runs):
    state = TuneState(tune="t", command=[], started_at="", look_s=40.0, stop_after=100, seen=[{"rate": rate}])
    assert state.run_s == pytest.approx(runs)
    state.stop_after = None
    assert state.run_s == pytest.approx(0.6 * 40)
    state.run_seconds = [9.0, 8.0]
    assert state.run_s == 9.0


def test_a_proof_ends_where_the_batches_turn_out_to_be_others(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop)
    bench.handed = lambda settings, _number: ("x",) if bench.runs[-1][0] == "final" and settings.operators else ("one",)
    state, _ = tune(bench)
    assert (state.final.batches, len(state.final.a)) == ("other", 2)
    assert final_word(state, tmp_path) == "not_judged"


def test_where_every_change_failed_nothing_is_said_of_what_could_be_gained(tune, tmp_path):
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
    bench.breaks = lambda settings: bool(settings.operators)
    state, _ = tune(bench)
    assert {one.verdict for one in state.trials} == {"failed"}
    assert final_word(state, tmp_path) == "not_judged"


def test_a_file_that_cannot_be_replaced_is_an_error(tune, tmp_path):
    state, _ = tune(FakeBench(pipeline(6, 40, 6, consumer=100.0)))
    (tmp_path / "tuned" / "patch.diff").mkdir()
    with pytest.raises(MeasureError, match="cannot write into"):
        write_files(tmp_path / "tuned", content_of(state, tmp_path, allow_unchecked=False), "why")


@pytest.mark.parametrize(
    ("verdicts_before", "goal", "again"),
    [
        (("no_gain", "accepted"), "time", True),
        (("slower", "accepted"), "time", True),
        (("accepted", "no_gain"), "time", False),
        (("no_gain", "accepted", "no_gain"), "time", False),
        (("other_data", "accepted"), "time", False),
        (("no_gain", "accepted"), "memory", False),
    ],
)
def test_what_was_no_gain_while_another_operator_limited_is_tried_again(tmp_path, verdicts_before, goal, again):
    loop = idle_pipeline() if goal == "memory" else pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop)
    state = new_state(TuneWish(COMMAND, tmp_path, goal=goal))
    seen = bench._seen(Settings())
    tuning = search.Tuning(TuneWish(COMMAND, tmp_path, goal=goal), bench, tmp_path, state, print)
    best = tuning._following(seen).key
    state.trials = [
        Trial(
            key="2:workers=3" if word == "accepted" else best, what=[], prediction={}, settings=Settings(), verdict=word
        )
        for word in verdicts_before
    ]
    following = tuning._following(seen)
    assert (following is not None and following.key == best) is again


def test_operators_are_known_by_their_places_in_the_users_graph(tune, tmp_path):
    """An accepted batch in front of its map has the map's op_id: what was tried of the map is not tried of it."""
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
    state, _ = tune(bench, 1.0)
    seen = bench._seen(state.settings)
    moved = replace(seen, ops=[row | {"node": 7} if row["op_id"] == 1 else row for row in seen.ops])
    tuning = search.Tuning(TuneWish(COMMAND, tmp_path), bench, tmp_path, state, print)
    keys = [[one.key for one in tuning._candidates(each)] for each in (seen, moved)]
    assert "1:workers=4" in keys[0]
    assert "7:workers=4" in keys[1]
    assert "1:workers=4" not in keys[1]
    assert not any(key.startswith(":") or key == "" for key in keys[0])
