"""Which descriptions of compiled graphs are kept in the spool."""

import os
import types
from pathlib import Path

import pytest


@pytest.fixture
def keep(probe, rec, monkeypatch):
    """Hand over what a compilation gave back; the names of the files that are there then."""
    monkeypatch.setattr(probe.graphs, "_count", [0])
    rec.open()

    def kept(compiled, description=b"graph"):
        asked = []

        def describe(*words):
            asked.append(words)
            return description

        graph = types.SimpleNamespace(get_func_graph_proto=describe)
        probe.graphs.keep(types.SimpleNamespace(_graph_executor=graph), compiled)
        assert asked in ([], [("train.1", "anf_ir", False)])
        return sorted(path.name for path in Path(rec.folder).glob("graph-*"))

    return kept


@pytest.mark.parametrize("compiled", ["train.1", ("train.1", True)])
def test_a_graph_is_kept_as_mindspore_describes_it(keep, rec, compiled):
    assert keep(compiled) == ["graph-1.anf"]
    assert Path(rec.folder, "graph-1.anf").read_bytes() == b"graph"
    assert keep(compiled) == ["graph-1.anf", "graph-2.anf"]


@pytest.mark.parametrize("description", ["text", b"", None])
def test_another_kind_of_description_is_not(keep, description):
    assert keep("train.1", description) == []


def test_a_phase_that_is_no_text_is_not_asked_for(keep):
    assert keep((None, True)) == []


def test_without_operators_no_graph_is_kept(keep, rec, monkeypatch):
    monkeypatch.setitem(rec.options, "ops", "off")
    assert keep("train.1") == []


def test_one_process_keeps_no_more_than_so_many(keep, probe, monkeypatch):
    monkeypatch.setattr(probe.graphs, "MOST", 2)
    assert [len(keep("train.1")) for _ in range(3)] == [1, 2, 2]


def test_a_very_large_one_is_left_out(keep, probe, monkeypatch):
    monkeypatch.setattr(probe.graphs, "LARGEST", 4)
    assert keep("train.1") == []


def test_an_executor_that_describes_nothing_is_left_alone(probe, rec):
    rec.open()
    probe.graphs.keep(types.SimpleNamespace(), "train.1")


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
