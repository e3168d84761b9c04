"""The probe's numbering of marks and the reader's are written down separately (docs/decisions/0001)."""

from pipeprof.collect.probe import marks, recorder
from pipeprof.read.spool import process


def test_probe_and_reader_number_the_marks_alike():
    names = [name for name in vars(process.Kind) if name.isupper() and name != "ALL"]
    assert names
    assert {name: getattr(recorder, name) for name in names} == {name: getattr(process.Kind, name) for name in names}
    assert marks.MARK.format == process._MARK.format
    assert recorder.OTHER_THREAD == process.OTHER_THREAD
