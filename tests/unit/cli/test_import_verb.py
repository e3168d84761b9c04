"""`pipeprof import`: what it prints, and how it ends."""

import json

import pytest
from minddata_files import write_feed

from pipeprof.cli.foreign import import_files
from pipeprof.read.foreign import READERS


def test_an_import_says_what_it_found_and_can_be_reported(call, tmp_path):
    status, out, err = call("import", write_feed(tmp_path / "raw"), "-o", tmp_path / "run")
    assert (status, out) == (0, "")
    assert "6 training steps after 1 of warm-up" in err
    assert f"pipeprof report {tmp_path / 'run'}" in err
    document = json.loads(call("report", tmp_path / "run", "--format", "json")[1])
    assert document["run"]["source"] == "import:minddata"
    assert document["diagnosis"]


def test_quiet_prints_nothing_and_a_folder_that_is_not_there_ends_with_2(call, tmp_path):
    words = ("import", write_feed(tmp_path / "raw"), "-o", tmp_path / "run", "-q", "--kind", "minddata")
    assert call(*words) == (0, "", "")
    assert call("import", tmp_path / "none", "-o", tmp_path / "other")[0] == 2


def test_a_partial_import_says_so(call, tmp_path):
    source = write_feed(tmp_path / "raw")
    source.joinpath("minddata_cpu_utilization_0.json").write_text('{"time_stamp": [', encoding="utf-8")
    status, _, err = call("import", source, "-o", tmp_path / "run")
    assert status == 0
    assert "partial: a file could not be read to its end" in err
    assert "minddata_cpu_utilization_0.json" in err


def test_what_is_of_no_known_kind_ends_with_3_and_says_what_was_expected(call, tmp_path):
    source = tmp_path / "notes.txt"
    source.write_text("hello\n", encoding="utf-8")
    status, out, err = call("import", tmp_path, "-o", tmp_path / "run")
    assert (status, out) == (3, "")
    assert err.startswith("error: nothing to import in")
    assert "pipeline_profiling_0.json" in err
    assert "hint: " in err
    assert not tmp_path.joinpath("run").exists()
    status, _, err = call("import", source, "-o", tmp_path / "run")
    error, _, *kinds = err.splitlines()
    assert (status, error) == (3, f"error: `{source}` is of a kind that is not known")
    assert [line.split(":")[0].strip() for line in kinds] == [reader.kind for reader in READERS]
    option = next(one for one in import_files.params if one.name == "kind")  # each can be asked for
    assert list(option.type.choices) == [reader.kind for reader in READERS]
    assert all(f"({reader.kind})" in import_files.help for reader in READERS)


@pytest.mark.parametrize("named", [True, False])
def test_a_report_on_raw_files_hints_at_import(call, tmp_path, named):
    source = write_feed(tmp_path / "raw")
    if named:
        source.joinpath("run.json").write_text("{}", encoding="utf-8")
    status, _, err = call("report", source)
    assert status == 3
    assert f"hint: pipeprof import {source} -o RUN" in err
