"""The probe's numbering of marks and the reader's are written down separately (docs/decisions/0001)."""

import importlib.util
import sys
from pathlib import Path

import pipeprof.collect
from pipeprof.read.spool import process


def load_recorder():
    folder = Path(pipeprof.collect.__file__).parent / "probe"
    spec = importlib.util.spec_from_file_location("probe_under_test", folder / "recorder.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_probe_and_reader_number_the_marks_alike():
    recorder = load_recorder()
    names = [name for name in vars(process.Kind) if name.isupper() and name != "ALL"]
    assert names
    assert {name: getattr(recorder, name) for name in names} == {name: getattr(process.Kind, name) for name in names}
    assert recorder.MARK.format == process._MARK.format
    assert recorder.OTHER_THREAD == process.OTHER_THREAD
