"""Graphs that were compiled, as MindSpore itself describes them: types, shapes and attributes of their operators."""

import glob
import os
import shutil
import sys

from . import cells, files, recorder, where

MOST = 64  # graphs of one process
MOST_CELLS = 5_000  # of one graph
LARGEST = 32 << 20  # bytes of one

# What MindSpore writes of the graph behind one pass says which lines each operator comes from.
DUMP = {"MS_DEV_SAVE_GRAPHS": "1", "MS_DEV_DUMP_IR_PASSES": "validate"}
_PLACE = "MS_DEV_SAVE_GRAPHS_PATH"

_count, _named, _lined = [0], [0], [0]


class Lines:
    """Around a compilation: leaves in the spool which lines operators come from, where that was asked for."""

    def __enter__(self):
        rec = recorder.REC
        self.folder = None
        try:
            if not rec.graph_lines or _lined[0] >= MOST or _is_dumping():
                return
            rec.open()
            folder = os.path.join(rec.folder, "graph-dump")
            os.environ.update(DUMP)
            os.environ[_PLACE] = self.folder = folder
        except Exception:
            rec.failed("graph_lines")

    def __exit__(self, *_):
        if self.folder is None:
            return
        try:
            for name in (*DUMP, _PLACE):
                os.environ.pop(name, None)
            for path in sorted(glob.glob(os.path.join(self.folder, "**", "*_validate_*.ir"), recursive=True)):
                _lined[0] += 1
                _keep_lines(path, os.path.join(recorder.REC.folder, "graph-%d.lines" % _lined[0]))
            shutil.rmtree(self.folder, ignore_errors=True)
        except Exception:
            recorder.REC.failed("graph_lines")


def _is_dumping():
    """Whether the program has graphs dumped for itself, which is not to go elsewhere."""
    if not {*DUMP, _PLACE}.isdisjoint(os.environ):
        return True
    try:
        return bool(sys.modules["mindspore"].context.get_context("save_graphs"))
    except Exception:
        return False


def _keep_lines(source, path):
    """Of a dump only names and places, those of MindSpore's files from its package on."""
    ours = b"# In file " + os.path.dirname(where.package_folder()).encode() + b"/"
    with files.open_file(source, "rb") as file, files.open_file(path + ".part", "xb") as shortened:
        for line in map(bytes.lstrip, file):
            if line.startswith((b"# Fullname", b"# Corresponding", b"# In file")):
                shortened.write(line.replace(ours + b"mindspore/", b"# In file mindspore/"))
    files.rename(path + ".part", path)


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
    files.write_once(path + ".part", data, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    files.rename(path + ".part", path + ".anf")


def tell_modules(executor, args):
    """Record where the cells of what was compiled are written: its operators are named after them."""
    if recorder.REC.options.get("ops", "window") == "off" or _named[0] >= MOST:
        return
    _named[0] += 1
    function = getattr(executor, "fn", None)
    if function is None:
        named_frames = [(name, cells.frame_of(cell)) for name, cell in args[0].cells_and_names() if name][:MOST_CELLS]
        frame = cells.frame_of(args[0])
    else:
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        named_frames = []
        frame = (
            ""
            if code is None
            else "%s(%d): %s" % (where.short(code.co_filename), code.co_firstlineno, where.qualified_name(code))
        )
    if frame or any(own for _, own in named_frames):
        recorder.REC.line("modules", frame=frame, cells=named_frames)
