"""A training that dies of NumPy 2 with a MindSpore that was compiled for NumPy 1: the run says the cure."""

import atexit
import sys

from . import failure, recorder

LAST_FOR_NUMPY_1 = (2, 10)


def watch(number, version):
    """Look at how this process ends, if its MindSpore (`number`: major and minor) and NumPy do not go together."""
    numpy = getattr(sys.modules.get("numpy"), "__version__", "")
    major = numpy.partition(".")[0]
    if number <= LAST_FOR_NUMPY_1 and major.isdigit() and int(major) >= 2:
        atexit.register(_tell, version, numpy)  # nothing is recorded now: that would begin a record of this process


def _tell(mindspore, numpy):
    """Tensor / 1.0 raises SystemError; where plain numbers are labels, the text is NumPy's own."""
    try:
        error = getattr(sys, "last_value", None)
        if recorder.REC.off or not isinstance(error, BaseException):
            return
        if isinstance(error, SystemError) or "NumPy 1.x" in "".join(failure.words(error)):
            recorder.REC.warn(
                "numpy",
                "pip install 'numpy<2': MindSpore %s was compiled for NumPy 1, and NumPy %s is installed"
                % (mindspore, numpy),
            )
    except Exception:
        recorder.REC.failed("numpy")
