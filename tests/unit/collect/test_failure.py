"""How a process ends: the exception that ends a watched one is recorded, and nothing else of its end changes.

Some ends have a cure that is known, which the run says.
"""

import json
import sys
from types import SimpleNamespace

import msgspec
import pytest

from pipeprof.collect.probe import cures, recorder
from pipeprof.collect.probe import failure as probe
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.process import FAILED, failure_of
from pipeprof.record import run
from pipeprof.record.run import Failure
from tests.unit.collect.conftest import python

SCRIPT = """\
import json

def load(text):
    return json.loads(text)

load("{")
"""


@pytest.fixture
def ended(tmp_path, spool):
    """`ended(text)`: the failure that a script leaves under the probe; it ends as it does without."""

    def run(text, *, compare=False):
        script = tmp_path / "train.py"
        script.write_text(text, encoding="utf-8")
        (spool / FAILED).unlink(missing_ok=True)
        done = python(script, spool=spool)
        if compare:
            alone = python(script, watched=False)
            assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)
        return failure_of(spool, [], SpoolNotes())

    return run


def test_an_uncaught_exception_is_recorded_with_the_place_in_the_programs_own_code(ended):
    found = ended(SCRIPT, compare=True)
    assert found.error.startswith("JSONDecodeError: Expecting property name")
    assert found.place.endswith("train.py:4")
    assert found.code == "return json.loads(text)"
    assert found.lines[-1].startswith("json.decoder.JSONDecodeError: ")
    assert ended("x = 1\ndef f(:\n").place.endswith("train.py:2")  # a syntax error has its line
    assert probe.NAME == FAILED


IN_A_DATASET = """\
TEXT = '''Exception thrown from user defined Python function in dataset.

------------------------------------------------------------------
- Python Call Stack:
------------------------------------------------------------------
FIRSTTraceback (most recent call last):
  File "/usr/lib/python3/site-packages/mindspore/dataset/datasets.py", line 136, in _sampler
    val = dataset[i]
          ~~~~~~~^^^
  File "%%s", line 21, in __getitem__
    return rows[i]
           ~~~~^^^
  File "/usr/lib/python3/site-packages/rows/of.py", line 7, in __getitem__
    raise ValueError("bad row")
ValueError: bad row 700

------------------------------------------------------------------
- Dataset Pipeline Error Message:
------------------------------------------------------------------
[ERROR] Execute user Python code failed, check 'Python Call Stack' above.
''' %% __file__.replace("train", "data")
raise RuntimeError(TEXT.replace("FIRST", %r))
"""


@pytest.mark.parametrize("first", ["", "map operation: [PyFunc] failed. "])
def test_an_error_in_a_dataset_is_the_one_of_its_own_python(ended, first):
    found = ended(IN_A_DATASET % first)
    assert found.error == "ValueError: bad row 700"
    assert (found.place.rpartition("/")[2], found.code) == ("data.py:21", "return rows[i]")
    assert found.lines[-1] == "ValueError: bad row 700"
    assert "raise RuntimeError(TEXT" in found.lines[1]


PIPELINE = """\
raise RuntimeError('''Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error Message'.

------------
- Dataset Pipeline Error Message:
------------
[ERROR] Invalid csv, type does not match.

------------
- C++ Call Stack: (For framework developers)
------------
csv_op.cc(513).
''')
"""
CAUGHT = """\
import sys

def step():
    try:
        raise ValueError("handled")
    except ValueError as error:
        sys.last_value, sys.last_traceback = error, error.__traceback__

step()
"""
OWN_TEXT = """\
class Odd(Exception):
    def __str__(self):
        print("asked")
        raise SystemExit(7)

class Part:
    def __str__(self):
        print("asked")
        return "part"

    __repr__ = __str__

raise %s
"""


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("assert False", "AssertionError"),
        (PIPELINE, "RuntimeError: Invalid csv, type does not match."),  # the one that it refers to
        # The text of an error is made without running the program's code again.
        (OWN_TEXT % "Odd('lost', 3, Part())", "Odd: lost, 3"),
        (OWN_TEXT % "ValueError(Part())", "ValueError"),
        (OWN_TEXT % "KeyError('name')", "KeyError: 'name'"),
        (OWN_TEXT % "FileNotFoundError(2, 'No file', 'x.bin')", "FileNotFoundError: [Errno 2] No file: 'x.bin'"),
        (OWN_TEXT % "AttributeError('no such thing', name='x', obj=Part())", "AttributeError: no such thing"),
        # What was caught, meant, or handled and kept, as test runners and notebooks do, is no failure.
        ("print(1)", None),
        ("import sys; sys.exit(3)", None),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass", None),
        (CAUGHT, None),
    ],
)
def test_what_is_told_of_an_error(ended, script, error):
    assert getattr(ended(script, compare=True), "error", None) == error


def test_bytes_that_are_no_text_are_recorded(ended):
    found = ended("raise ValueError('no file \\udcff')")
    assert found.error == "ValueError: no file \\xff"
    assert msgspec.json.decode(msgspec.json.encode(found), type=Failure) == found


def test_the_first_rank_that_failed_counts_and_a_helper_does_not(tmp_path):
    facts = {"place": None, "code": None, "lines": []}
    ends = ((1, 5, "helper"), (3, 20, "late"), (2, 10, "first"), (0, 30, "launcher"))
    text = "".join(json.dumps(facts | {"pid": pid, "t": t, "error": error}) + "\n" for pid, t, error in ends)
    tmp_path.joinpath(FAILED).write_text(text + '{"pid": 9, "t"', encoding="utf-8")
    assert failure_of(tmp_path, [2, 3], SpoolNotes()).error == "first"
    assert failure_of(tmp_path, [], SpoolNotes()).error == "launcher"


COPY = RuntimeError("Exception thrown from user defined Python function ... (no behavior change in NumPy 1.x)")
NO_LIBRARY = "libgomp.so.1: cannot open shared object file: No such file or directory"
CURE = {
    "numpy": "pip install 'numpy<2': MindSpore 2.10.0 was compiled for NumPy 1, and NumPy 2.4.6 is installed",
    "openmp": "apt install libgomp1",
}


@pytest.fixture
def cured(monkeypatch):
    """Ends a process with versions and an uncaught exception; gives the warnings."""

    def end_with(mindspore, numpy, error):
        at_exit, told = [], []
        rec = SimpleNamespace(off=False, warn=lambda code, text: told.append((code, text)))
        monkeypatch.setattr(recorder, "REC", rec)
        monkeypatch.setattr(cures, "_watched", [])
        monkeypatch.setattr(cures.atexit, "register", at_exit.append)
        for name, version in (("mindspore", mindspore), ("numpy", numpy)):
            monkeypatch.setitem(sys.modules, name, SimpleNamespace(__version__=version) if version else None)
        monkeypatch.setattr(sys, "last_value", error, raising=False)
        cures.watch()
        cures.watch()
        for call in at_exit:
            call()
        return told

    return end_with


@pytest.mark.parametrize(
    ("mindspore", "numpy", "error", "code"),
    [
        ("2.10.0", "2.4.6", SystemError("returned a result with an exception set"), "numpy"),
        ("2.10.0", "2.4.6", COPY, "numpy"),
        (None, None, ImportError(NO_LIBRARY), "openmp"),  # MindSpore is not among the modules: its import failed
        (None, None, OSError(NO_LIBRARY), "openmp"),
        ("2.10.0", "1.26.4", SystemError(), None),
        ("2.11.0", "2.4.6", SystemError(), None),
        ("2.10.0", "2.4.6", ValueError("out of memory"), None),
        ("2.10.0", "2.4.6", None, None),
        (None, "2.4.6", SystemError(), None),
        ("2.10.0", "1.26.4", ImportError("libopenblas.so.0: cannot open shared object file"), None),
        ("2.10.0", "1.26.4", ValueError(NO_LIBRARY), None),
    ],
)
def test_a_cure_is_told_once_of_the_ends_that_have_one(cured, mindspore, numpy, error, code):
    told = cured(mindspore, numpy, error)
    assert [one for one, _ in told] == ([code] if code else [])
    assert all(CURE[one] in text for one, text in told)
    assert tuple(code for code, _ in cures.CURES) == run.CURES  # each reaches the run
