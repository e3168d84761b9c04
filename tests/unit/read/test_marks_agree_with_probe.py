"""The probe's numbering of marks and the reader's are written down separately (docs/decisions/0001)."""

import numpy as np

from pipeprof.collect.probe import marks, recorder
from pipeprof.read.spool.marks import OTHER_THREAD, RECORD, Kind


def test_probe_and_reader_number_the_marks_alike():
    names = [name for name in vars(Kind) if name.isupper() and name != "ALL"]
    assert names
    assert {name: getattr(recorder, name) for name in names} == {name: getattr(Kind, name) for name in names}
    fields = (16, 0x80, (1 << 32) - 1, 7, -(1 << 40), 1 << 61)
    assert np.frombuffer(marks.MARK.pack(*fields), RECORD).item() == fields
    assert recorder.OTHER_THREAD == OTHER_THREAD
