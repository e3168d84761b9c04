"""`run.json`: whole at every moment, refused by name when it cannot be read."""

import errno
import json
import os
from pathlib import Path

import msgspec
import pytest

from pipeprof.errors import RunError
from pipeprof.record.run import Manifest, NotMeasured, Rank, Rep, Run, load, new_run_id
from pipeprof.record.schema import SCHEMA_VERSION


@pytest.fixture
def run(tmp_path):
    times = {"zero_realtime_ns": 1_795_186_330_489_203_848, "zero_monotonic_ns": 2}
    rank = Rank(rank=1, pid=7, host="machine", ended="lost", **times)
    manifest = Manifest(
        run_id="20260101T000000-abcdef",
        command=["python", "train.py", "--name", "a b"],
        started_at="2026-01-01T00:00:00Z",
        pipeprof_version="0",
        options={"schedule": {"active": 3}},
        reps=[Rep(rep=0, zero_realtime_ns=1, zero_monotonic_ns=2, exit_code=-9, ranks=[rank])],
        not_measured=[NotMeasured(what="op", why="off")],
    )
    manifest.warn("code", "words", rep=0)
    made = Run(tmp_path, manifest)
    made.save()
    return made


def test_a_manifest_comes_back_as_it_was_saved_and_any_program_can_read_it(run):
    assert load(run.path).manifest == run.manifest
    text = run.path.joinpath("run.json").read_text(encoding="utf-8")
    raw = json.loads(text)
    assert next(iter(raw)) == "schema_version"
    assert raw["reps"][0]["ranks"][0]["zero_realtime_ns"] == 1_795_186_330_489_203_848
    assert msgspec.json.decode(text, type=Manifest) == run.manifest
    run.path.joinpath("run.json").write_text(json.dumps(raw | {"later": 1}), encoding="utf-8")
    assert load(run.path).manifest == run.manifest


def test_a_newer_schema_version_is_refused_by_name(run):
    path = run.path / "run.json"
    path.write_text(json.dumps({"schema_version": SCHEMA_VERSION + 1, "entirely": "different"}), encoding="utf-8")
    said = f"run.json` has schema_version {SCHEMA_VERSION + 1}, .* up to {SCHEMA_VERSION}"
    with pytest.raises(RunError, match=said) as caught:
        load(run.path)
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize(("damage", "named"), [
    (b"", ""), (b'{"schema_version": 1, "run_id": "x', ""), (b"[]", ""), (b'{"run_id": "x"}', ""), (b"[" * 100_000, ""),
    (b'{"schema_version": "1"}', ""), (b'{"schema_version": 0}', ""), (b'{"schema_version": 1}', "run_id"),
    (b"\xff", ""), (b'{"schema_version": 1, "run_id": "\xff"}', ""),
])  # fmt: skip
def test_a_damaged_manifest_is_refused_by_name_and_a_needed_field_is_named(run, damage, named):
    run.path.joinpath("run.json").write_bytes(damage)
    with pytest.raises(RunError, match=rf"damaged manifest `.*run.json`.*{named}"):
        load(run.path)


def test_what_is_no_run_is_said_to_be_none(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    for name, said in (
        ("nothing", r"no such run: `.*nothing`"),
        ("folder", r"is not a pipeprof run: found a folder without `run.json`"),
        ("file", "is not a pipeprof run: found a file"),
    ):
        with pytest.raises(RunError, match=said):
            load(tmp_path / name)


def test_a_folder_that_may_not_be_looked_into_is_not_said_to_have_no_manifest(run, monkeypatch):
    def refuse(path, *_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "lstat", refuse)
    monkeypatch.setattr("pipeprof.record.run.read_file", refuse)
    with pytest.raises(RunError, match=r"cannot read `.*run.json`: Permission denied"):
        load(run.path)


def test_a_save_that_fails_leaves_the_old_manifest_whole_and_no_other_file(run, monkeypatch):
    before = run.path.joinpath("run.json").read_bytes()

    def refuse(*_words):
        raise OSError(28, "No space left on device")

    run.manifest.state = "failed"
    for owner, name in ((os, "fsync"), (Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refuse)
            with pytest.raises(RunError, match=r"cannot write `.*run.json`: No space left"):
                run.save()
        assert run.path.joinpath("run.json").read_bytes() == before
        assert load(run.path).manifest.state == "running"
        assert sorted(path.name for path in run.path.iterdir()) == ["run.json"]


def test_the_same_warning_is_kept_once_and_another_rank_has_its_own(run):
    for rank in (0, 0, 1):
        run.manifest.warn("code", "words", rep=0, rank=rank)
    assert [(warning.rep, warning.rank) for warning in run.manifest.warnings] == [(0, None), (0, 0), (0, 1)]


def test_run_ids_are_unique_and_sort_by_time():
    ids = [new_run_id() for _ in range(50)]
    assert len(set(ids)) == 50
    assert [one[:15] for one in ids] == sorted(one[:15] for one in ids)
