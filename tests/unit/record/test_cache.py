"""The folder for what can be made again."""

import os
import time
from pathlib import Path

import pytest

from pipeprof.record.cache import cache_folder, forget, origin_of, recall, remember


def test_without_a_home_nothing_is_kept_and_nothing_fails(monkeypatch, tmp_path):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    place = cache_folder("charts") / "x.json"
    remember(place, "x")
    assert recall(place, str, 100) is None
    assert origin_of(tmp_path) is None


@pytest.mark.parametrize("damaged", [b"", b'"cut', b'"\xff\xfe"', b"[" * 100_000, b"7"])
def test_what_is_damaged_counts_as_not_there(tmp_path, damaged):
    path = tmp_path / "x.json"
    path.write_bytes(damaged)
    assert recall(path, str, 1 << 20) is None


def test_what_was_used_last_stays_and_what_is_being_written_has_a_day(tmp_path):
    ages_s = {
        "new": 10,
        "middle": 20,
        "old": 30,
        ".half": 3600,
        ".half.tmp": 3600,
        ".left": 90_000,
        ".left.tmp": 90_000,
    }
    now = time.time()
    for name, age_s in ages_s.items():
        path = tmp_path / name
        path.write_text("x", encoding="utf-8") if name.endswith(".tmp") else path.mkdir()
        os.utime(path, (now - age_s, now - age_s))
    forget(tmp_path, 2)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "middle", ".half", ".half.tmp"}
    forget(tmp_path, unused_s=15)
    assert {path.name for path in tmp_path.iterdir()} == {"new", ".half", ".half.tmp"}
