"""Which ends of a process are put down to NumPy 2."""

import sys
import types

import pytest

from pipeprof.collect.probe import numpy_two, recorder

COPY = RuntimeError("Exception thrown from user defined Python function ... (no behavior change in NumPy 1.x)")


@pytest.fixture
def end(monkeypatch):
    """Ends a process with versions and an uncaught exception; gives the warnings."""

    def run(mindspore, numpy, error):
        at_exit, told = [], []
        rec = types.SimpleNamespace(off=False, warn=lambda code, text: told.append((code, text)))
        monkeypatch.setattr(recorder, "REC", rec)
        monkeypatch.setattr(numpy_two.atexit, "register", lambda *call: at_exit.append(call))
        monkeypatch.setitem(sys.modules, "numpy", types.SimpleNamespace(__version__=numpy))
        monkeypatch.setattr(sys, "last_value", error, raising=False)
        numpy_two.watch(tuple(map(int, mindspore.split(".")[:2])), mindspore)
        for call, *words in at_exit:
            call(*words)
        return told

    return run


@pytest.mark.parametrize("error", [SystemError("returned a result with an exception set"), COPY])
def test_what_numpy_2_breaks_is_told_with_the_cure(end, error):
    assert end("2.10.0", "2.4.6", error) == [
        ("numpy", "pip install 'numpy<2': MindSpore 2.10.0 was compiled for NumPy 1, and NumPy 2.4.6 is installed")
    ]


@pytest.mark.parametrize(
    ("mindspore", "numpy", "error"),
    [
        ("2.10.0", "1.26.4", SystemError()),
        ("2.11.0", "2.4.6", SystemError()),
        ("2.10.0", "2.4.6", ValueError("out of memory")),
        ("2.10.0", "2.4.6", None),
    ],
)
def test_other_ends_are_not_put_down_to_it(end, mindspore, numpy, error):
    assert end(mindspore, numpy, error) == []
