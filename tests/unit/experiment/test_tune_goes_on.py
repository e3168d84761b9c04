"""A tuning that was stopped, lacked time or lost its ground: how it goes on, and when it refuses to."""

import json
from types import SimpleNamespace

import msgspec
import pytest
from tune_fake import COMMAND, FakeBench, final_word, pipeline, verdicts

from pipeprof.collect import fingerprint
from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment import repetition
from pipeprof.experiment.journal import SESSION
from pipeprof.experiment.tune import bench as real_bench
from pipeprof.experiment.tune import search
from pipeprof.experiment.tune.patch import content_of
from pipeprof.experiment.tune.search import TuneWish
from pipeprof.experiment.tune.state import FailedRun, Final, Proven, sources_of
from pipeprof.experiment.tune.trial import is_proven
from pipeprof.record.settings_file import Settings
from pipeprof.report.tune_text import pull_request


@pytest.mark.parametrize("folder", ["trial-0", "final"])
def test_a_source_that_changes_while_it_is_tuned_ends_the_tuning(tune, tmp_path, folder):
    script = tmp_path / "train.py"
    script.write_text("data = data.map(f)\n")
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop)
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
    state, _ = tune(FakeBench(loop))
    assert final_word(state, tmp_path) == "proven"


def test_the_time_of_a_trial_that_was_interrupted_counts(tune, tmp_path):
    bench = FakeBench(pipeline(6, 40, 20, consumer=100.0))
    bench.interrupt_after = 2
    with pytest.raises(KeyboardInterrupt):
        tune(bench)
    kept = json.loads((tmp_path / "tuned" / SESSION).read_text(encoding="utf-8"))
    assert (kept["trials"], kept["spent_s"]) == ([], bench.clock)


@pytest.mark.parametrize("interrupt_after", [0, 1, 3, 7, 11, 14])
def test_an_interrupted_tuning_goes_on_to_the_same_end(tune, interrupt_after):
    loop = pipeline(6, 40, 20, consumer=100.0)
    bench = FakeBench(loop, noise=0.0)
    whole, _ = tune(bench, folder="whole")
    first = FakeBench(loop, noise=0.0)
    first.interrupt_after = interrupt_after
    with pytest.raises(KeyboardInterrupt):
        tune(first)
    state, _ = tune(FakeBench(loop, noise=0.0))
    assert verdicts(state) == verdicts(whole)
    assert state.settings == whole.settings
    assert state.final.verdict == whole.final.verdict == "improved"


def test_a_finished_tuning_runs_nothing_again(tune):
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(FakeBench(loop))
    bench = FakeBench(loop)
    again, said = tune(bench)
    assert (bench.runs, bench.looks) == ([], [])
    assert again.final.ratio == state.final.ratio
    assert "finished" in said[-1]


def test_a_tuning_that_lacked_time_goes_on_with_a_larger_budget(tune, tmp_path):
    loop = pipeline(6, 40, 20, consumer=100.0)
    state, _ = tune(FakeBench(loop), 40.0)
    assert (state.state, state.ended) == ("finished", "budget")
    assert final_word(state, tmp_path) == "undecided"
    enough = content_of(state, tmp_path, allow_unchecked=False)["next_budget_s"]
    again, _ = tune(FakeBench(loop), 40.0)
    assert (again.ended, len(again.trials)) == ("budget", len(state.trials))
    more, _ = tune(FakeBench(loop), enough)
    assert len(more.trials) == len(again.trials) + 1
    whole, _ = tune(FakeBench(loop), 3600.0)
    assert final_word(whole, tmp_path) == "proven"
    assert whole.final.ratio == pytest.approx(4.0, rel=0.05)


def test_a_trial_that_the_budget_cut_short_is_no_proof_that_nothing_is_to_be_gained(tune, tmp_path, monkeypatch):
    every = search.candidates
    monkeypatch.setattr(search, "candidates", lambda *args: every(*args)[:1])
    # After a recording and four pairs too little is left for a fifth and for the proof.
    state, _ = tune(FakeBench(pipeline(6, 40, 6, consumer=100.0), noise=0.6, seed=2), 118.0)
    assert [one.stopped for one in state.trials] == ["budget"]
    assert state.ended == "budget"
    assert final_word(state, tmp_path) == "undecided"


def test_a_proof_that_had_no_time_is_made_with_a_larger_budget(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    # A recording and two pairs of runs of 5 s, then a slow recording of what limits now: no time is left for the proof.
    bench = FakeBench(loop)
    bench.look_s = [10.0, 100.0]
    state, _ = tune(bench, 140.0)
    assert (state.ended, state.final.a, state.final.verdict) == ("loop_limits", [], None)
    content = content_of(state, tmp_path, allow_unchecked=False)
    assert (content["verdict"], content["lacks_time"]) == ("undecided", True)
    more, _ = tune(FakeBench(loop), content["next_budget_s"])
    assert final_word(more, tmp_path) == "proven"
    assert not content_of(more, tmp_path, allow_unchecked=False)["lacks_time"]


def test_what_was_proven_stays_when_more_time_proves_nothing_more(tune, tmp_path):
    loop = pipeline(6, 40, 20, consumer=100.0)
    state, _ = tune(FakeBench(loop))
    assert is_proven(state)
    proven = state.settings
    # The same tuning, as if its first step had been proven when the time was over; the runs of what comes now are noise.
    first = next(number for number, one in enumerate(state.trials) if one.verdict == "accepted")
    path = tmp_path / "tuned" / SESSION
    content = json.loads(path.read_text())
    content |= {"ended": "budget", "trials": content["trials"][: first + 1], "seen": content["seen"][:1]}
    path.write_text(json.dumps(content))
    less = Settings(**{**msgspec.to_builtins(proven), "operators": state.trials[first].settings.operators})
    bench = FakeBench(loop)
    bench.proof_noise = 3.0
    again, _ = tune(bench)
    assert any(one.verdict == "unproven" for one in again.trials)
    assert is_proven(again)
    assert again.settings.operators == less.operators
    assert final_word(again, tmp_path) == "proven"


def test_runs_that_failed_in_the_proof_of_more_are_not_told_of_what_was_proven(tune, tmp_path):
    state, _ = tune(FakeBench(pipeline(6, 40, 20, consumer=100.0)))
    for steps in (state.steps, state.steps + 1):
        state.failed_runs = [FailedRun(folder="final", side="b", error="killed", steps=steps)]
        told = pull_request(content_of(state, tmp_path, allow_unchecked=False))
        assert ("Runs that failed: 0 unchanged, 1 changed" in told) == (steps == state.steps)


def random_batches():
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
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


def test_who_waits_for_another_iterator_then_is_not_told_that_the_data_is_fast_enough(tune):
    bench = FakeBench(pipeline(6, 40, 6, consumer=60.0))
    bench.waits_elsewhere = lambda settings: not settings.is_empty
    state, _ = tune(bench)
    assert (state.final.verdict, state.ended) == ("improved", "other_iterator")


def test_who_gives_leave_without_time_learns_how_much_time_it_takes(tune, tmp_path):
    state, _ = tune(random_batches())
    again, said = tune(random_batches(), state.spent_s + 1.0, allow_unchecked=True)
    assert "finished" in said[-1]
    content = content_of(again, tmp_path, allow_unchecked=True)
    assert (content["verdict"], content["lacks_time"]) == ("not_judged", True)
    assert not content_of(again, tmp_path, allow_unchecked=False)["lacks_time"]
    more, _ = tune(random_batches(), content["next_budget_s"], allow_unchecked=True)
    assert "accepted" in {one.verdict for one in more.trials}


def test_a_state_that_is_damaged_or_of_another_command_is_refused(tune, tmp_path):
    loop = pipeline(2, 3, 2, consumer=50.0)
    tune(FakeBench(loop))
    path = tmp_path / "tuned" / SESSION
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"tune": "another"}))
    with pytest.raises(RunError, match="another command"):
        tune(FakeBench(loop))
    path.write_text("{")
    with pytest.raises(RunError, match="damaged"):
        tune(FakeBench(loop))


def test_a_training_without_a_pipeline_cannot_be_tuned_until_it_has_one(tune):
    loop = pipeline(6, 40, 6, consumer=100.0)
    bench = FakeBench(loop)
    bench._seen = lambda _settings: None
    with pytest.raises(MeasureError, match="no dataset pipeline"):
        tune(bench)
    state, _ = tune(FakeBench(loop))
    assert state.final.verdict == "improved"


def test_a_tuning_goes_on_only_with_the_sources_that_it_began_with(tune, tmp_path):
    (tmp_path / "train.py").write_text("data = data.map(f)\n")
    loop = pipeline(6, 40, 6, consumer=100.0)
    tune(FakeBench(loop))
    tune(FakeBench(loop))
    (tmp_path / "train.py").write_text("data = data.map(f, num_parallel_workers=2)\n")
    with pytest.raises(RunError, match=r"`train.py` has changed since the tuning"):
        tune(FakeBench(loop))


def test_a_tuning_goes_on_only_on_the_machine_that_it_was_begun_on(tune, monkeypatch):
    loop = pipeline(6, 40, 6, consumer=100.0)
    stopped = FakeBench(loop)
    stopped.interrupt_after = 3
    with pytest.raises(KeyboardInterrupt):
        tune(stopped)
    here = fingerprint.machine()
    monkeypatch.setattr(fingerprint, "machine", lambda: here | {"cpu_model": "another", "host": "there"})
    with pytest.raises(MeasureError, match="was begun under different conditions: cpu_model, host") as caught:
        tune(FakeBench(loop))
    assert "-o" in caught.value.hint
    monkeypatch.setattr(fingerprint, "machine", lambda: here)
    state, _ = tune(FakeBench(loop))
    monkeypatch.setattr(fingerprint, "machine", lambda: here | {"host": "there"})
    assert tune(FakeBench(loop))[0].final == state.final  # nothing is run


def test_the_first_recording_ends_with_the_budget(tune, tmp_path, monkeypatch):
    bench = FakeBench(pipeline(6, 40, 20, consumer=100.0))
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


def test_sources_are_all_files_that_lead_to_an_operator_or_hold_its_function(tmp_path):
    (tmp_path / "loader.py").write_text("")
    row = {"site": "lib/loader.py:9", "callers": "data.py:3\ntrain.py:7", "code": "augment.py:1"}
    seen = SimpleNamespace(site="trainer.py:5", ops=[row, {"site": None, "callers": None, "code": None}])
    assert set(sources_of(tmp_path, ["python", "run.py", "--config=run.yaml", "--log", "out.json"], seen)) == {
        "augment.py", "data.py", "lib/loader.py", "run.py", "run.yaml", "train.py", "trainer.py",
    }  # fmt: skip


def test_a_tuning_in_which_nothing_was_tried_begins_anew_with_a_changed_source(tune, tmp_path):
    (tmp_path / "train.py").write_text("steps = 1\n")
    loop = pipeline(6, 40, 6, consumer=100.0)
    short = FakeBench(loop)
    short.interrupt_after = 0
    with pytest.raises(KeyboardInterrupt):
        tune(short)
    (tmp_path / "train.py").write_text("steps = 100\n")
    bench = FakeBench(loop)
    state, _ = tune(bench)
    assert bench.looks[0].is_empty
    assert state.final.verdict == "improved"


def test_a_proof_that_is_decided_is_not_gone_on_with(tune, tmp_path):
    """As after a kill between the pair that decided and the end."""
    loop = pipeline(6, 40, 6, consumer=100.0)
    state, _ = tune(FakeBench(loop))
    path = tmp_path / "tuned" / SESSION
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "open"}))
    bench = FakeBench(loop)
    again, _ = tune(bench)
    assert bench.runs == []
    assert (again.state, again.final) == ("finished", state.final)


def test_each_recording_is_read_once(tune):
    """One that is not complete, as of a script that leaves a process behind, would be made again each time."""
    bench, looked = FakeBench(pipeline(6, 40, 6, consumer=100.0)), []
    bench.breaks = lambda settings: any(one.workers == 4 for one in settings.operators)
    look = bench.look
    bench.look = lambda settings, path, longest_s: looked.append(path.name) or look(settings, path, longest_s)
    state, _ = tune(bench)
    assert len(state.trials) > 1
    assert looked == sorted(set(looked))


@pytest.mark.parametrize(("pairs", "stopped", "ended"), [(4, "budget", "budget"), (12, "decided", "nothing_left")])
def test_what_lacked_only_looks_of_its_proof_is_made_again(tune, tmp_path, pairs, stopped, ended):
    loop = pipeline(6, 40, 20, consumer=100.0)
    state, _ = tune(FakeBench(loop))
    accepted = [number for number, one in enumerate(state.trials) if one.verdict == "accepted"]
    assert len(accepted) > 1
    state.ended, state.proven = "nothing_left", Proven(final=state.final, trials=accepted[0] + 1)
    state.final = Final(a=[10.0] * pairs, b=[10.0] * pairs, batches="same", rows_compared=True, verdict="inconclusive")
    folder = tmp_path / "tuned"
    search.Tuning(TuneWish(COMMAND, tmp_path, folder), FakeBench(loop), folder, state, print)._fall_back()
    given_up = [state.trials[number] for number in accepted[1:]]
    assert {(one.verdict, one.stopped) for one in given_up} == {("unproven", stopped)}
    assert state.ended == ended
    assert (len(state.seen), (folder / "look-1").exists(), (folder / "look-2").exists()) == (2, True, False)


@pytest.mark.parametrize("run", ["look-0", "trial-0/a1", "trial-1/rows/b0", "original/b0"])
def test_beside_a_run_that_outlived_a_kill_nothing_is_measured(tune, tmp_path, monkeypatch, run):
    loop = pipeline(6, 40, 6, consumer=100.0)
    first = FakeBench(loop)
    first.interrupt_after = 1
    with pytest.raises(KeyboardInterrupt):
        tune(first)
    (tmp_path / "tuned" / run / "spool").mkdir(parents=True)
    alive = {tmp_path / "tuned" / run: [4711]}
    monkeypatch.setattr(repetition.Bench, "still_running", lambda _bench, path: alive[path])
    with pytest.raises(UsageError, match=f"process 4711 of the interrupted repetition `{run}` is still running"):
        tune(FakeBench(loop))
    alive.clear()
    (tmp_path / "tuned" / run / "spool").rmdir()
    assert is_proven(tune(FakeBench(loop))[0])


def test_the_budget_that_is_said_to_be_enough_is_so_though_recordings_are_read_first(tune, tmp_path):
    loop = pipeline(6, 40, 20, consumer=100.0)
    state, _ = tune(FakeBench(loop), 40.0)
    bench = FakeBench(loop)
    look = bench.look

    def reading(settings, path, longest_s):
        bench.clock += 5.0
        return look(settings, path, longest_s)

    bench.look = reading
    again, _ = tune(bench, content_of(state, tmp_path, allow_unchecked=False)["next_budget_s"])
    assert len(again.trials) == len(state.trials) + 1
