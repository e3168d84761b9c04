"""The verb `collect`: what it refuses, and how it ends."""

import json
import sys


def test_where_no_signal_can_end_us_the_exit_code_is_a_shells(verb, monkeypatch):
    """As process 1 of a container."""
    monkeypatch.setattr("pipeprof.collect.launch.die_like", lambda _status: None)
    code, _, _ = verb("collect", "-o", "run", "-q", "--", "sh", "-c", "kill -9 $$")
    assert code == 128 + 9


def test_a_command_that_does_not_exist_is_refused_with_settings_as_without(verb, tmp_path):
    settings = {"schema_version": 1, "environment": {"OMP_NUM_THREADS": "2"}}
    tmp_path.joinpath("settings.json").write_text(json.dumps(settings), encoding="utf-8")
    code, _, err = verb("collect", "-o", "run", "--apply", "settings.json", "--", "no-such-command")
    assert (code, err.splitlines()[0]) == (2, "error: command not found: `no-such-command`")
    assert not tmp_path.joinpath("run").exists()


def test_a_library_that_cannot_be_loaded_behind_the_command_leaves_its_exit_code(verb, monkeypatch):
    monkeypatch.setitem(sys.modules, "pipeprof.read.spool.finish", None)
    code, _, err = verb("collect", "-o", "run", "--", "sh", "-c", "exit 5")
    assert code == 5
    assert [line.partition(" ")[0] for line in err.splitlines()] == ["error:", "hint:"]
    assert "then: pipeprof report run" in err
