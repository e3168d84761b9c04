"""Graphs that were compiled, as MindSpore itself describes them: types, shapes and attributes of their operators."""

import os

from . import cells, recorder

MOST = 64  # graphs of one process
MOST_CELLS = 5_000  # of one graph
LARGEST = 32 << 20  # bytes of one

_count, _named = [0], [0]


def keep(executor, compiled):
    """Leave the description of a graph in the spool. `compiled`: what `compile` of the executor gave back."""
    rec = recorder.REC
    if rec.options.get("ops", "window") == "off" or _count[0] >= MOST:
        return
    phase = compiled[0] if isinstance(compiled, tuple) else compiled
    describe = getattr(getattr(executor, "_graph_executor", None), "get_func_graph_proto", None)
    if describe is None or not isinstance(phase, str):
        return
    data = describe(phase, "anf_ir", False)
    if not isinstance(data, bytes) or not data or len(data) > LARGEST:
        return
    _count[0] += 1
    path = os.path.join(rec.folder, "graph-%d" % _count[0])
    with open(path + ".part", "xb") as file:
        file.write(data)
    os.rename(path + ".part", path + ".anf")


def tell_modules(executor, args):
    """Record where the cells of what was compiled are written: its operators are named after them."""
    if recorder.REC.options.get("ops", "window") == "off" or _named[0] >= MOST:
        return
    _named[0] += 1
    function = getattr(executor, "fn", None)
    if function is None:
        found = [(name, cells.frame_of(cell)) for name, cell in args[0].cells_and_names() if name][:MOST_CELLS]
        frame = cells.frame_of(args[0])
    else:
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        found = []
        frame = (
            ""
            if code is None
            else "%s(%d): %s" % (code.co_filename, code.co_firstlineno, getattr(code, "co_qualname", code.co_name))
        )
    if frame or any(own for _, own in found):
        recorder.REC.line("modules", frame=frame, cells=found)
