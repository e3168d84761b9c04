"""The exception that ends a watched process is recorded, and nothing else of its end changes."""

import json
import os
import subprocess
import sys

import msgspec
import pytest

from pipeprof.collect.launch import PROBE
from pipeprof.collect.probe import failure as probe
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.process import FAILED, failure_of
from pipeprof.record.run import Failure

SCRIPT = """\
import json

def load(text):
    return json.loads(text)

load("{")
"""


@pytest.fixture
def ended(tmp_path):
    """Runs a script under the probe, or without it: what it printed, its exit code, and the spool."""
    spool = tmp_path / "spool"
    spool.mkdir()

    def run(text, *, watched=True):
        script = tmp_path / "train.py"
        script.write_text(text, encoding="utf-8")
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PIPEPROF_", "PYTHON"))
        }
        if watched:
            environment |= {"PYTHONPATH": str(PROBE), "PIPEPROF_SPOOL": str(spool)}
        words = [sys.executable, str(script)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, env=environment)
        return done, spool

    return run


def test_an_uncaught_exception_is_recorded_with_the_place_in_the_programs_own_code(ended):
    _, spool = ended(SCRIPT)
    found = failure_of(spool, [], SpoolNotes())
    assert found.error.startswith("JSONDecodeError: Expecting property name")
    assert found.place.endswith("train.py:4")
    assert found.code == "return json.loads(text)"
    assert found.lines[-1].startswith("json.decoder.JSONDecodeError: ")


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
    _, spool = ended(IN_A_DATASET % first)
    found = failure_of(spool, [], SpoolNotes())
    assert found.error == "ValueError: bad row 700"
    assert (found.place.rpartition("/")[2], found.code) == ("data.py:21", "return rows[i]")
    assert found.lines[-1] == "ValueError: bad row 700"
    assert "raise RuntimeError(TEXT" in found.lines[1]


def test_bytes_that_are_no_text_and_errors_without_text_are_recorded(ended):
    _, spool = ended("raise ValueError('no file \\udcff')")
    found = failure_of(spool, [], SpoolNotes())
    assert found.error == "ValueError: no file \\xff"
    assert msgspec.json.decode(msgspec.json.encode(found), type=Failure) == found
    (spool / probe.NAME).unlink()
    _, spool = ended("assert False")
    assert failure_of(spool, [], SpoolNotes()).error == "AssertionError"


def test_the_script_ends_as_it_does_unwatched(ended):
    watched, _ = ended(SCRIPT)
    alone, _ = ended(SCRIPT, watched=False)
    assert (watched.returncode, watched.stdout, watched.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_a_syntax_error_has_its_line(ended):
    _, spool = ended("x = 1\ndef f(:\n")
    assert failure_of(spool, [], SpoolNotes()).place.endswith("train.py:2")


@pytest.mark.parametrize(
    "text", ["print(1)", "import sys; sys.exit(3)", "try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass"]
)
def test_what_was_caught_or_meant_is_no_failure(ended, text):
    _, spool = ended(text)
    assert failure_of(spool, [], SpoolNotes()) is None


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
    ("raised", "error"),
    [
        ("Odd('lost', 3, Part())", "Odd: lost, 3"),
        ("ValueError(Part())", "ValueError"),
        ("KeyError('name')", "KeyError: 'name'"),
        ("FileNotFoundError(2, 'No such file', 'x.bin')", "FileNotFoundError: [Errno 2] No such file: 'x.bin'"),
        ("AttributeError('no such thing', name='x', obj=Part())", "AttributeError: no such thing"),
    ],
)
def test_the_text_of_an_error_is_made_without_running_the_programs_code_again(ended, raised, error):
    watched, spool = ended(OWN_TEXT % raised)
    alone, _ = ended(OWN_TEXT % raised, watched=False)
    assert failure_of(spool, [], SpoolNotes()).error == error
    assert (watched.returncode, watched.stdout, watched.stderr) == (alone.returncode, alone.stdout, alone.stderr)


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


def test_an_error_of_a_dataset_pipeline_is_the_one_that_it_refers_to(ended):
    _, spool = ended(PIPELINE)
    assert failure_of(spool, [], SpoolNotes()).error == "RuntimeError: Invalid csv, type does not match."


def test_an_error_that_somebody_handled_and_kept_is_no_failure(ended):
    """As test runners and notebooks do."""
    script = """\
import sys

def step():
    try:
        raise ValueError("handled")
    except ValueError as error:
        sys.last_value, sys.last_traceback = error, error.__traceback__

step()
"""
    _, spool = ended(script)
    assert failure_of(spool, [], SpoolNotes()) is None


def lines(spool, *rows):
    facts = {"place": None, "code": None, "lines": []}
    text = "".join(json.dumps(facts | row) + "\n" for row in rows)
    spool.joinpath(FAILED).write_text(text + '{"pid": 9, "t"', encoding="utf-8")


def test_the_first_rank_that_failed_counts_and_a_helper_does_not(tmp_path):
    lines(tmp_path, {"pid": 1, "t": 5, "error": "helper"}, {"pid": 3, "t": 20, "error": "late"},
          {"pid": 2, "t": 10, "error": "first"}, {"pid": 0, "t": 30, "error": "launcher"})  # fmt: skip
    assert failure_of(tmp_path, [2, 3], SpoolNotes()).error == "first"
    assert failure_of(tmp_path, [], SpoolNotes()).error == "launcher"


def test_probe_and_reader_mean_the_same_file():
    assert probe.NAME == FAILED
