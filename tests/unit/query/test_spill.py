"""Where queries put what does not fit into the memory."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from pipeprof.query import spill
from pipeprof.query.engine import Engine


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    tmp_path.joinpath("t").mkdir()
    return tmp_path / "t"


def setting(engine):
    return engine.sql("SELECT current_setting('temp_directory') AS folder").to_pylist()[0]["folder"]


def test_it_is_a_folder_of_a_random_name_that_only_this_user_may_enter(make_run, temporary):
    run = make_run({"step": []})
    with Engine.open(run, files=False) as engine:
        folders = list(temporary.iterdir())
        assert [setting(engine)] == [str(folder) for folder in folders]
        assert stat.S_IMODE(folders[0].stat().st_mode) == 0o700
        with Engine.open(run, files=False) as other:
            assert setting(other) != setting(engine)
    assert list(temporary.iterdir()) == []


def test_somebody_elses_folder_of_a_name_that_can_be_guessed_is_not_used(make_run, temporary):
    guessed = temporary / f"pipeprof-duckdb-{os.getpid()}"
    guessed.symlink_to(temporary.parent)
    with Engine.open(make_run({"step": []}), files=False) as engine:
        assert setting(engine) != str(guessed)


def test_an_engine_that_is_forgotten_and_a_process_that_must_end_leave_nothing(make_run, temporary):
    engine = Engine.open(make_run({"step": []}), files=False)
    engine._connection.close()
    del engine
    assert list(temporary.iterdir()) == []
    engine = Engine.open(make_run({"step": []}), files=False)
    spill.remove_all()
    assert list(temporary.iterdir()) == []
    engine.close()


def test_where_none_can_be_made_queries_go_on(make_run, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    with Engine.open(make_run({"step": []}), files=False) as engine:
        assert engine.sql("SELECT 1 AS n").to_pylist() == [{"n": 1}]
        assert not Path(setting(engine)).exists()
