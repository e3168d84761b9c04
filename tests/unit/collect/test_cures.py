"""Which ends of a process have a cure that is known, and what the run says of it."""

import sys
import types

import pytest

from pipeprof.collect.probe import cures, recorder
from pipeprof.record import run

COPY = RuntimeError("Exception thrown from user defined Python function ... (no behavior change in NumPy 1.x)")
NO_LIBRARY = "libgomp.so.1: cannot open shared object file: No such file or directory"


@pytest.fixture
def end(monkeypatch):
    """Ends a process with versions and an uncaught exception; gives the warnings."""

    def end_with(mindspore, numpy, error):
        at_exit, told = [], []
        rec = types.SimpleNamespace(off=False, warn=lambda code, text: told.append((code, text)))
        monkeypatch.setattr(recorder, "REC", rec)
        monkeypatch.setattr(cures, "_watched", [])
        monkeypatch.setattr(cures.atexit, "register", at_exit.append)
        for name, version in (("mindspore", mindspore), ("numpy", numpy)):
            monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(__version__=version) if version else None)
        monkeypatch.setattr(sys, "last_value", error, raising=False)
        cures.watch()
        cures.watch()
        for call in at_exit:
            call()
        return told

    return end_with


@pytest.mark.parametrize("error", [SystemError("returned a result with an exception set"), COPY])
def test_what_numpy_2_breaks_is_told_with_the_cure(end, error):
    assert end("2.10.0", "2.4.6", error) == [
        ("numpy", "pip install 'numpy<2': MindSpore 2.10.0 was compiled for NumPy 1, and NumPy 2.4.6 is installed")
    ]


@pytest.mark.parametrize("error", [ImportError(NO_LIBRARY), OSError(NO_LIBRARY)])
def test_a_missing_openmp_library_is_told_with_the_cure(end, error):
    """MindSpore is not among the modules then: its import failed."""
    ((code, text),) = end(None, None, error)
    assert code == "openmp"
    assert "apt install libgomp1" in text


@pytest.mark.parametrize(
    ("mindspore", "numpy", "error"),
    [
        ("2.10.0", "1.26.4", SystemError()),
        ("2.11.0", "2.4.6", SystemError()),
        ("2.10.0", "2.4.6", ValueError("out of memory")),
        ("2.10.0", "2.4.6", None),
        (None, "2.4.6", SystemError()),
        ("2.10.0", "1.26.4", ImportError("libopenblas.so.0: cannot open shared object file")),
        ("2.10.0", "1.26.4", ValueError(NO_LIBRARY)),
    ],
)
def test_other_ends_are_not_put_down_to_it(end, mindspore, numpy, error):
    assert end(mindspore, numpy, error) == []


def test_each_cure_reaches_the_run():
    assert tuple(code for code, _ in cures.CURES) == run.CURES
