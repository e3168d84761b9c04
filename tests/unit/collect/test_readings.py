"""Which libraries of MindSpore's are touched: those whose machine code is known, where the user allows it."""

import ctypes
import sys
from types import SimpleNamespace

import pytest


class Library:
    """A library whose functions consist of given bytes."""

    def __init__(self, code):
        self._code = ctypes.create_string_buffer(code, 4096)

    def __getitem__(self, _name):
        return ctypes.c_void_p(ctypes.addressof(self._code))


@pytest.fixture
def readings(probe, rec, monkeypatch):
    """The module, where the library of a process is one that is known."""
    module, known = probe.readings, Library(b"known")
    monkeypatch.setitem(sys.modules, "mindspore._c_dataengine", SimpleNamespace(__file__="library"))
    monkeypatch.setattr(module, "KNOWN", (module.digest(known),))
    monkeypatch.setattr(module, "Readings", lambda library: library)
    module.loaded = known
    monkeypatch.setattr(module.ctypes, "PyDLL", lambda _path: module.loaded)
    return module


def test_a_library_with_other_code_is_left_alone(readings):
    readings.loaded = Library(b"known, but for one byte")
    assert readings.find() is None


@pytest.mark.parametrize(("value", "is_used"), [("1", False), ("yes", False), ("0", True), ("", True)])
def test_a_library_with_known_code_is_used_unless_the_user_forbids_it(readings, probe, monkeypatch, value, is_used):
    monkeypatch.setenv("PIPEPROF_NO_PATCHES", value)
    assert readings.find() is (readings.loaded if is_used else None)
    monkeypatch.setattr(probe.recorder, "REC", probe.recorder.Recorder("", '{"patches": false}'))
    assert readings.find() is None


def test_neither_the_sampler_nor_the_log_levels_are_touched_then(probe, rec, monkeypatch):
    monkeypatch.setenv("PIPEPROF_NO_PATCHES", "1")
    assert probe.smaps.install() is False
    assert probe.service.make_sampler(None) is None
    assert "service_off" in rec._warned


def test_the_installed_library_is_known_or_another_version(probe):
    mindspore = pytest.importorskip("mindspore")
    if mindspore.__version__ != "2.10.0":
        pytest.skip("only 2.10.0 was looked into")
    engine = pytest.importorskip("mindspore._c_dataengine")
    assert probe.readings.digest(ctypes.PyDLL(engine.__file__)) in probe.readings.KNOWN
