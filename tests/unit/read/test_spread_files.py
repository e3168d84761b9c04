"""Files of several ranks of any source are read in several processes, with the tables that one process writes."""

from pathlib import Path

import pytest
from ascend_files import write_graph, write_output
from cluster_nodes import cluster_of
from kineto_files import training, write_trace
from megengine_files import write
from minddata_files import write_feed

from pipeprof import cluster, processes
from pipeprof.errors import RunError
from pipeprof.read.foreign import import_path

RANKS = 3


def kineto(folder):
    """Traces that begin at different times, one of them cut off."""
    for rank in range(RANKS):
        header = {"baseTimeNanoseconds": rank * 1000, "distributedInfo": {"rank": rank}}
        write_trace(folder / f"rank_{rank}" / "a.pt.trace.json", training(steps=4 + rank), **header)
    cut = folder / "rank_1" / "a.pt.trace.json"
    cut.write_bytes(cut.read_bytes()[:-200])


def minddata(folder):
    """Folders of a training, one with a file that is damaged."""
    for rank in range(RANKS):
        write_feed(folder / f"rank_{rank}", rank)
    (folder / "rank_2" / "pipeline_profiling_2.json").write_text("{")


def megengine(folder):
    """Timelines with zeros of their own, one of which is cut off."""
    folder.mkdir()
    for rank in range(RANKS):
        events = [
            {"name": name, "ph": phase, "ts": 10 * step + at, "pid": 1, "tid": 1}
            for step in range(4 + rank)
            for name, phase, at in (("Conv", "B", 1), ("Conv", "E", 5), ("StopStep", "i", 9))
        ]
        zero = 1_700_000_000_000_000_000 - rank * 1_000_000
        write(folder / f"{rank}.json", {"traceEvents": events, "metadata": {"localTime": str(zero)}})
    cut = folder / "1.json"
    cut.write_bytes(cut.read_bytes()[:-200])


def ascend(folder):
    """Output folders, one with files of a dataset, and older ones."""
    for rank in range(RANKS):
        write_output(folder / f"host{rank}_ascend_pt", rank=rank)
        write_graph(folder / "old" / f"rank_{rank}" / "profiler", rank=rank + 100)
    write_feed(folder / "host0_ascend_pt")


SOURCES = (kineto, minddata, megengine, ascend)


def content(run):
    return {path.relative_to(run.path): path.read_bytes() for path in sorted(run.path.rglob("*.parquet"))}


@pytest.fixture
def asked(monkeypatch):
    """The functions that processes which share the work were asked for."""
    found = []
    ask = processes._Process.ask

    def noted(process, number, task):
        found.append(task[0].__name__)
        ask(process, number, task)

    monkeypatch.setattr(processes._Process, "ask", noted)
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_the_tables_are_those_of_one_process(source, tmp_path, several, asked):
    source(tmp_path / "job")
    told = [], []
    alone = import_path(tmp_path / "job", tmp_path / "alone", progress=told[0].append)
    assert not asked
    several(2)
    spread = import_path(tmp_path / "job", tmp_path / "spread", progress=told[1].append)
    assert [any(" done" in text for text in texts) for texts in told] == [False, True]
    assert len(asked) >= RANKS
    assert content(spread) == content(alone)
    assert len(content(alone)) >= RANKS
    for what in ("tables", "warnings", "reps", "not_measured", "state"):
        assert getattr(spread.manifest, what) == getattr(alone.manifest, what)
    assert not list((tmp_path / "spread").glob(".*"))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.usefixtures("killed")
def test_a_process_that_is_ended_leaves_nothing(source, tmp_path, several):
    source(tmp_path / "job")
    several(2)
    with pytest.raises(RunError, match=r"the process that read .* was ended \(status -9\)"):
        import_path(tmp_path / "job", tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["job"]


def test_nodes_of_a_cluster_write_the_same_tables(tmp_path, monkeypatch):
    for source in SOURCES[:3]:
        source(tmp_path / "job" / source.__name__)
    monkeypatch.chdir(tmp_path)
    alone = import_path(Path("job"), Path("alone"))
    assert alone.manifest.source == "import:minddata+megengine+kineto"
    with cluster_of(tmp_path) as nodes, cluster.connected(nodes.url):
        spread = import_path(Path("job"), Path("spread"))
    assert content(spread) == content(alone)
    assert spread.manifest.reps == alone.manifest.reps
    said = [warning.message.replace(f"{tmp_path}/", "") for warning in spread.manifest.warnings]  # whole paths
    assert said == [warning.message for warning in alone.manifest.warnings]
