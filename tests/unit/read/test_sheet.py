"""CSV files of others are closed when nobody needs them, whatever is wrong with them."""

import gc
from pathlib import Path

import pytest

from pipeprof.errors import SourceError
from pipeprof.read.source import sheet


@pytest.fixture
def _no_collection():
    """Objects go when the last one lets go of them, and not before."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def open_files():
    return {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()}


@pytest.mark.usefixtures("_no_collection")
@pytest.mark.parametrize("text", ["", "a,b\n", "\x1f\x8b no gzip", f"{'x' * 20}\n"])
def test_a_sheet_that_nobody_holds_has_no_open_file(tmp_path, monkeypatch, text):
    monkeypatch.setattr(sheet, "FIELD_BYTES", 20)
    path = tmp_path / "op_statistic.csv"
    path.write_bytes(text.encode("latin-1"))
    try:
        there = sheet.Sheet(path).names
    except SourceError as error:
        there = error.message
        error.__traceback__ = None
    assert there
    del there
    assert str(path) not in open_files()
