"""A copy of the probe in which calls of the standard library raise, each once: what an error of the probe does.

`write_copy` rewrites the calls of each module: `f(x)` becomes `_fault(SITE, f)(x)`. In a program, `_fault` raises in the
place of the call where the site's turn has come (PIPEPROF_FAULTS), and notes in a file which sites were reached.
"""

import ast
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pipeprof.collect
from pipeprof.collect.launch import ProbeOptions

ROUNDS = 4  # in the first of them most processes end early, since a module of the recorder could not be loaded
PROBE = Path(pipeprof.collect.__file__).parent / "probe"
# What the program itself has asked for, and the probe only passes on: such an error is the program's.
PASSED_ON = {"super", "original", "execute", "finder.find_spec", "function", "next", "iter"}

INJECTOR = """
import os as _os, sys as _sys

_write, _open, _close = _os.write, _os.open, _os.close
_FILE = _os.environ["PIPEPROF_FAULTS_FILE"]
_CALL, _LATER, *_SITES = (int(word) for word in _os.environ["PIPEPROF_FAULTS"].split(","))
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


def _is_started():
    return any(type(finder).__module__ == "_pipeprof_probe.imports" for finder in _sys.meta_path)


def fault(number, site, function):
    try:
        if not _is_of_the_library(function) or _is_started() != bool(_LATER):
            return function
        count = _calls[number] = _calls.get(number, 0) + 1
        if count == 1:
            _note("reached", "%d %s" % (number, site))
        if count != _CALL or number not in _SITES:
            return function
        _note("raised", "%d %s" % (number, site))
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


def write_copy(folder, hooks=("_hooks*.so",)):
    """The probe with rewritten calls below a folder; returns what stands first on PYTHONPATH then.

    `hooks`: patterns of the files with hooks in C; without any, those in Python are used.
    """
    copy = folder / "probe"
    copy.mkdir()
    for pattern in hooks:
        for path in PROBE.glob(pattern):
            shutil.copy(path, copy)
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


def environment(site, spool, notes, numbers, *, call, later, options):
    """The variables of a program in which the sites of these numbers raise in their `call`-th call.

    While the probe starts, or `later`: when an early error keeps it from starting, nothing else is reached.
    """
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {
        "PYTHONPATH": path, "PIPEPROF_SPOOL": str(spool), "PIPEPROF_OPTIONS": options,
        "PIPEPROF_FAULTS": ",".join(map(str, (call, int(later), *sorted(numbers)))), "PIPEPROF_FAULTS_FILE": str(notes),
    }  # fmt: skip


def sites(notes, word):
    """Numbers of the sites that were reached, or that raised."""
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    return {int(line.split()[1]) for line in lines if line.startswith(word + " ")}


def all_rounds(start, folder, *, at_once, call, later, hooks=("_hooks*.so",)):
    """Run `start(folder, variables)` until all sites have raised; returns what came of each, those reached, and raised.

    The first round raises nothing. Then each site raises in one of some rounds, and those once more that were not reached
    behind an early error.
    """
    site = write_copy(folder, hooks)
    options = json.dumps(asdict(ProbeOptions(queue_interval_ms=20, run_id="x")))
    outcomes, reached, raised = [], set(), set()

    def round_of(place, numbers):
        inside = folder / place
        inside.mkdir()
        inside.joinpath("spool").mkdir()
        inside.joinpath("cwd").mkdir()
        notes = inside / "notes"
        how = {"call": call, "later": later, "options": options}
        return start(inside / "cwd", environment(site, inside / "spool", notes, numbers, **how)), notes

    for number, rounds in enumerate((1, *[at_once] * ROUNDS)):
        wanted = sorted(reached - raised)
        parts = [wanted[place::rounds] for place in range(rounds)]
        with ThreadPoolExecutor(at_once) as pool:
            done = list(pool.map(round_of, [f"round-{number}-{place}" for place in range(rounds)], parts))
        outcomes += [outcome for outcome, _ in done]
        for _, notes in done:
            reached |= sites(notes, "reached")
            raised |= sites(notes, "raised")
    return outcomes, reached, raised
