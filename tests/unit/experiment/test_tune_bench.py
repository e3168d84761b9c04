"""What a tuning reads from its runs, and of the machine."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from pipeprof.errors import MeasureError, WorkloadError
from pipeprof.experiment.pairs import Rate
from pipeprof.experiment.runs import Measured
from pipeprof.experiment.trial import Peak
from pipeprof.experiment.tune import bench as real_bench
from pipeprof.experiment.tune.bench import numa_nodes
from pipeprof.record.settings_file import OperatorSetting, Settings


def test_cores_are_listed_by_numa_node(tmp_path, monkeypatch):
    for node, cores in enumerate(["0-2,8", "3-5", ""]):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(f"{cores}\n", encoding="ascii")
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {1, 2, 3, 8})
    assert numa_nodes(tmp_path) == [("1,2,8", 3), ("3", 1)]


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


def test_a_recording_that_was_interrupted_is_made_again(tmp_path, monkeypatch):
    """A script that ends well after Ctrl-C leaves a run that looks complete."""

    def interrupted(trial, **_more):
        trial.path.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(real_bench, "run_trial", interrupted)
    with pytest.raises(KeyboardInterrupt):
        real_bench.TuneBench(["true"]).look(Settings(), tmp_path / "look-0", 9.0)
    assert not (tmp_path / "look-0").exists()


def test_memory_that_cannot_be_read_is_an_error_and_not_none(tmp_path, monkeypatch):
    rate = SimpleNamespace(per_second=1.0)
    done = SimpleNamespace(path=tmp_path, rate=rate, later_rate=rate, events=lambda _kind: [])
    monkeypatch.setattr(real_bench, "run_once", lambda *_args: done)
    monkeypatch.setattr(real_bench, "watched_memory", lambda: nullcontext(Peak()))
    with pytest.raises(MeasureError, match=r"the memory of the processes of run .* cannot be read"):
        real_bench.TuneBench(["true"], "memory").run(Settings(), tmp_path, ("a", 0), None)


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
    with pytest.raises(WorkloadError, match="process 71 of it runs on in the background") as caught:
        real_bench.TuneBench(["msrun"]).look(Settings(), tmp_path / "look-0", 9.0)
    assert "--join=True" in caught.value.hint
