"""Plants small faults in the product, one at a time, and lists which tests notice each of them.

python lab/mutants.py pipeprof/verdict --tests tests/unit/verdict --out found.json             every fault
python lab/mutants.py pipeprof/verdict --tests tests/unit/verdict --out found.json --most 500 --seed 7

Tests are collected once, in one process. A fault is put into the functions of a forked child, which runs the tests that call them.
What a test starts in another process does not have the fault: tests that do so notice nothing here.
A line of JSON for each fault: file, line, what was changed, and the tests that failed.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import random
import signal
import sys
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parents[1]
SLOW_S = 0.5  # a test that takes longer is left out
ENOUGH = 40  # tests that notice a fault: no more are asked
COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
            ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}  # fmt: skip
SUMS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
        ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr}  # fmt: skip


def changes(node):
    """(what, function that changes such a node in place) of each fault that a node can have."""
    if isinstance(node, ast.Compare):
        for at, one in enumerate(node.ops):
            if type(one) in COMPARED:
                new = COMPARED[type(one)]
                yield f"{type(one).__name__} to {new.__name__}", lambda n, at=at, new=new: n.ops.__setitem__(at, new())
    elif isinstance(node, ast.BinOp) and type(node.op) in SUMS:
        new = SUMS[type(node.op)]
        yield f"{type(node.op).__name__} to {new.__name__}", lambda n: setattr(n, "op", new())
    elif isinstance(node, ast.BoolOp):
        new = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{type(node.op).__name__} to {new.__name__}", lambda n: setattr(n, "op", new())
        for at in range(len(node.values)):
            neutral = ast.Constant(isinstance(node.op, ast.And))
            yield f"part {at} left out", lambda n, at=at, neutral=neutral: n.values.__setitem__(at, neutral)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "condition turned", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
    elif isinstance(node, ast.Return) and node.value is not None and not is_none(node.value):
        yield "returns None", lambda n: setattr(n, "value", ast.Constant(None))
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "filter left out", lambda n: n.ifs.clear()
    elif isinstance(node, ast.Constant):
        yield from changed_constant(node)


def is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def changed_constant(node):
    value = node.value
    if isinstance(value, bool):
        yield f"{value} to {not value}", lambda n: setattr(n, "value", not value)
    elif isinstance(value, int | float):
        for new in {value + 1, value * 2} - {value}:
            yield f"{value} to {new}", lambda n, new=new: setattr(n, "value", new)


def parented(tree):
    """Nodes that stand in a function, without docstrings, annotations and messages of errors."""
    for top in ast.walk(tree):
        if isinstance(top, ast.Raise):
            for inner in ast.walk(top):
                inner.left_out = True
        for name in ("annotation", "returns"):
            for inner in ast.walk(getattr(top, name, None) or ast.Pass()):
                inner.left_out = True
    inside = set()
    for top in ast.walk(tree):
        if isinstance(top, ast.FunctionDef | ast.Lambda):
            body = top.body if isinstance(top.body, list) else [top.body]
            inside |= {id(inner) for statement in body for inner in ast.walk(statement)}
    return [node for node in ast.walk(tree) if id(node) in inside and not getattr(node, "left_out", False)]


def faults_of(path):
    """(line, what, changed tree) of each fault of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for number, node in enumerate(parented(tree)):
        for which, (what, _) in enumerate(changes(node)):
            yield getattr(node, "lineno", 0), what, number, which


@cache
def original_code(path):
    return compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)


def changed_code(path, number, which):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node = parented(tree)[number]
    list(changes(node))[which][1](node)
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)


def inner_codes(code):
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def differing(before, after):
    """Pairs of codes of functions that are not the same."""
    if before != after:
        yield before, after
    for one, other in zip(inner_codes(before), inner_codes(after), strict=False):
        yield from differing(one, other)


def place(code):
    return code.co_filename, code.co_firstlineno, code.co_name


def functions_by_place(files):
    found = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename in files:
            found[place(one.__code__)].append(one)
    return found


class Hung(BaseException):
    """A test takes much longer than it did."""


def hung(*_):
    raise Hung


class Runner:
    """Runs the collected tests: once to see what each calls, then for each fault those that call what it changes."""

    def __init__(self, asked):
        self.asked = asked
        self.files = {str(path) for path in modules(asked.paths)}

    def pytest_runtestloop(self, session):
        """In place of pytest's own loop."""
        items = [item for item in session.items if "hypothesis" not in item.keywords and not hasattr(getattr(item, "obj", None), "hypothesis")]
        calls, seconds = self.first_pass(items)
        drawn = [(path, *fault) for path in modules(self.asked.paths) for fault in faults_of(path)]
        random.Random(self.asked.seed).shuffle(drawn)  # noqa: S311
        drawn = drawn[: self.asked.most]
        functions = functions_by_place(self.files)
        began, noticed = time.monotonic(), 0
        with self.asked.out.open("w", encoding="utf-8") as out:
            for at, fault in enumerate(drawn):
                if time.monotonic() - began > self.asked.limit_s:
                    break
                line = self.plant(fault, calls, seconds, functions)
                noticed += bool(line and line["noticed"])
                if line:
                    out.write(json.dumps(line) + "\n")
                if at % 200 == 0:
                    print(f"{at} of {len(drawn)}, {noticed} noticed, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        return True

    def first_pass(self, items):
        """{item: functions that it calls} and {item: seconds} of the tests that pass, and are quick."""
        calls, seconds = {}, {}
        for item, following in zip(items, [*items[1:], None], strict=True):
            called = set()

            def watch(frame, event, _arg, called=called):
                if event == "call" and frame.f_code.co_filename in self.files:
                    called.add(place(frame.f_code))

            began = time.monotonic()
            sys.setprofile(watch)
            try:
                reports = runtestprotocol(item, nextitem=following, log=False)
            finally:
                sys.setprofile(None)
            took = time.monotonic() - began
            if all(report.passed for report in reports) and took < SLOW_S:
                calls[item], seconds[item] = called, took
        print(f"{len(calls)} of {len(items)} tests, {sum(seconds.values()):.0f} s", file=sys.stderr, flush=True)
        return calls, seconds

    def plant(self, fault, calls, seconds, functions):
        path, row, what, number, which = fault
        before = original_code(path)
        changed = [(one, other) for one, other in differing(before, changed_code(path, number, which)) if one.co_name != "<module>"]
        places = {place(one) for one, _ in changed}
        chosen = [item for item in calls if places & calls[item]]
        line = {"file": str(path.relative_to(ROOT)), "line": row, "what": what, "tests": len(chosen), "noticed": []}
        if not chosen:
            return line
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as out:
                for one, other in changed:
                    for function in functions[place(one)]:
                        if len(function.__code__.co_freevars) == len(other.co_freevars):
                            function.__code__ = other
                signal.signal(signal.SIGALRM, hung)
                failed = 0
                for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                    signal.alarm(int(10 + 5 * seconds[item]))
                    noticed = not passes(item, following)
                    signal.alarm(0)
                    if noticed:
                        out.write(item.nodeid + "\n")
                        out.flush()
                        failed += 1
                        if failed == ENOUGH:
                            break
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as found:
            line["noticed"] = found.read().splitlines()
        os.waitpid(child, 0)
        return line


def passes(item, following):
    """Whether a test passes, without a report of how it fails, which takes longer than most tests."""
    try:
        item._initrequest()
        item.ihook.pytest_runtest_setup(item=item)
        item.ihook.pytest_runtest_call(item=item)
    except BaseException:  # noqa: BLE001 - also what a hung test is ended by
        passed = False
    else:
        passed = True
    try:
        item.ihook.pytest_runtest_teardown(item=item, nextitem=following)
    except BaseException:  # noqa: BLE001
        passed = False
    return passed


def modules(paths):
    return [path for one in paths for path in ([one] if one.is_file() else sorted(one.rglob("*.py")))]


def main():
    """Collect the tests, plant the faults, write what was noticed."""
    asked = argparse.ArgumentParser()
    asked.add_argument("paths", type=lambda text: Path(text).resolve(), nargs="+", help="files and folders of the product")
    asked.add_argument("--tests", nargs="+", required=True)
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--most", type=int, default=10**9, help="faults, drawn")
    asked.add_argument("--limit-s", type=float, default=10**9, help="plant no more after so many seconds")
    given = asked.parse_args()
    words = ["-q", "--assert=plain", "-p", "no:cacheprovider", "-m", "not slow and not real and not mindspore", *given.tests]
    sys.exit(pytest.main(words, plugins=[Runner(given)]))


if __name__ == "__main__":
    main()
