"""A tuning that was stopped, lacked time or lost its ground: how it goes on, and when it refuses to."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import msgspec
import pytest
from tune_fake import COMMAND, FakeBench, pipeline, slow_map, verdicts, which

from pipeprof.collect import fingerprint
from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment import repetition
from pipeprof.experiment.pairs import Rate
from pipeprof.experiment.runs import Measured
from pipeprof.experiment.trial import Peak
from pipeprof.experiment.tune import bench as real_bench
from pipeprof.experiment.tune import search
from pipeprof.experiment.tune.bench import TuneBench, numa_nodes
from pipeprof.experiment.tune.search import TuneWish
from pipeprof.experiment.tune.state import FailedRun, Final, Proven, sources_of
from pipeprof.experiment.tune.trial import is_proven
from pipeprof.record.settings_file import OperatorSetting, Settings
from pipeprof.report.tune_text import pull_request


@pytest.fixture
def interrupted(tune):
    """`interrupted(after)`: the bench of a tuning that was interrupted after so many runs."""

    def run(after, **given):
        bench = slow_map(interrupt_after=after, **given)
        tune.refused(KeyboardInterrupt, None, bench)
        return bench

    return run


@pytest.mark.parametrize("folder", ["trial-0", "final"])
def test_a_source_that_changes_while_it_is_tuned_ends_the_tuning(tune, tmp_path, folder):
    script, bench = tmp_path / "train.py", slow_map()
    script.write_text("data = data.map(f)\n")
    run = bench.run

    def edited(settings, of, name, longest_s):
        if (of.name, name) == (folder, ("b", 1)):
            script.write_text("import math\n\ndata = data.map(f)\n")
        return run(settings, of, name, longest_s)

    bench.run = edited
    assert "undo that" in tune.refused(RunError, "`train.py` has changed since", bench).hint
    script.write_text("data = data.map(f)\n")
    tune(slow_map())
    assert tune.word() == "proven"
    tune(slow_map())  # goes on only with the sources that it began with
    script.write_text("data = data.map(f, num_parallel_workers=2)\n")
    tune.refused(RunError, "`train.py` has changed since", slow_map())


def test_the_time_of_a_trial_that_was_interrupted_counts(tune, interrupted):
    bench = interrupted(2, source=20)
    kept = json.loads(tune.session.read_text(encoding="utf-8"))
    assert (kept["trials"], kept["spent_s"]) == ([], bench.clock)


@pytest.mark.parametrize("interrupt_after", [0, 1, 3, 7, 11, 14])
def test_an_interrupted_tuning_goes_on_to_the_same_end(tune, interrupted, interrupt_after):
    whole = tune(slow_map(source=20, noise=0.0), folder="whole")
    interrupted(interrupt_after, source=20, noise=0.0)
    state = tune(slow_map(source=20, noise=0.0))
    assert (verdicts(state), state.settings) == (verdicts(whole), whole.settings)
    assert state.final.verdict == whole.final.verdict == "improved"


def test_a_finished_tuning_runs_nothing_again(tune):
    final, bench = tune(slow_map()).final, slow_map()
    assert tune(bench).final.ratio == final.ratio
    assert (bench.runs, bench.looks, "finished" in tune.said[-1]) == ([], [], True)
    tune.edit(state="open")  # as after a kill between the pair that decided and the end
    again = tune(bench)
    assert (bench.runs, again.state, again.final) == ([], "finished", final)


def test_a_tuning_that_lacked_time_goes_on_with_a_larger_budget(tune):
    state = tune(slow_map(source=20), 40.0)
    assert (state.state, state.ended, tune.word()) == ("finished", "budget", "undecided")
    enough = tune.content()["next_budget_s"]
    again = tune(slow_map(source=20), 40.0)
    assert (again.ended, len(again.trials)) == ("budget", len(state.trials))
    bench = slow_map(source=20)
    look = bench.look

    def reading(settings, path, longest_s):
        bench.clock += 5.0
        return look(settings, path, longest_s)

    bench.look = reading  # the budget that is said to be enough is so though recordings are read first
    assert len(tune(bench, enough).trials) == len(again.trials) + 1
    whole = tune(slow_map(source=20), 3600.0)
    assert (tune.word(), whole.final.ratio) == ("proven", pytest.approx(4.0, rel=0.05))


def test_a_trial_that_the_budget_cut_short_is_no_proof_that_nothing_is_to_be_gained(tune, monkeypatch):
    every = search.candidates
    monkeypatch.setattr(search, "candidates", lambda *args: every(*args)[:1])
    # After a recording and four pairs too little is left for a fifth and for the proof.
    state = tune(slow_map(noise=0.6, seed=2), 118.0)
    assert [one.stopped for one in state.trials] == ["budget"]
    assert (state.ended, tune.word()) == ("budget", "undecided")


def test_a_proof_that_had_no_time_is_made_with_a_larger_budget(tune):
    # A recording and two pairs of runs of 5 s, then a slow recording of what limits now: no time is left for the proof.
    state = tune(slow_map(look_s=[10.0, 100.0]), 140.0)
    assert (state.ended, state.final.a, state.final.verdict) == ("loop_limits", [], None)
    content = tune.content()
    assert (content["verdict"], content["lacks_time"]) == ("undecided", True)
    tune(slow_map(), content["next_budget_s"])
    assert (tune.word(), tune.content()["lacks_time"]) == ("proven", False)


def test_what_was_proven_stays_when_more_time_proves_nothing_more(tune):
    state = tune(slow_map(source=20))
    assert is_proven(state)
    # The same tuning, as if its first step had been proven when the time was over; what is run now is noise.
    first = next(number for number, one in enumerate(state.trials) if one.verdict == "accepted")
    content = json.loads(tune.session.read_text())
    tune.edit(ended="budget", trials=content["trials"][: first + 1], seen=content["seen"][:1])
    less = Settings(**{**msgspec.to_builtins(state.settings), "operators": state.trials[first].settings.operators})
    again = tune(slow_map(source=20, proof_noise=3.0))
    assert "unproven" in which(again)
    assert (is_proven(again), again.settings.operators, tune.word()) == (True, less.operators, "proven")


def test_runs_that_failed_in_the_proof_of_more_are_not_told_of_what_was_proven(tune):
    state = tune(slow_map(source=20))
    for steps in (state.steps, state.steps + 1):
        state.failed_runs = [FailedRun(folder="final", side="b", error="killed", steps=steps)]
        told = pull_request(tune.content())
        assert ("Runs that failed: 0 unchanged, 1 changed" in told) == (steps == state.steps)


def random_batches():
    return slow_map(handed=lambda _settings, number: (f"random {number}",))


def test_leave_that_is_given_later_counts(tune):
    state = tune(random_batches())
    assert (tune.word(), state.trials[0].verdict, state.settings.is_empty) == ("not_judged", "unchecked", True)
    again = tune(random_batches(), state.spent_s + 1.0, allow_unchecked=True)  # and who has no time learns how much
    assert "finished" in tune.said[-1]
    content = tune.content(unchecked=True)
    assert (content["verdict"], content["lacks_time"], tune.content()["lacks_time"]) == ("not_judged", True, False)
    more = tune(random_batches(), content["next_budget_s"], allow_unchecked=True)
    assert "accepted" in which(more)
    again = tune(random_batches(), allow_unchecked=True)
    assert (again.final.batches, tune.word(unchecked=True), tune.word()) == ("not_reproducible", "proven", "not_judged")
    once_more = tune(random_batches(), allow_unchecked=True)
    assert ("finished" in tune.said[-1], len(once_more.trials)) == (True, len(again.trials))


def test_who_waits_for_another_iterator_then_is_not_told_that_the_data_is_fast_enough(tune):
    loop = pipeline(6, 40, 6, consumer=60.0)
    state = tune(FakeBench(loop, waits_elsewhere=lambda settings: not settings.is_empty))
    assert (state.final.verdict, state.ended) == ("improved", "other_iterator")


def test_a_state_that_is_damaged_or_of_another_command_is_refused(tune):
    tune(slow_map())
    tune.edit(tune="another")
    tune.refused(RunError, "another command", slow_map())
    tune.session.write_text("{")
    tune.refused(RunError, "damaged", slow_map())


def test_a_training_without_a_pipeline_cannot_be_tuned_until_it_has_one(tune):
    tune.refused(MeasureError, "no dataset pipeline", slow_map(_seen=lambda _settings: None))
    assert tune(slow_map()).final.verdict == "improved"


def test_a_tuning_goes_on_only_on_the_machine_that_it_was_begun_on(tune, interrupted, monkeypatch):
    def elsewhere(**other):
        monkeypatch.setattr(fingerprint, "machine", lambda: here | other)

    interrupted(3)
    here = fingerprint.machine()
    elsewhere(cpu_model="another", host="there")
    assert "-o" in tune.refused(MeasureError, "different conditions: cpu_model, host", slow_map()).hint
    elsewhere()
    state = tune(slow_map())
    elsewhere(host="there")
    assert tune(slow_map()).final == state.final  # nothing is run


def test_the_first_recording_ends_with_the_budget(tune, tmp_path, monkeypatch):
    bench = slow_map(source=20)
    tune(bench, 3000.0)
    assert bench.longest_looks[0] == pytest.approx(3000.0)
    assert set(bench.longest_looks[1:]) == {search.SLOWER * 10.0 + search.GRACE_S}  # of recordings of 10 s

    def late(trial, **_options):
        (trial.path / "step").mkdir(parents=True)
        raise trial.failed(f"took longer than {trial.longest_s:g} s and was ended")

    monkeypatch.setattr(real_bench, "run_trial", late)
    with pytest.raises(WorkloadError, match="the command took longer than 9 s and was ended") as caught:
        TuneBench(["true"]).look(Settings(), tmp_path / "look-0", 9.0)
    assert "--budget" in caught.value.hint
    assert not (tmp_path / "look-0").exists()


def test_sources_are_all_files_that_lead_to_an_operator_or_hold_its_function(tmp_path):
    (tmp_path / "loader.py").write_text("")
    row = {"site": "lib/loader.py:9", "callers": "data.py:3\ntrain.py:7", "code": "augment.py:1"}
    seen = SimpleNamespace(site="trainer.py:5", ops=[row, {"site": None, "callers": None, "code": None}])
    found = sources_of(tmp_path, ["python", "run.py", "--config=run.yaml", "--log", "out.json"], seen)
    operators = {"augment.py", "data.py", "lib/loader.py", "train.py", "trainer.py"}
    assert set(found) == operators | {"run.py", "run.yaml"}


def test_a_tuning_in_which_nothing_was_tried_begins_anew_with_a_changed_source(tune, interrupted, tmp_path):
    (tmp_path / "train.py").write_text("steps = 1\n")
    interrupted(0)
    (tmp_path / "train.py").write_text("steps = 100\n")
    bench = slow_map()
    assert tune(bench).final.verdict == "improved"
    assert bench.looks[0].is_empty


def test_each_recording_is_read_once(tune):
    """One that is not complete, as of a script that leaves a process behind, would be made again each time."""
    bench, looked = slow_map(breaks=lambda settings: any(one.workers == 4 for one in settings.operators)), []
    look = bench.look
    bench.look = lambda settings, path, longest_s: looked.append(path.name) or look(settings, path, longest_s)
    assert len(tune(bench).trials) > 1
    assert looked == sorted(set(looked))


@pytest.mark.parametrize(("pairs", "stopped", "ended"), [(4, "budget", "budget"), (12, "decided", "nothing_left")])
def test_what_lacked_only_looks_of_its_proof_is_made_again(tune, tmp_path, pairs, stopped, ended):
    state, folder = tune(slow_map(source=20)), tmp_path / "tuned"
    accepted = [number for number, one in enumerate(state.trials) if one.verdict == "accepted"]
    assert len(accepted) > 1
    state.ended, state.proven = "nothing_left", Proven(final=state.final, trials=accepted[0] + 1)
    state.final = Final(a=[10.0] * pairs, b=[10.0] * pairs, batches="same", rows_compared=True, verdict="inconclusive")
    search.Tuning(TuneWish(COMMAND, tmp_path, folder), slow_map(source=20), folder, state, print)._fall_back()
    given_up = [state.trials[number] for number in accepted[1:]]
    assert {(one.verdict, one.stopped) for one in given_up} == {("unproven", stopped)}
    assert state.ended == ended
    assert (len(state.seen), (folder / "look-1").exists(), (folder / "look-2").exists()) == (2, True, False)


@pytest.mark.parametrize("run", ["look-0", "trial-0/a1", "trial-1/rows/b0", "original/b0"])
def test_beside_a_run_that_outlived_a_kill_nothing_is_measured(tune, interrupted, tmp_path, monkeypatch, run):
    interrupted(1)
    (tmp_path / "tuned" / run / "spool").mkdir(parents=True)
    alive = {tmp_path / "tuned" / run: [4711]}
    monkeypatch.setattr(repetition.Bench, "still_running", lambda _bench, path: alive[path])
    tune.refused(UsageError, f"process 4711 .* `{run}` is still running", slow_map())
    (tmp_path / "tuned" / run / "spool").rmdir()
    alive.clear()
    assert is_proven(tune(slow_map()))


def test_cores_are_listed_by_numa_node(tmp_path, monkeypatch):
    for node, cores in enumerate(["0-2,8", "3-5", ""]):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(f"{cores}\n", encoding="ascii")
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {1, 2, 3, 8})
    assert numa_nodes(tmp_path) == [("1,2,8", 3), ("3", 1)]


@pytest.fixture
def done(tmp_path, monkeypatch):
    """`done(events)`: the run that comes out whatever is run, with these events by their kind."""
    rate = SimpleNamespace(per_second=1.0)

    def made(**events):
        run = SimpleNamespace(path=tmp_path, rate=rate, later_rate=rate, events=lambda kind: events.get(kind, []))
        monkeypatch.setattr(real_bench, "run_once", lambda *_args: run)

    return made


@pytest.mark.parametrize(
    ("later", "batches"),
    [([], ()), ([{"number": 0, "epoch": 1}], ("d", "d")), ([{"number": 3, "epoch": 0}], ("d", "d"))],
)
def test_batches_of_a_first_epoch_prove_no_cache(tmp_path, done, later, batches):
    """What draws random numbers where nobody sees it is the same in every first epoch."""
    events = [{"row": 0, "site": "train.py:7", "digest": "d", **one} for one in [{"number": 0, "epoch": 0}, *later]]
    done(batch_digest=events, override=[{"node": 1}])
    cached = Settings(operators=(OperatorSetting(node=1, op_type="MapOp", cache=1 << 20),))
    assert TuneBench(["true"]).run(cached, tmp_path, ("b", 0), None).batches == batches


def test_memory_that_cannot_be_read_is_an_error_and_not_none(tmp_path, monkeypatch, done):
    done()
    monkeypatch.setattr(real_bench, "watched_memory", lambda: nullcontext(Peak()))
    with pytest.raises(MeasureError, match=r"memory .* cannot be read"):
        TuneBench(["true"], "memory").run(Settings(), tmp_path, ("a", 0), None)


def test_a_recording_that_was_interrupted_is_made_again(tmp_path, monkeypatch):
    """A script that ends well after Ctrl-C leaves a run that looks complete."""

    def interrupted(trial, **_more):
        trial.path.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(real_bench, "run_trial", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TuneBench(["true"]).look(Settings(), tmp_path / "look-0", 9.0)
    assert not (tmp_path / "look-0").exists()


def test_events_of_several_ranks_come_in_the_order_of_the_ranks(tmp_path):
    """Which of them started first is chance."""
    processes = [
        SimpleNamespace(about={"rank": rank}, all=lambda name, rank=rank: [{"e": name, "of": rank}])
        for rank in (1, None, 2, 0)
    ]
    run = Measured("a", 0, tmp_path, Rate(1.0, 9), 9, processes)
    assert [event["of"] for event in run.events("batch_digest")] == [None, 0, 1, 2]


def test_a_command_that_does_not_wait_for_its_processes_is_told_what_to_do(tmp_path, monkeypatch):
    manifest = SimpleNamespace(reason_facts={"code": "process_alive", "pid": 71})
    ended = SimpleNamespace(failure="", run=SimpleNamespace(manifest=manifest))
    monkeypatch.setattr(real_bench, "run_trial", lambda *_args, **_more: ended)
    with pytest.raises(WorkloadError, match="process 71 of it runs on") as caught:
        TuneBench(["msrun"]).look(Settings(), tmp_path / "look-0", 9.0)
    assert "--join=True" in caught.value.hint
