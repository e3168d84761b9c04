"""What is said of a command that failed: its error, not what stands behind it."""

import pytest

from pipeprof.experiment.trial import last_words

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
    ("text", "expected"),
    [
        (MINDSPORE, "; it said `ValueError: axes don't match array`"),
        (DATASET, "; it said `Cannot batch tensors with different shapes in column 0.`"),
        (
            DATASET[:100],
            "; it said `RuntimeError: Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error Message'.`",
        ),
        ("loading\nKilled\n", "; it said `Killed`"),
        ("ValueError: long ago\n" + "step\n" * 50 + "bye\n", "; it said `bye`"),
        ("ValueError: no such file\n" + IGNORED * 30, "; it said `ValueError: no such file`"),
        ("", ""),
    ],
)
def test_the_last_error_or_else_the_last_line(tmp_path, text, expected):
    path = tmp_path / "b0.log"
    path.write_text(text, encoding="utf-8")
    assert last_words(path) == expected


def test_of_a_very_long_log_only_the_end_is_read(tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, 2)
        file.write(b"\nValueError: no such layer\n")
    assert last_words(log) == "; it said `ValueError: no such layer`"
