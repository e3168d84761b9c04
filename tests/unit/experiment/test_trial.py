"""A run of a command: what is said of one that failed, and how much memory its processes hold."""

import subprocess
import sys
import time

import pytest

from pipeprof.experiment.trial import MEMORY_EVERY_S, last_words, watched_memory

MINDSPORE = """RuntimeError: Exception thrown from user defined Python function in dataset.

map operation: [PyFunc] failed. Error description:
ValueError: Traceback (most recent call last):
  File "train.py", line 21, in turned
ValueError: axes don't match array

- C++ Call Stack: (For framework developers)
mindspore/ccsrc/minddata/dataset/engine/datasetops/map_op/map_job.h(56).

"""
DATASET = """RuntimeError: Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error Message'.

------------------------------------------------------------------
- Dataset Pipeline Error Message:
------------------------------------------------------------------
[ERROR] Cannot batch tensors with different shapes in column 0.

------------------------------------------------------------------
- C++ Call Stack: (For framework developers)
------------------------------------------------------------------
mindspore/ccsrc/minddata/dataset/engine/datasetops/batch_op.cc(301).


"""
IGNORED = """Exception ignored in: <function Cell.__del__ at 0x7f4e3aca9bc0>
Traceback (most recent call last):
  File "mindspore/nn/cell.py", line 1039, in __del__
AttributeError: 'NoneType' object has no attribute 'total_instance_count'
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MINDSPORE, "ValueError: axes don't match array"),
        (DATASET, "Cannot batch tensors with different shapes in column 0."),
        (DATASET[:100], DATASET.splitlines()[0]),
        ("loading\nKilled\n", "Killed"),
        ("ValueError: long ago\n" + "step\n" * 50 + "bye\n", "bye"),
        ("ValueError: no such file\n" + IGNORED * 30, "ValueError: no such file"),
        ("", None),
    ],
)
def test_the_last_error_or_else_the_last_line(tmp_path, text, said):
    path = tmp_path / "b0.log"
    path.write_text(text, encoding="utf-8")
    assert last_words(path) == ("" if said is None else f"; it said `{said}`")


def test_of_a_very_long_log_only_the_end_is_read(tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, 2)
        file.write(b"\nValueError: no such layer\n")
    assert last_words(log) == "; it said `ValueError: no such layer`"


MIB = 2**20
HOLDS = """
import mmap, sys
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
sum(mapped[at] for at in range(0, len(mapped), 4096))
own = b"1" * (60 << 20)
print("held", flush=True)
sys.stdin.read()
"""


def test_files_are_not_counted_and_own_memory_is(tmp_path):
    """100 MiB of a file, which any other process may have mapped too, beside 60 MiB of a process's own."""
    file = tmp_path / "file"
    file.write_bytes(b"1" * (100 * MIB))
    with watched_memory() as peak:
        with subprocess.Popen(
            [sys.executable, "-S", "-c", HOLDS, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout.read(4) == b"held"
            limit = time.monotonic() + 60
            while peak.bytes < 60 * MIB and time.monotonic() < limit:
                time.sleep(MEMORY_EVERY_S)
            child.stdin.close()
        grown = peak.bytes
    assert 60 * MIB < grown < 90 * MIB
