"""Which calls are marked as waiting for the network, with which line, and what they change: nothing."""

import sys
from types import SimpleNamespace

import pytest

from tests.unit.collect.conftest import in_thread


class Tensor:
    def __init__(self, value):
        self.value = value

    def asnumpy(self):
        """Of the original."""
        if self.value is None:
            raise ValueError("empty")
        return [self.value]

    def item(self):
        return self.asnumpy()[0]

    def __bool__(self):
        return bool(self.item())

    def __str__(self):
        return str(self.asnumpy())


@pytest.fixture
def watched(probe, mindspore, monkeypatch):
    """A hooked Tensor class, and the marks and lines that its calls leave."""
    kind = type("Tensor", (), dict(Tensor.__dict__))
    probe.syncs.install_tensor(SimpleNamespace(Tensor=kind))
    rec = SimpleNamespace(folder="here", off=False, marks=[], lines=[])
    rec.mark = lambda *fields: rec.marks.append(fields)
    rec.line = lambda name, **fields: rec.lines.append((name, fields))
    rec.failed = pytest.fail
    monkeypatch.setattr(probe.recorder, "REC", rec)
    return kind, rec, probe.recorder


def test_a_call_is_marked_once_with_the_line_that_made_it(watched):
    kind, rec, recorder = watched
    line = sys._getframe().f_lineno + 1
    assert [kind(3).item() for _ in range(2)] == [3, 3]
    assert [mark[:4] for mark in rec.marks] == [(recorder.SYNC, 0, 1, 0)] * 2  # what `item` calls belongs to it
    assert rec.lines == [("sync_site", {"number": 1, "call": "item", "site": f"{__file__}:{line}", "via": ""})]
    assert all(begin <= end for *_, begin, end in rec.marks)


def test_printing_and_asking_for_truth_read_the_values_and_errors_pass(watched):
    kind, rec, _ = watched
    with pytest.raises(ValueError, match="empty"):
        kind(None).asnumpy()
    assert (str(kind(2)), bool(kind(0))) == ("[2]", False)
    assert [fields["call"] for _, fields in rec.lines] == ["asnumpy", "__str__", "__bool__"]
    assert len(rec.marks) == 3
    assert kind.asnumpy.__doc__ == "Of the original."


def test_nothing_is_marked_before_there_is_a_spool_nor_in_other_threads(watched):
    kind, rec, _ = watched
    in_thread(kind(1).asnumpy)
    rec.folder = None
    kind(1).asnumpy()
    rec.folder, rec.off = "here", True
    kind(1).asnumpy()
    assert rec.marks == []


def test_a_call_out_of_mindspore_has_the_users_line_and_mindspores_file(watched, tmp_path):
    kind, rec, _ = watched
    file = tmp_path / "mindspore" / "train" / "_loss_monitor.py"
    space = {"__name__": "mindspore.train._loss_monitor"}
    exec(compile("def step_end(loss):\n    return loss.asnumpy()\n", str(file), "exec"), space)  # noqa: S102
    line = sys._getframe().f_lineno + 1
    space["step_end"](kind(1))
    ((_, fields),) = rec.lines
    assert (fields["site"], fields["via"]) == (f"{__file__}:{line}", "_loss_monitor.py")
