"""A tuning of known response surfaces: what it accepts, what it never recommends, its budget, and how it goes on."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tune_fake import SITE, FakeBench, by_workers, epoch, pipeline, with_a_cache, workers_of

from pipeprof.collect import fingerprint
from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment import repetition
from pipeprof.experiment.journal import SESSION
from pipeprof.experiment.pairs.series import Rate
from pipeprof.experiment.peak import Peak
from pipeprof.experiment.runs import Measured
from pipeprof.experiment.tune import bench as real_bench
from pipeprof.experiment.tune import search
from pipeprof.experiment.tune.bench import numa_nodes
from pipeprof.experiment.tune.goal import is_hopeless
from pipeprof.experiment.tune.result import content_of, write_files
from pipeprof.experiment.tune.rows import compared
from pipeprof.experiment.tune.search import TuneWish, run_tune
from pipeprof.experiment.tune.state import Final, Proven, Trial, TuneState, new_state, sources_of
from pipeprof.experiment.tune.trial import is_proven
from pipeprof.record.settings_file import OperatorSetting, Settings
from pipeprof.report import tune_text

COMMAND = ("python", "train.py")


@pytest.fixture
def tune(tmp_path):
    """`tune(bench, budget_s)`: the state, and what was said."""

    def run(bench, budget_s=3600.0, folder="tuned", **wish):
        said = []
        (tmp_path / folder).parent.mkdir(exist_ok=True)
        state, _ = run_tune(TuneWish(COMMAND, tmp_path, tmp_path / folder, budget_s, **wish), bench, said.append)
        return state, said

    return run


def verdicts(state):
    return [(one.key, one.verdict) for one in state.trials]


def final_word(state, tmp_path, **wish):
    return content_of(state, tmp_path, **({"allow_unchecked": False} | wish))["verdict"]


def test_the_slow_map_gets_the_workers_that_it_needs(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, said = tune(FakeBench(loop, by_workers(loop)))
    assert workers_of(state.settings, 1) >= 4
    assert is_proven(state)
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)
    assert final_word(state, tmp_path) == "proven"
    assert state.ended == "loop_limits"
    assert any("proving" in line for line in said)


def test_after_each_accepted_step_it_is_recorded_again(tune):
    loop = pipeline(6, 40, 20, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    state, _ = tune(bench)
    accepted = [one for one in state.trials if one.verdict == "accepted"]
    assert len(bench.looks) == len(accepted) + 1 == len(state.seen)
    assert bench.looks[-1] == state.settings
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)


def test_a_loop_that_limits_itself_has_nothing_to_gain(tune, tmp_path):
    loop = pipeline(2, 3, 2, consumer=50.0)
    bench = FakeBench(loop, by_workers(loop))
    state, _ = tune(bench)
    assert (state.trials, state.final, state.ended) == ([], None, "loop_limits")
    assert bench.runs == []
    content = content_of(state, tmp_path, allow_unchecked=False)
    assert (content["verdict"], content["exit_code"]) == ("nothing_to_gain", 0)


def test_predictions_that_fail_are_shown_and_cost_no_wrong_advice(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(FakeBench(loop, lambda settings: 25.0 / workers_of(settings, 1)))
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


def test_cores_are_listed_by_numa_node(tmp_path, monkeypatch):
    for node, cores in enumerate(["0-2,8", "3-5", ""]):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(f"{cores}\n", encoding="ascii")
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {1, 2, 3, 8})
    assert numa_nodes(tmp_path) == [("1,2,8", 3), ("3", 1)]


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
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench.handed = lambda settings, _number: ("one", "two") if settings.is_empty else ("two", "one")
    state, _ = tune(bench)
    assert state.trials
    assert {one.verdict for one in state.trials} <= {"other_data", "no_gain", "slower"}
    assert state.trials[0].verdict == "other_data"
    assert len(state.trials[0].a) == 2
    assert state.settings.is_empty


def test_a_step_whose_later_rows_are_others_is_taken_back_and_the_rest_is_proven(tune, tmp_path):
    loop = pipeline(6, 40, 20, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench.whole = lambda settings, _number: [epoch("x", "others") if workers_of(settings, 2) > 1 else epoch()]
    state, said = tune(bench)
    steps = [(one.key, one.verdict) for one in state.trials if one.verdict in ("accepted", "other_data")]
    assert [word for _, word in steps] == ["accepted", "other_data"]
    assert (final_word(state, tmp_path), len(state.seen)) == ("proven", 2)
    assert {one.node for one in state.settings.operators} == {1}
    assert any("with it the whole set hands out other rows" in line for line in said)


def test_batches_that_no_two_runs_share_are_not_taken_unasked(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench.handed = lambda _settings, number: (f"random {number}",)
    state, _ = tune(bench)
    assert state.trials[0].verdict == "unchecked"
    assert state.settings.is_empty
    bench = FakeBench(loop, by_workers(loop))
    bench.handed = lambda _settings, number: (f"random {number}",)
    state, _ = tune(bench, folder="allowed", allow_unchecked=True)
    assert state.final.batches == "not_reproducible"
    assert final_word(state, tmp_path, allow_unchecked=True) == "proven"
    assert final_word(state, tmp_path) == "not_judged"


def test_a_candidate_that_breaks_is_listed_and_the_next_is_tried(tune):
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench.breaks = lambda settings: any(one.workers == 4 for one in settings.operators)
    state, _ = tune(bench)
    broken = [one for one in state.trials if one.verdict == "failed"]
    assert broken
    assert all(one.error == "it does not pickle" for one in broken)
    assert state.final.ratio > 1.5


def test_an_unchanged_command_that_fails_ends_it(tune):
    loop = pipeline(6, 40, 6)
    bench = FakeBench(loop, by_workers(loop))
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
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, said = tune(failing(FakeBench(loop, by_workers(loop)), folder, name))
    assert (final_word(state, tmp_path), verdicts(state)[0][1]) == ("proven", "accepted")
    assert [(one.folder, one.side, one.error) for one in state.failed_runs] == [(folder, name[0], "signal 9")]
    assert "  a run failed, and is made again: signal 9" in said


def test_a_set_that_fails_more_often_than_the_original_is_not_recommended_until_it_does_not(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(failing(FakeBench(loop, by_workers(loop)), "final", ("b", 0), ("b", 2)))
    assert (final_word(state, tmp_path), state.final.error) == ("not_judged", "signal 9")
    assert content_of(state, tmp_path, allow_unchecked=False)["lacks_time"]  # which says how to go on
    state, _ = tune(FakeBench(loop, by_workers(loop)))
    assert (final_word(state, tmp_path), [one.side for one in state.failed_runs]) == ("proven", ["b", "b"])


def test_a_set_that_cannot_be_recorded_is_proven_all_the_same(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    look = bench.look

    def without_memory(settings, path, longest_s=None):
        if not settings.is_empty:
            raise WorkloadError("the command failed: signal 9")
        return look(settings, path, longest_s)

    bench.look = without_memory
    state, said = tune(bench)
    assert (final_word(state, tmp_path), state.ended, len(state.trials)) == ("proven", "unrecorded", 1)
    assert "the training cannot be recorded with what was accepted: the command failed: signal 9" in said


@pytest.mark.parametrize("folder", ["trial-0", "final"])
def test_a_source_that_changes_while_it_is_tuned_ends_the_tuning(tune, tmp_path, folder):
    script = tmp_path / "train.py"
    script.write_text("data = data.map(f)\n")
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    run = bench.run

    def edited(settings, of, name, longest_s):
        if (of.name, name) == (folder, ("b", 1)):
            script.write_text("import math\n\ndata = data.map(f)\n")
        return run(settings, of, name, longest_s)

    bench.run = edited
    with pytest.raises(RunError, match=r"`train.py` has changed since the tuning") as caught:
        tune(bench)
    assert "undo that" in caught.value.hint
    script.write_text("data = data.map(f)\n")
    state, _ = tune(FakeBench(loop, by_workers(loop)))
    assert final_word(state, tmp_path) == "proven"


def test_the_time_of_a_trial_that_was_interrupted_counts(tune, tmp_path):
    loop = pipeline(6, 40, 20, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench.interrupt_after = 2
    with pytest.raises(KeyboardInterrupt):
        tune(bench)
    kept = json.loads((tmp_path / "tuned" / SESSION).read_text(encoding="utf-8"))
    assert (kept["trials"], kept["spent_s"]) == ([], bench.clock)


@pytest.mark.parametrize("interrupt_after", [0, 1, 3, 7, 11, 14])
def test_an_interrupted_tuning_goes_on_to_the_same_end(tune, interrupt_after):
    loop = pipeline(6, 40, 20, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop), noise=0.0)
    whole, _ = tune(bench, folder="whole")
    first = FakeBench(loop, by_workers(loop), noise=0.0)
    first.interrupt_after = interrupt_after
    with pytest.raises(KeyboardInterrupt):
        tune(first)
    state, _ = tune(FakeBench(loop, by_workers(loop), noise=0.0))
    assert verdicts(state) == verdicts(whole)
    assert state.settings == whole.settings
    assert state.final.verdict == whole.final.verdict == "improved"


def test_a_finished_tuning_runs_nothing_again(tune):
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(FakeBench(loop, by_workers(loop)))
    bench = FakeBench(loop, by_workers(loop))
    again, said = tune(bench)
    assert (bench.runs, bench.looks) == ([], [])
    assert again.final.ratio == state.final.ratio
    assert "finished" in said[-1]


def test_a_tuning_that_lacked_time_goes_on_with_a_larger_budget(tune, tmp_path):
    loop = pipeline(6, 40, 20, consumer=100.0)
    state, _ = tune(FakeBench(loop, by_workers(loop)), 40.0)
    assert (state.state, state.ended) == ("finished", "budget")
    assert final_word(state, tmp_path) == "undecided"
    enough = content_of(state, tmp_path, allow_unchecked=False)["next_budget_s"]
    again, _ = tune(FakeBench(loop, by_workers(loop)), 40.0)
    assert (again.ended, len(again.trials)) == ("budget", len(state.trials))
    more, _ = tune(FakeBench(loop, by_workers(loop)), enough)
    assert len(more.trials) == len(again.trials) + 1
    whole, _ = tune(FakeBench(loop, by_workers(loop)), 3600.0)
    assert final_word(whole, tmp_path) == "proven"
    assert whole.final.ratio == pytest.approx(4.0, rel=0.05)


def test_a_trial_that_the_budget_cut_short_is_no_proof_that_nothing_is_to_be_gained(tune, tmp_path, monkeypatch):
    every = search.candidates
    monkeypatch.setattr(search, "candidates", lambda *args: every(*args)[:1])
    loop = pipeline(6, 40, 6, consumer=100.0)
    # After a recording and four pairs too little is left for a fifth and for the proof.
    state, _ = tune(FakeBench(loop, by_workers(loop), noise=0.6, seed=2), 118.0)
    assert [one.stopped for one in state.trials] == ["budget"]
    assert state.ended == "budget"
    assert final_word(state, tmp_path) == "undecided"


def test_a_proof_that_had_no_time_is_made_with_a_larger_budget(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    # A recording and two pairs of runs of 5 s, then a slow recording of what limits now: no time is left for the proof.
    bench = FakeBench(loop, by_workers(loop))
    bench.look_s = [10.0, 100.0]
    state, _ = tune(bench, 140.0)
    assert (state.ended, state.final.a, state.final.verdict) == ("loop_limits", [], None)
    content = content_of(state, tmp_path, allow_unchecked=False)
    assert (content["verdict"], content["lacks_time"]) == ("undecided", True)
    more, _ = tune(FakeBench(loop, by_workers(loop)), content["next_budget_s"])
    assert final_word(more, tmp_path) == "proven"
    assert not content_of(more, tmp_path, allow_unchecked=False)["lacks_time"]


def test_what_was_proven_stays_when_more_time_proves_nothing_more(tune, tmp_path):
    loop = pipeline(6, 40, 20, consumer=100.0)
    state, _ = tune(FakeBench(loop, by_workers(loop)))
    assert is_proven(state)
    proven = state.settings
    # The same tuning, as if its first step had been proven when the time was over; the runs of what comes now are noise.
    first = next(number for number, one in enumerate(state.trials) if one.verdict == "accepted")
    path = tmp_path / "tuned" / SESSION
    content = json.loads(path.read_text())
    content |= {"ended": "budget", "trials": content["trials"][: first + 1], "seen": content["seen"][:1]}
    path.write_text(json.dumps(content))
    less = Settings(**{**msgspec.to_builtins(proven), "operators": state.trials[first].settings.operators})
    bench = FakeBench(loop, by_workers(loop))
    bench.proof_noise = 3.0
    again, _ = tune(bench)
    assert any(one.verdict == "unproven" for one in again.trials)
    assert is_proven(again)
    assert again.settings.operators == less.operators
    assert final_word(again, tmp_path) == "proven"


def random_batches():
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench.handed = lambda _settings, number: (f"random {number}",)
    return bench


def test_leave_that_is_given_later_counts(tune, tmp_path):
    state, _ = tune(random_batches())
    assert final_word(state, tmp_path) == "not_judged"
    assert state.trials[0].verdict == "unchecked"
    again, _ = tune(random_batches(), allow_unchecked=True)
    assert final_word(again, tmp_path, allow_unchecked=True) == "proven"
    once_more, said = tune(random_batches(), allow_unchecked=True)
    assert "finished" in said[-1]
    assert len(once_more.trials) == len(again.trials)


def test_who_gives_leave_without_time_learns_how_much_time_it_takes(tune, tmp_path):
    state, _ = tune(random_batches())
    again, said = tune(random_batches(), state.spent_s + 1.0, allow_unchecked=True)
    assert "finished" in said[-1]
    content = content_of(again, tmp_path, allow_unchecked=True)
    assert (content["verdict"], content["lacks_time"]) == ("not_judged", True)
    assert not content_of(again, tmp_path, allow_unchecked=False)["lacks_time"]
    more, _ = tune(random_batches(), content["next_budget_s"], allow_unchecked=True)
    assert "accepted" in {one.verdict for one in more.trials}


def test_runs_that_vary_too_much_are_no_proof_that_nothing_is_to_be_gained(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(FakeBench(loop, lambda _settings: 20.0, noise=0.4, seed=3))
    assert "undecided" in {one.verdict for one in state.trials}
    assert state.settings.is_empty
    assert final_word(state, tmp_path) == "undecided"


def test_both_sides_show_the_batches_of_the_trainings_own_iterator(tune):
    """A loop that validates with an iterator of its own hands out those, too."""
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    tune(bench)
    assert {settings.site for _, _, settings in bench.runs} == {SITE}


def test_an_end_after_many_trials_does_not_say_that_nothing_is_left(tune, monkeypatch):
    monkeypatch.setattr(search, "MOST_TRIALS", 1)
    loop = pipeline(6, 40, 20, consumer=100.0)
    state, _ = tune(FakeBench(loop, lambda _settings: 20.0))
    assert (len(state.trials), state.ended) == (1, "trials")


def test_a_source_whose_workers_change_stays_in_threads_where_it_ran_in_threads(tune):
    """MindSpore's default for a source of several workers is processes."""
    loop = pipeline(6, 6, 40, consumer=100.0)
    state, _ = tune(FakeBench(loop, lambda _settings: 20.0))
    of_workers = [one for one in state.trials if one.key.startswith("2:workers=") and "processes" not in one.key]
    assert of_workers
    assert {one.processes for trial in of_workers for one in trial.settings.operators} == {False}
    assert {tuple(trial.what[0]["change"]["processes"]) for trial in of_workers} == {(False, False)}


def test_a_state_that_is_damaged_or_of_another_command_is_refused(tune, tmp_path):
    loop = pipeline(2, 3, 2, consumer=50.0)
    tune(FakeBench(loop, by_workers(loop)))
    path = tmp_path / "tuned" / SESSION
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"tune": "another"}))
    with pytest.raises(RunError, match="another command"):
        tune(FakeBench(loop, by_workers(loop)))
    path.write_text("{")
    with pytest.raises(RunError, match="damaged"):
        tune(FakeBench(loop, by_workers(loop)))


def test_a_training_without_a_pipeline_cannot_be_tuned_until_it_has_one(tune):
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench._seen = lambda _settings: None
    with pytest.raises(MeasureError, match="no dataset pipeline"):
        tune(bench)
    state, _ = tune(FakeBench(loop, by_workers(loop)))
    assert state.final.verdict == "improved"


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


@pytest.mark.parametrize(
    ("later", "batches"),
    [([], ()), ([{"number": 0, "epoch": 1}], ("d", "d")), ([{"number": 3, "epoch": 0}], ("d", "d"))],
)
def test_batches_of_a_first_epoch_prove_no_cache(tmp_path, monkeypatch, later, batches):
    """What draws random numbers where nobody sees it is the same in every first epoch."""
    events = [{"row": 0, "site": "train.py:7", "digest": "d", **one} for one in [{"number": 0, "epoch": 0}, *later]]
    found = {"batch_digest": events, "override": [{"node": 1}]}
    rate = SimpleNamespace(per_second=1.0)
    done = SimpleNamespace(path=tmp_path, rate=rate, later_rate=rate, events=lambda kind: found.get(kind, []))
    monkeypatch.setattr(real_bench, "run_once", lambda *_args: done)
    cached = Settings(operators=(OperatorSetting(node=1, op_type="MapOp", cache=1 << 20),))
    assert real_bench.TuneBench(["true"]).run(cached, tmp_path, ("b", 0), None).batches == batches


def test_memory_that_cannot_be_read_is_an_error_and_not_none(tmp_path, monkeypatch):
    rate = SimpleNamespace(per_second=1.0)
    done = SimpleNamespace(path=tmp_path, rate=rate, later_rate=rate, events=lambda _kind: [])
    monkeypatch.setattr(real_bench, "run_once", lambda *_args: done)
    monkeypatch.setattr(real_bench, "watched_memory", lambda: nullcontext(Peak()))
    with pytest.raises(MeasureError, match=r"the memory of the processes of run .* cannot be read"):
        real_bench.TuneBench(["true"], "memory").run(Settings(), tmp_path, ("a", 0), None)


def test_a_tuning_keeps_no_secret_of_the_command(tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    command = (*COMMAND, "--token", "c0ffee-do-not-keep")
    state, folder = run_tune(TuneWish(command, tmp_path, tmp_path / "tuned"), FakeBench(loop, by_workers(loop)), print)
    content = content_of(state, tmp_path, allow_unchecked=False)
    assert content["command"] == [*COMMAND, "--token", "***"]
    assert "c0ffee" not in (folder / SESSION).read_text() + tune_text.pull_request(content)


def test_events_of_several_ranks_come_in_the_order_of_the_ranks(tmp_path):
    """Which of them started first is chance."""
    processes = [
        SimpleNamespace(about={"rank": rank}, all=lambda name, rank=rank: [{"e": name, "of": rank}])
        for rank in (1, None, 2, 0)
    ]
    run = Measured("a", 0, tmp_path, Rate(1.0, 9), 9, processes)
    assert [event["of"] for event in run.events("batch_digest")] == [None, 0, 1, 2]


def test_a_tuning_goes_on_only_with_the_sources_that_it_began_with(tune, tmp_path):
    (tmp_path / "train.py").write_text("data = data.map(f)\n")
    loop = pipeline(6, 40, 6, consumer=100.0)
    tune(FakeBench(loop, by_workers(loop)))
    tune(FakeBench(loop, by_workers(loop)))
    (tmp_path / "train.py").write_text("data = data.map(f, num_parallel_workers=2)\n")
    with pytest.raises(RunError, match=r"`train.py` has changed since the tuning"):
        tune(FakeBench(loop, by_workers(loop)))


def test_a_tuning_goes_on_only_on_the_machine_that_it_was_begun_on(tune, monkeypatch):
    loop = pipeline(6, 40, 6, consumer=100.0)
    stopped = FakeBench(loop, by_workers(loop))
    stopped.interrupt_after = 3
    with pytest.raises(KeyboardInterrupt):
        tune(stopped)
    here = fingerprint.machine()
    monkeypatch.setattr(fingerprint, "machine", lambda: here | {"cpu_model": "another", "host": "there"})
    with pytest.raises(MeasureError, match="was begun under different conditions: cpu_model, host") as caught:
        tune(FakeBench(loop, by_workers(loop)))
    assert "-o" in caught.value.hint
    monkeypatch.setattr(fingerprint, "machine", lambda: here)
    state, _ = tune(FakeBench(loop, by_workers(loop)))
    monkeypatch.setattr(fingerprint, "machine", lambda: here | {"host": "there"})
    assert tune(FakeBench(loop, by_workers(loop)))[0].final == state.final  # nothing is run


def test_the_first_recording_ends_with_the_budget(tune, tmp_path, monkeypatch):
    loop = pipeline(6, 40, 20, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    tune(bench, 3000.0)
    assert bench.longest_looks[0] == pytest.approx(3000.0)
    assert set(bench.longest_looks[1:]) == {search.SLOWER * 10.0 + search.GRACE_S}  # of recordings of 10 s

    def late(trial, **_options):
        (trial.path / "step").mkdir(parents=True)
        raise trial.failed(f"took longer than {trial.longest_s:g} s and was ended")

    monkeypatch.setattr(real_bench, "run_trial", late)
    with pytest.raises(WorkloadError, match="the command took longer than 9 s and was ended") as caught:
        real_bench.TuneBench(["true"]).look(Settings(), tmp_path / "look-0", 9.0)
    assert "--budget" in caught.value.hint
    assert not (tmp_path / "look-0").exists()


def test_runs_of_a_training_whose_recording_was_ended_take_a_quarter_of_its_steps(tune):
    loop = pipeline(6, 40, 20, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench.ended_after, bench.interrupt_after = 410, 5
    with pytest.raises(KeyboardInterrupt):
        tune(bench)
    again = FakeBench(loop, by_workers(loop))
    again.ended_after = 408  # of the recordings with what was accepted, which are as long as 102 steps want them
    state, said = tune(again)
    assert set(bench.steps_of_runs + again.steps_of_runs) == {102} == {state.stop_after}
    assert (state.final.verdict, len(state.seen)) == ("improved", 3)
    assert not any("long training" in line for line in said)


@pytest.mark.parametrize("asked", [50, "all"])
def test_steps_that_the_user_chose_stay(tune, asked):
    loop = pipeline(6, 40, 20, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
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


def test_sources_are_all_files_that_lead_to_an_operator_or_hold_its_function(tmp_path):
    (tmp_path / "loader.py").write_text("")
    row = {"site": "lib/loader.py:9", "callers": "data.py:3\ntrain.py:7", "code": "augment.py:1"}
    seen = SimpleNamespace(site="trainer.py:5", ops=[row, {"site": None, "callers": None, "code": None}])
    assert set(sources_of(tmp_path, ["python", "run.py", "--config=run.yaml", "--log", "out.json"], seen)) == {
        "augment.py", "data.py", "lib/loader.py", "run.py", "run.yaml", "train.py", "trainer.py",
    }  # fmt: skip


def test_a_command_that_does_not_wait_for_its_processes_is_told_what_to_do(tmp_path, monkeypatch):
    manifest = SimpleNamespace(reason_facts={"code": "process_alive", "pid": 71})
    ended = SimpleNamespace(failure="", run=SimpleNamespace(manifest=manifest))
    monkeypatch.setattr(real_bench, "run_trial", lambda *_args, **_more: ended)
    with pytest.raises(WorkloadError, match="process 71 of it runs on in the background") as caught:
        real_bench.TuneBench(["msrun"]).look(Settings(), tmp_path / "look-0", 9.0)
    assert "--join=True" in caught.value.hint


def test_a_tuning_in_which_nothing_was_tried_begins_anew_with_a_changed_source(tune, tmp_path):
    (tmp_path / "train.py").write_text("steps = 1\n")
    loop = pipeline(6, 40, 6, consumer=100.0)
    short = FakeBench(loop, by_workers(loop))
    short.interrupt_after = 0
    with pytest.raises(KeyboardInterrupt):
        tune(short)
    (tmp_path / "train.py").write_text("steps = 100\n")
    bench = FakeBench(loop, by_workers(loop))
    state, _ = tune(bench)
    assert bench.looks[0].is_empty
    assert state.final.verdict == "improved"


def test_a_proof_that_is_decided_is_not_gone_on_with(tune, tmp_path):
    """As after a kill between the pair that decided and the end."""
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(FakeBench(loop, by_workers(loop)))
    path = tmp_path / "tuned" / SESSION
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "open"}))
    bench = FakeBench(loop, by_workers(loop))
    again, _ = tune(bench)
    assert bench.runs == []
    assert (again.state, again.final) == ("finished", state.final)


def test_a_proof_ends_where_the_batches_turn_out_to_be_others(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench.handed = lambda settings, _number: ("x",) if bench.runs[-1][0] == "final" and settings.operators else ("one",)
    state, _ = tune(bench)
    assert (state.final.batches, len(state.final.a)) == ("other", 2)
    assert final_word(state, tmp_path) == "not_judged"


def test_each_recording_is_read_once(tune):
    """One that is not complete, as of a script that leaves a process behind, would be made again each time."""
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench, looked = FakeBench(loop, by_workers(loop)), []
    bench.breaks = lambda settings: any(one.workers == 4 for one in settings.operators)
    look = bench.look
    bench.look = lambda settings, path, longest_s: looked.append(path.name) or look(settings, path, longest_s)
    state, _ = tune(bench)
    assert len(state.trials) > 1
    assert looked == sorted(set(looked))


@pytest.mark.parametrize(("pairs", "stopped", "ended"), [(4, "budget", "budget"), (12, "decided", "nothing_left")])
def test_what_lacked_only_looks_of_its_proof_is_made_again(tune, tmp_path, pairs, stopped, ended):
    loop = pipeline(6, 40, 20, consumer=100.0)
    state, _ = tune(FakeBench(loop, by_workers(loop)))
    accepted = [number for number, one in enumerate(state.trials) if one.verdict == "accepted"]
    assert len(accepted) > 1
    state.ended, state.proven = "nothing_left", Proven(final=state.final, trials=accepted[0] + 1)
    state.final = Final(a=[10.0] * pairs, b=[10.0] * pairs, batches="same", rows_compared=True, verdict="inconclusive")
    folder = tmp_path / "tuned"
    search.Tuning(
        TuneWish(COMMAND, tmp_path, folder), FakeBench(loop, by_workers(loop)), folder, state, print
    )._fall_back()
    given_up = [state.trials[number] for number in accepted[1:]]
    assert {(one.verdict, one.stopped) for one in given_up} == {("unproven", stopped)}
    assert state.ended == ended
    assert (len(state.seen), (folder / "look-1").exists(), (folder / "look-2").exists()) == (2, True, False)


def test_where_every_change_failed_nothing_is_said_of_what_could_be_gained(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    bench.breaks = lambda settings: bool(settings.operators)
    state, _ = tune(bench)
    assert {one.verdict for one in state.trials} == {"failed"}
    assert final_word(state, tmp_path) == "not_judged"


def test_a_file_that_cannot_be_replaced_is_an_error(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(FakeBench(loop, by_workers(loop)))
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
    bench = FakeBench(loop, by_workers(loop))
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
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop, by_workers(loop))
    state, _ = tune(bench, 1.0)
    seen = bench._seen(state.settings)
    moved = replace(seen, ops=[row | {"node": 7} if row["op_id"] == 1 else row for row in seen.ops])
    tuning = search.Tuning(TuneWish(COMMAND, tmp_path), bench, tmp_path, state, print)
    keys = [[one.key for one in tuning._candidates(each)] for each in (seen, moved)]
    assert "1:workers=4" in keys[0]
    assert "7:workers=4" in keys[1]
    assert "1:workers=4" not in keys[1]
    assert not any(key.startswith(":") or key == "" for key in keys[0])


@pytest.mark.parametrize("run", ["look-0", "trial-0/a1", "trial-1/rows/b0", "original/b0"])
def test_beside_a_run_that_outlived_a_kill_nothing_is_measured(tune, tmp_path, monkeypatch, run):
    loop = pipeline(6, 40, 6, consumer=100.0)
    first = FakeBench(loop, by_workers(loop))
    first.interrupt_after = 1
    with pytest.raises(KeyboardInterrupt):
        tune(first)
    (tmp_path / "tuned" / run / "spool").mkdir(parents=True)
    alive = {tmp_path / "tuned" / run: [4711]}
    monkeypatch.setattr(repetition.Bench, "still_running", lambda _bench, path: alive[path])
    with pytest.raises(UsageError, match=f"process 4711 of the interrupted repetition `{run}` is still running"):
        tune(FakeBench(loop, by_workers(loop)))
    alive.clear()
    (tmp_path / "tuned" / run / "spool").rmdir()
    assert is_proven(tune(FakeBench(loop, by_workers(loop)))[0])


def test_the_budget_that_is_said_to_be_enough_is_so_though_recordings_are_read_first(tune, tmp_path):
    loop = pipeline(6, 40, 20, consumer=100.0)
    state, _ = tune(FakeBench(loop, by_workers(loop)), 40.0)
    bench = FakeBench(loop, by_workers(loop))
    look = bench.look

    def reading(settings, path, longest_s):
        bench.clock += 5.0
        return look(settings, path, longest_s)

    bench.look = reading
    again, _ = tune(bench, content_of(state, tmp_path, allow_unchecked=False)["next_budget_s"])
    assert len(again.trials) == len(state.trials) + 1
