"""A copy of the probe in which calls of the standard library raise, each once: what an error of the probe does.

`write_copy` rewrites the calls of each module: `f(x)` becomes `_fault(SITE, f)(x)`. In a program, `_fault` raises in the
place of the call where the site's turn has come (PIPEPROF_FAULTS), and notes in a file which sites were reached.
"""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path

import pipeprof.collect

PROBE = Path(pipeprof.collect.__file__).parent / "probe"
# What the program itself has asked for, and the probe only passes on: such an error is the program's.
PASSED_ON = {"super", "original", "execute", "finder.find_spec", "next", "iter"}

INJECTOR = """
import os as _os, sys as _sys

_write, _open, _close = _os.write, _os.open, _os.close
_FILE = _os.environ["PIPEPROF_FAULTS_FILE"]
_EVERY, _TURN, _CALL = (int(word) for word in _os.environ["PIPEPROF_FAULTS"].split(","))
_calls = {}
_LIBRARY = _os.path.dirname(_os.__file__)
_ERRORS = (OSError(24, "injected"), RuntimeError("injected"), ValueError("injected"))


def _note(word, site):
    number = _open(_FILE, _os.O_WRONLY | _os.O_CREAT | _os.O_APPEND)
    _write(number, ("%s %s\\n" % (word, site)).encode())
    _close(number)


def _is_of_the_library(function):
    module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
    if module in ("builtins", None, "NoneType"):
        return getattr(function, "__name__", "") == "open"
    code = getattr(function, "__code__", None)
    if code is not None:
        return code.co_filename.startswith((_LIBRARY, "<frozen")) and "site-packages" not in code.co_filename
    root = module.partition(".")[0]
    return root in _sys.builtin_module_names or root in _sys.stdlib_module_names


def fault(number, site, function):
    try:
        if not _is_of_the_library(function):
            return function
        count = _calls[number] = _calls.get(number, 0) + 1
        if count == 1:
            _note("reached", site)
        if count != _CALL or number % _EVERY != _TURN:
            return function
        _note("raised", site)
    except Exception:
        return function

    def raising(*args, **kwargs):
        raise _ERRORS[number % 3]

    return raising
"""


class _Calls(ast.NodeTransformer):
    def __init__(self, name, first):
        self.name, self.number = name, first

    def visit_Call(self, node):
        self.generic_visit(node)
        if ast.unparse(node.func) in PASSED_ON:
            return node
        site = f"{self.name}:{node.lineno}:{node.col_offset}"
        arguments = [ast.Constant(self.number), ast.Constant(site), node.func]
        self.number += 1
        node.func = ast.Call(ast.Name("_fault", ast.Load()), arguments, [])
        return node


def write_copy(folder):
    """The probe with rewritten calls below a folder; returns what stands first on PYTHONPATH then."""
    copy = folder / "probe"
    copy.mkdir()
    shutil.copytree(PROBE / "site", copy / "site", ignore=shutil.ignore_patterns("__pycache__"))
    number = 0
    for path in sorted(PROBE.glob("*.py")):
        calls = _Calls(path.name, number)
        tree = calls.visit(ast.parse(path.read_text(encoding="utf-8")))
        number = calls.number
        begin = 1 if ast.get_docstring(tree) else 0
        tree.body.insert(begin, ast.parse("from _pipeprof_faults import fault as _fault").body[0])
        text = ast.unparse(ast.fix_missing_locations(tree))
        copy.joinpath(path.name).write_text(text, encoding="utf-8")
    copy.joinpath("site", "_pipeprof_faults.py").write_text(INJECTOR, encoding="utf-8")
    entry = copy / "site" / "sitecustomize.py"
    text = entry.read_text(encoding="utf-8").replace(
        "def _start_probe", "import _pipeprof_faults\n\n\ndef _start_probe", 1
    )
    entry.write_text(text, encoding="utf-8")
    return copy / "site"


def environment(site, spool, notes, *, every, turn, call, options):
    """The variables of a program in which every `every`-th site raises in its `call`-th call."""
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {
        "PYTHONPATH": path, "PIPEPROF_SPOOL": str(spool), "PIPEPROF_OPTIONS": options,
        "PIPEPROF_FAULTS": f"{every},{turn},{call}", "PIPEPROF_FAULTS_FILE": str(notes),
    }  # fmt: skip


def sites(notes, word):
    """Sites that were reached, or that raised, by `file:line:column`."""
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    return {line.split(" ", 1)[1] for line in lines if line.startswith(word + " ")}
