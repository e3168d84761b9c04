"""A real cluster of two nodes on this machine gives the answers of one machine, also when nodes are lost or come late."""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from ascend_files import write_output
from click.testing import CliRunner
from cluster_nodes import cluster_of, end, fill, kill, where
from fleet_cost import forget_rollup
from fleet_runs import make_fleet

from pipeprof import cluster, processes
from pipeprof.cli import cli
from pipeprof.errors import RunError, UsageError
from pipeprof.read.foreign import import_path
from pipeprof.record.run import load
from pipeprof.report.fleet import gather as gathering
from pipeprof.report.fleet.gather import gather

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]  # starts a cluster of workers
RUNS, RANKS = 130, 5


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory):
    """The URL of a cluster of two nodes that are not to be killed."""
    with cluster_of(tmp_path_factory.mktemp("nodes")) as nodes:
        yield nodes.url


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Runs of every kind (damaged, failed, cut off), a sixth of them without their rollups."""
    folder = tmp_path_factory.mktemp("fleet")
    make_fleet(folder / "runs", RUNS, 20)
    for path in sorted(folder.rglob("rollup"))[::6]:
        shutil.rmtree(path)
        forget_rollup(path.parent)
    return folder / "runs"


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Files of some ranks."""
    folder = tmp_path_factory.mktemp("traces")
    for rank in range(RANKS):
        write_output(folder / f"host{rank}_ascend_pt", rank=rank)
    return folder


def sorted_rows(table):
    return sorted(table.to_pylist(), key=lambda row: (row["run"], row["rep"] or 0, row["rank"] or 0))


def near(one, other):
    """Whether two JSON documents are the same, floats within 1e-12: DuckDB adds them up in any order."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(near(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(near, one, other))
    return one == pytest.approx(other, rel=1e-12, abs=0) if isinstance(one, float) else one == other


def imported(source, target, progress=lambda _text: None):
    """The size and checksum of every file of the run that the files give."""
    run = import_path(source, target, progress=progress)
    return {name: (part.bytes, part.sha256) for name, part in run.manifest.parts.items()}


def test_a_question_over_many_runs_has_the_same_answer(fleet, two_nodes, monkeypatch):
    monkeypatch.chdir(fleet.parent)
    alone = gather([Path("runs")], fresh=True)
    with cluster.connected(two_nodes):
        spread = gather([Path("runs")], fresh=True)
    assert sorted_rows(spread) == sorted_rows(alone)
    problems = [row["problem"] for row in sorted_rows(alone) if row["state"] == "damaged"]
    assert problems
    assert all("`runs/" in text for text in problems)


def test_the_verbs_take_the_url(fleet, traces, two_nodes, tmp_path):
    words = ("fleet", str(fleet), "--format", "json")
    alone = CliRunner().invoke(cli, [*words, "--fresh"])
    spread = CliRunner().invoke(cli, [*words, "--fresh", "--engine", two_nodes])
    assert spread.exit_code == 0, spread.output
    assert near(json.loads(spread.stdout), json.loads(alone.stdout))
    done = CliRunner().invoke(cli, ["import", str(traces), "-o", str(tmp_path / "run"), "--engine", two_nodes])
    assert done.exit_code == 0, done.output
    assert len(load(tmp_path / "run").manifest.reps[0].ranks) == RANKS


def test_an_import_writes_the_same_files(traces, two_nodes, tmp_path):
    alone = imported(traces, tmp_path / "alone")
    with cluster.connected(two_nodes):
        assert imported(traces, tmp_path / "spread") == alone


def test_answers_are_equal_when_a_node_is_killed_in_the_middle(fleet, traces, tmp_path, monkeypatch):
    monkeypatch.setattr(gathering, "BLOCK", 10)
    alone = gather([fleet], fresh=True)
    tables = imported(traces, tmp_path / "alone")
    with cluster_of(tmp_path) as nodes, cluster.connected(nodes.url):

        def lose_a_node(_text):
            if nodes.nodes[0].poll() is None:
                kill(nodes.nodes[0])

        def lose_another(text):
            if "2 of" in text and nodes.nodes[1].poll() is None:
                kill(nodes.nodes[1])

        assert sorted_rows(gather([fleet], lose_a_node, fresh=True)) == sorted_rows(alone)
        nodes.add()
        assert imported(traces, tmp_path / "spread", lose_another) == tables
        assert [node.poll() for node in nodes.nodes] == [-signal.SIGKILL, -signal.SIGKILL, None]
    assert not list((tmp_path / "spread").rglob("*.tmp"))


def test_a_node_that_joins_late_gets_work(tmp_path):
    with cluster_of(tmp_path, nodes=1) as nodes, cluster.connected(nodes.url):
        processes, limit = set(), time.monotonic() + 300
        for number, (part, process) in cluster.each(where, range(2000)):
            assert part == number
            processes.add(process)
            if len(nodes.nodes) == 1:
                nodes.add()
            if len(processes) == 2:
                break
            assert time.monotonic() < limit
    assert len(processes) == 2


def test_a_task_that_takes_all_memory_is_an_error_and_the_node_goes_on(tmp_path):
    with cluster_of(tmp_path, nodes=1, memory="500MiB") as nodes, cluster.connected(nodes.url):
        with pytest.raises(RunError, match="lost every worker that tried") as refused:
            list(cluster.each(fill, [1, -1, 2]))
        assert "memory" in refused.value.hint
        assert [answer for _, answer in cluster.each(fill, [3])] == [(3, 0)]


def test_a_scheduler_that_is_gone_is_an_error(tmp_path):
    with cluster_of(tmp_path, nodes=1) as nodes, cluster.connected(nodes.url):
        answers = cluster.each(where, range(2000))
        next(answers)
        kill(nodes.scheduler)
        with pytest.raises(RunError, match="does not answer any more"):
            list(answers)


def test_a_worker_with_another_pipeprof_is_refused(two_nodes, monkeypatch):
    monkeypatch.setattr(cluster, "__version__", "0.0.1")
    with cluster.connected(two_nodes), pytest.raises(UsageError, match=r"has pipeprof .*, here it is 0\.0\.1"):
        list(cluster.each(where, [1]))


def test_what_cannot_be_connected_to_says_so(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    for url in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(UsageError, match="no scheduler answers"), cluster.connected(url):
            pass
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError) as refused, cluster.connected("tcp://127.0.0.1:9"):
        pass
    assert "pipeprof[fleet]" in refused.value.hint


def test_a_cluster_without_workers_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "WORKERS_S", 1)
    with (
        cluster_of(tmp_path, nodes=0) as nodes,
        pytest.raises(UsageError, match="has no workers"),
        cluster.connected(nodes.url),
    ):
        pass


def test_many_parts_are_done_in_several_processes_of_this_machine(monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 2)
    found = dict(cluster.each(where, range(2 * cluster.WORTH)))
    assert [found[number][0] for number in range(2 * cluster.WORTH)] == list(range(2 * cluster.WORTH))
    assert os.getpid() not in {process for _, process in found.values()}
    assert {process for _, (_, process) in cluster.each(where, range(2))} == {os.getpid()}


def test_a_process_that_is_ended_is_an_error(monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 2)
    with pytest.raises(RunError, match="was ended"):
        list(cluster.each(end, [1, -1, *range(2, 2 * cluster.WORTH)]))
