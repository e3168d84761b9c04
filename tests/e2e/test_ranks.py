"""A job of several processes is one run with one rank per process."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from free_port import free_port

from pipeprof.experiment.runs import LIGHT
from pipeprof.experiment.trial import Trial, run_trial
from pipeprof.record import store

pytestmark = [pytest.mark.mindspore, pytest.mark.alone]

STEPS = 6


def command_of(pipeprof, mode, steps):
    """The job of two ranks; what they say is in the folder."""
    msrun = Path(pipeprof.python).with_name("msrun")
    words = ["--worker_num=2", "--local_worker_num=2", f"--master_port={free_port()}", "--join=True"]
    script = pipeprof.script("distributed.py", mode, str(steps))[1:]
    return [str(msrun), *words, f"--log_dir={pipeprof.folder / 'logs'}", *script]


@pytest.fixture(scope="module", params=["graph", "jit", "pynative"])
def job(request, two_ranks):
    return two_ranks(request.param, STEPS)


@pytest.fixture(scope="module")
def two_ranks(pipeprof_in):
    known = {}

    def record(mode, steps):
        if mode not in known:
            pipeprof = pipeprof_in("ranks-" + mode)
            recording = pipeprof.collect(command_of(pipeprof, mode, steps), "--schedule", "active=100")
            texts = {
                path.name: path.read_text(errors="replace") for path in sorted(pipeprof.folder.rglob("worker_*.log"))
            }
            assert recording.done.returncode == 0, (recording.done.stderr, texts)
            recording.logs = texts
            known[mode] = recording
        return known[mode]

    return record


def test_ranks_that_are_ended_after_a_time_end_after_the_same_step(pipeprof_in):
    """Each would wait for ever for the AllReduce of one that has left."""
    home = pipeprof_in("ranks-ended")
    probe = replace(LIGHT, stop_after=20, stop_after_s=1.0)
    trial = Trial(home.folder / "run", command_of(home, "pynative", 20_000), probe, env=home.environment())
    ended = run_trial(trial, processes=True)
    assert ended.failure == ""
    steps = Counter(row["rank"] for row in store.read(ended.run, "step").to_pylist())
    assert steps[0] == steps[1] == ended.run.manifest.options["stopped_after"] >= 20


def test_the_other_rank_is_a_part_of_the_job_and_nobody_takes_its_cpu(job):
    parts = {(row["rank"], row["part"]) for row in job.rows("cpu_use")}
    assert {(0, "other_rank"), (1, "other_rank"), (0, "launcher"), (1, "launcher")} <= parts
    trainers = {row["rank"]: row["pid"] for row in job.rows("process") if row["part"] == "trainer"}
    assert trainers == {rank.rank: rank.pid for rank in job.manifest.reps[0].ranks}
    used = {(row["rank"], row["pid"]) for row in job.rows("cpu_use") if row["part"] in ("child", "worker")}
    assert not used & {(rank, pid) for rank in (0, 1) for pid in trainers.values()}


def test_every_rank_has_its_steps(job):
    assert {row["rank"] for row in job.rows("step")} == {0, 1}
    assert [rank.rank for rank in job.manifest.reps[0].ranks] == [0, 1]
    for rank in (0, 1):
        assert [row["kind_step"] for row in job.training(rank)] == list(range(STEPS))


def test_steps_lie_where_each_rank_says(job):
    for text in job.logs.values():
        line = next(line for line in text.splitlines() if line.startswith("rank ") and " truth " in line)
        rank, told = int(line.split()[1]), json.loads(line.partition(" truth ")[2])
        rows = job.training(rank)
        wrong = [(n, row["start_ns"], job.clock(at), row["end_ns"]) for n, (row, (_, _, at)) in enumerate(zip(rows, told, strict=True))
                 if not row["start_ns"] <= job.clock(at) <= row["end_ns"]]  # fmt: skip
        assert not wrong


def test_every_rank_has_its_collectives_in_its_steps(job):
    for rank in (0, 1):
        collectives = [row for row in job.rows("collective") if row["rank"] == rank]
        assert {row["kind"] for row in collectives} == {"all_reduce"}
        steps = {row["step"] for row in job.training(rank) if row["in_window"]}
        assert {row["step"] for row in collectives} == steps
        per_step = [sum(row["step"] == step for row in collectives) for step in sorted(steps)]
        assert len(set(per_step)) == 1, per_step


def test_scheduler_and_launcher_are_no_ranks(job):
    assert job.manifest.state == "complete", job.manifest.reason
    assert not {"rank_clash"} & job.warned().keys()
    assert not [code for code in job.warned() if code.startswith("probe_failed")]


def test_clocks_of_the_ranks_agree_on_one_machine(job):
    zeros = [rank.zero_realtime_ns for rank in job.manifest.reps[0].ranks]
    assert max(zeros) - min(zeros) < 50_000_000


def test_phases_add_up_on_every_rank(job):
    for row in job.rows("step"):
        points = [row[name] for name in ("start_ns", "fp_ns", "bp_ns", "end_ns") if row[name] is not None]
        assert points == sorted(points), row


def test_backward_ends_before_the_last_gradient_is_reduced(job):
    """BP is the operator that feeds the last all-reduce, so no step's BP lies after its last all-reduce began."""
    for rank in (0, 1):
        starts = {}
        for row in job.rows("collective"):
            if row["rank"] == rank:
                starts[row["step"]] = max(starts.get(row["step"], 0), row["start_ns"])
        seen = [(row["bp_ns"], starts[row["step"]]) for row in job.training(rank) if row["bp_ns"] is not None]
        assert seen
        assert all(bp <= start for bp, start in seen)
