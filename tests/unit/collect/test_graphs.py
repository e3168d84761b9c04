"""Which descriptions of compiled graphs are kept in the spool."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture
def keep(probe, rec, monkeypatch):
    """Hand over what a compilation gave back; the names of the files that are there then."""
    monkeypatch.setattr(probe.graphs, "_count", [0])
    rec.open()

    def kept(compiled, description=b"graph"):
        asked = []
        graph = SimpleNamespace(get_func_graph_proto=lambda *words: asked.append(words) or description)
        probe.graphs.keep(SimpleNamespace(_graph_executor=graph), compiled)
        assert asked in ([], [("train.1", "anf_ir", False)])
        return sorted(path.name for path in Path(rec.folder).glob("graph-*"))

    return kept


@pytest.mark.parametrize("compiled", ["train.1", ("train.1", True)])
def test_a_graph_is_kept_as_mindspore_describes_it(keep, rec, compiled):
    assert keep(compiled) == ["graph-1.anf"]
    assert Path(rec.folder, "graph-1.anf").read_bytes() == b"graph"
    assert keep(compiled) == ["graph-1.anf", "graph-2.anf"]


@pytest.mark.parametrize(
    ("compiled", "description"), [("train.1", "text"), ("train.1", b""), ("train.1", None), ((None, True), b"graph")]
)
def test_another_kind_of_description_is_not_kept_and_a_phase_that_is_no_text_not_asked_for(keep, compiled, description):
    assert keep(compiled, description) == []


def test_no_graph_is_kept_without_operators_nor_a_very_large_one_nor_more_than_so_many(keep, probe, rec, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(rec.options, "ops", "off")
        assert keep("train.1") == []
    probe.graphs.keep(SimpleNamespace(), "train.1")  # an executor that describes nothing
    monkeypatch.setattr(probe.graphs, "LARGEST", 4)
    monkeypatch.setattr(probe.graphs, "MOST", 2)
    assert keep("train.1", b"large") == []
    assert [len(keep("train.1", b"four")) for _ in range(3)] == [1, 2, 2]


@pytest.fixture
def compiles(probe, rec, monkeypatch):
    """What MindSpore sees of its variables during a compilation whose lines are asked for."""
    monkeypatch.setattr(probe.graphs, "_lined", [0])
    rec._take_options({"graph_lines": True})

    def seen():
        with probe.graphs.Lines():
            return {name: value for name, value in os.environ.items() if name.startswith("MS_DEV_")}

    return seen


def test_lines_are_dumped_during_the_compilation_alone(compiles, probe, rec):
    assert compiles() == {**probe.graphs.DUMP, "MS_DEV_SAVE_GRAPHS_PATH": str(Path(rec.folder, "graph-dump"))}
    assert not [name for name in os.environ if name.startswith("MS_DEV_")]


@pytest.mark.parametrize("name", ["MS_DEV_SAVE_GRAPHS", "MS_DEV_SAVE_GRAPHS_PATH"])
def test_a_program_that_has_graphs_dumped_keeps_its_own_place(compiles, monkeypatch, name):
    monkeypatch.setenv(name, "mine")
    assert compiles() == {name: "mine"}
    assert os.environ[name] == "mine"


def test_a_spool_that_cannot_be_written_to_does_not_end_the_compilation(compiles, rec, monkeypatch):
    def full():
        raise OSError("no space left")

    monkeypatch.setattr(rec, "open", full)
    assert compiles() == {}
