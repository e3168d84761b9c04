"""Deaths of a training whose cure is known: the run says it.

NumPy 2 with a MindSpore that was compiled for NumPy 1, and a machine without the OpenMP library that MindSpore is
linked to. The codes are those of the warnings.
"""

import atexit
import sys

from . import failure, recorder

LAST_FOR_NUMPY_1 = (2, 10)
NO_OPENMP = "libgomp.so.1: cannot open shared object file"

_watched = []  # type: list[bool]


def watch():
    """Look at how this process ends, which uses MindSpore or tries to. Called before and after the import."""
    if not _watched:
        _watched.append(True)
        atexit.register(_tell)  # nothing is recorded now: that would begin a record of this process


def _tell():
    error = getattr(sys, "last_value", None)
    if recorder.REC.off or not isinstance(error, BaseException):
        return
    for code, cure in CURES:
        try:
            message = cure(error, "".join(failure.words(error)))
            if message:
                recorder.REC.warn(code, message)
        except Exception:
            recorder.REC.failed(code)


def _numpy(error, text):
    """Tensor / 1.0 raises SystemError; where plain numbers are labels, the text is NumPy's own."""
    mindspore, numpy = (getattr(sys.modules.get(name), "__version__", "") for name in ("mindspore", "numpy"))
    number = tuple(int(part) for part in mindspore.split(".")[:2] if part.isdigit())
    major = numpy.partition(".")[0]
    fits = len(number) != 2 or number > LAST_FOR_NUMPY_1 or not major.isdigit() or int(major) < 2
    if fits or not (isinstance(error, SystemError) or "NumPy 1.x" in text):
        return None
    return "pip install 'numpy<2': MindSpore %s was compiled for NumPy 1, and NumPy %s is installed" % (
        mindspore,
        numpy,
    )


def _openmp(error, text):
    if not (isinstance(error, (ImportError, OSError)) and NO_OPENMP in text):
        return None
    return (
        "install GNU OpenMP (Debian and Ubuntu: apt install libgomp1; Fedora: dnf install libgomp): MindSpore needs "
        "libgomp.so.1, which this machine has not"
    )


CURES = (("numpy", _numpy), ("openmp", _openmp))
