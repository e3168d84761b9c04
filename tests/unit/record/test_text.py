"""Names that are bytes and no text: shown and stored with escapes, and reachable for libraries that take text only."""

import os
import shutil
from pathlib import Path

import pytest

from pipeprof.record.text import is_utf8, printable, printable_all, reachable, shortened


@pytest.mark.parametrize(("text", "shown"), [
    ("plain", "plain"), ("größer", "größer"), (os.fsdecode(b"run\xff"), "run\\xff"),
    (os.fsdecode("grün".encode("latin-1")), "gr\\xfcn"), ("half \ud800", "half \\ud800"),
])  # fmt: skip
def test_what_is_no_text_is_shown_with_escapes(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown


def test_every_text_of_a_value_is_made_printable():
    odd = os.fsdecode(b"\xff")
    assert printable_all({odd: [odd, 1, None, (odd,)]}) == {"\\xff": ["\\xff", 1, None, ["\\xff"]]}


def test_a_path_that_is_text_or_not_there_stays_as_it_is(tmp_path, monkeypatch):
    folder = tmp_path / os.fsdecode(b"\xff")
    for path in (tmp_path / "größer", folder / "run"):
        assert reachable(path) == path
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert reachable(Path("run")) == Path("run")
    assert reachable(Path.cwd() / "run").parent.samefile(folder)


@pytest.mark.parametrize("name", [b"run\xff", b"\xff/run", b"\xff/\xfe/run"])
def test_a_path_that_is_no_text_is_reached_by_one_that_is(tmp_path, name):
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir(parents=True)
    other = reachable(folder / "step" / "part")
    assert is_utf8(other)
    other.parent.mkdir()
    other.write_text("x", encoding="utf-8")
    assert folder.joinpath("step/part").read_text(encoding="utf-8") == "x"


def test_a_folder_that_was_made_again_is_reached_anew(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff")
    for _ in range(2):
        folder.mkdir()
        reachable(folder / "file").write_text("x", encoding="utf-8")
        shutil.rmtree(folder)


def test_a_very_long_name_is_shown_by_its_ends():
    assert shortened("a" * 100) == "a" * 100
    shown = shortened("a" * 5000 + "z")
    assert len(shown) < 300
    assert shown.endswith("z")
