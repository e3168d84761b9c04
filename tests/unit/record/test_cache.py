"""The folder for what can be made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeprof.record.cache import cache_folder, origin_of, recall, remember


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
