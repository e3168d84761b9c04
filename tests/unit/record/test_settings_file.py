"""Settings as a file: read back as they were written, and refused with what is wrong."""

import json

import msgspec
import pytest

from pipeprof.errors import UsageError
from pipeprof.record.settings_file import OperatorSetting, Settings, load_settings, merged

ONE = OperatorSetting(node=1, op_type="MapOp", name="rotate", place="train.py:3", workers=2)
SETTINGS = Settings(site="train.py:9", operators=(ONE,), prefetch=64, environment={"OMP_NUM_THREADS": "1"})


def test_settings_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(msgspec.json.encode(SETTINGS))
    assert load_settings(path) == SETTINGS
    with pytest.raises(UsageError, match="cannot read"):
        load_settings(tmp_path / "none.json")
    assert Settings().is_empty
    assert not SETTINGS.is_empty
    assert json.loads(msgspec.json.encode(Settings()))["operators"] == []


def test_the_probe_is_told_every_change_and_the_prefetch_size_once():
    nothing = dict.fromkeys(("processes", "maps_after", "cache", "max_rowsize"))
    change = {"node": 1, "op_type": "MapOp", "name": "rotate", "workers": 2, **nothing, "prefetch": 64}
    assert SETTINGS.override() == {"site": "train.py:9", "changes": [change]}
    assert Settings(prefetch=8).override() == {"site": None, "changes": [{"node": 0, "prefetch": 8}]}
    assert Settings(environment={"A": "1"}).override() is None
    assert SETTINGS.command(["python", "x.py"]) == ["env", "OMP_NUM_THREADS=1", "python", "x.py"]
    assert Settings().command(["python"]) == ["python"]


def test_the_settings_of_a_loader_are_for_the_line_that_makes_it():
    stage = OperatorSetting(node=0, op_type="Collate", place="train.py:5", of_loader=True, workers=2)
    more = OperatorSetting(node=0, op_type="Collate", place="train.py:5", of_loader=True, persistent=True)
    both = merged(Settings(site="train.py:5", operators=(stage,)), {"operators": [more]})
    assert both.override() == {
        "loader": True,
        "site": "train.py:5",
        "changes": [{"node": 0, "workers": 2, "prefetch": None, "persistent": True}],
    }


def test_threads_and_cores_are_for_the_command_and_the_probe():
    settings = merged(SETTINGS, {"runtime_threads": 2, "cpus": "0-3"})
    assert settings.override()["runtime_threads"] == 2
    assert settings.command(["python"]) == ["taskset", "-c", "0-3", "env", "OMP_NUM_THREADS=1", "python"]
    assert merged(settings, {}) == settings
    assert Settings(runtime_threads=2).override() == {"site": None, "changes": [], "runtime_threads": 2}
    assert not Settings(cpus="0").is_empty
    assert Settings(site="train.py:9").is_empty


def test_a_change_of_an_operator_keeps_its_other_settings_and_behind_a_cache_nothing_is_set():
    change = {"operators": [OperatorSetting(node=1, op_type="MapOp", processes=True)], "environment": {"B": "2"}}
    found = merged(SETTINGS, change)
    assert (found.operators[0].workers, found.operators[0].processes) == (2, True)
    assert (found.prefetch, found.site) == (64, "train.py:9")
    assert found.environment == {"OMP_NUM_THREADS": "1", "B": "2"}
    cached = {"operators": [OperatorSetting(node=0, op_type="MapOp", cache=100)]}
    assert [one.node for one in merged(SETTINGS, cached).operators] == [0]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", '{"operators": [{"node": "x", "op_type": "MapOp"}]}', '{"unknown": 1}', '{"schema_version": 2}',
        '{"operators": [{"node": -1, "op_type": "MapOp"}]}', '{"operators": [{"node": 1, "op_type": "MapOp", "workers": 0}]}',
        '{"prefetch": -16}', '{"environment": {"-i": "1"}}', '{"environment": {"A": "\\u0000"}}', '{"cpus": "--all"}',
    ],
)  # fmt: skip
def test_what_is_no_file_of_settings_is_refused(tmp_path, text):
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_settings(path)
    assert "settings.json" in caught.value.message
    assert "pipeprof tune" in caught.value.hint
