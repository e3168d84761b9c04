"""Graphs that were compiled, as MindSpore itself describes them: types, shapes and attributes of their operators."""

import os

from . import recorder

MOST = 64  # graphs of one process
LARGEST = 32 << 20  # bytes of one

_count = [0]


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
