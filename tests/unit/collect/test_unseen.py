"""The traceback of an error that passes hooks is the program's own."""

import functools
import sys
import traceback
from types import SimpleNamespace

import pytest

from pipeprof.collect.probe import around, callables, hooks, recorder, sections, steps, syncs

HOOKS = {
    "run": steps._left_or_ended,
    "evaluation": lambda original: around._timed(original, around.EVALUATION),
    "callback": lambda original: steps._callback(lambda _self, _context: original(), recorder.EVAL_END),
    "call": lambda original: steps._timed_calls(lambda _self: original(), steps.GRAPH, None, None),
    "cell": lambda original: sections._watched(lambda _self: original()),
    "wait": lambda original: syncs._watched("asnumpy", original),
    "rows": lambda original: functools.partial(
        lambda rows: list(callables._timed_rows(SimpleNamespace(skips=lambda: True), rows)),
        lambda: (original() for _ in "a"),
    ),
}
ARGUMENTS = {"callback": (None, SimpleNamespace(original_args=dict)), "call": (None,), "cell": (None,)}


def fails():
    raise ValueError("NAN")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 puts the frame of a hook back")
@pytest.mark.parametrize("name", HOOKS)
def test_no_frame_of_the_probe_is_in_the_traceback_of_an_error(tmp_path, monkeypatch, name):
    rec = recorder.Recorder(str(tmp_path), {})
    rec.off = False
    monkeypatch.setattr(recorder, "REC", rec)
    monkeypatch.setattr(hooks, "COMPILED", None)
    hooked = HOOKS[name](fails)
    with pytest.raises(ValueError, match="NAN") as raised:
        hooked(*ARGUMENTS.get(name, ()))
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert frames[-1].name == "fails"
    assert [frame.name for frame in frames if "/probe/" in frame.filename] == []
