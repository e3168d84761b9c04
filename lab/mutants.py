"""Plants small faults in the product, one at a time, and lists which tests notice each of them.

python lab/mutants.py pipeprof/verdict --tests tests/unit/verdict --out found.jsonl --most 500 --seed 7    500, drawn
python lab/mutants.py pipeprof/verdict --tests tests/unit/verdict --out found.jsonl                        all of them

Tests are collected once, in one process, and run once to see which functions each of them calls. A fault is put into the functions of a
forked child, which runs the tests that call them until 40 have noticed it. Tests that take more than half a second, or make up their input,
are left out. What a test starts in another process does not have the fault.

Writes a line of JSON for each fault: file, line, what was changed, how many tests could notice it, and those that did. Prints how many
faults were noticed, of those that any test runs into.
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

SLOW_S = 0.5
ENOUGH = 40
SWAPPED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
           ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
           ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
           ast.And: ast.Or, ast.Or: ast.And}  # fmt: skip


def faults(node):
    """(what it is, function that puts it into such a node) of each fault that a node can have."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            new = SWAPPED[type(operator)]
            yield named(operator, new), lambda n, at=at, new=new: n.ops.__setitem__(at, new())
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        new = SWAPPED[type(node.op)]
        yield named(node.op, new), lambda n: setattr(n, "op", new())
    if isinstance(node, ast.BoolOp):
        for at in range(len(node.values)):
            neutral = ast.Constant(isinstance(node.op, ast.And))
            yield f"part {at} left out", lambda n, at=at, neutral=neutral: n.values.__setitem__(at, neutral)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "condition turned", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
    elif isinstance(node, ast.Return) and node.value is not None and ast.dump(node.value) != "Constant(value=None)":
        yield "returns None", lambda n: setattr(n, "value", ast.Constant(None))
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "filter left out", lambda n: n.ifs.clear()
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        for new in other_values(node.value):
            yield f"{node.value} to {new}", lambda n, new=new: setattr(n, "value", new)


def named(operator, new):
    return f"{type(operator).__name__} to {new.__name__}"


def other_values(value):
    return [not value] if isinstance(value, bool) else sorted({value + 1, value * 2} - {value})


def nodes_of_functions(tree):
    """In a fixed order; annotations and what is raised are no place for a fault."""
    inside, outside = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            body = node.body if isinstance(node.body, list) else [node.body]
            inside |= {id(inner) for statement in body for inner in ast.walk(statement)}
        left_out = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        left_out += [node] if isinstance(node, ast.Raise) else []
        outside |= {id(inner) for part in left_out if part for inner in ast.walk(part)}
    return [node for node in ast.walk(tree) if id(node) in inside - outside]


def faults_of(path):
    """(path, line, what, number of the node, number of its fault) of each fault that a file can have."""
    for number, node in enumerate(nodes_of_functions(ast.parse(path.read_text(encoding="utf-8")))):
        for which, (what, _) in enumerate(faults(node)):
            yield path, getattr(node, "lineno", 0), what, number, which


def faulty_code(path, number, which):
    """The code of the file with that fault."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node = nodes_of_functions(tree)[number]
    list(faults(node))[which][1](node)
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)


@cache
def original_code(path):
    return compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)


def differing(before, after):
    """Pairs of codes of functions that are not the same."""
    if before != after:
        yield before, after
    inner = [[one for one in code.co_consts if isinstance(one, CodeType)] for code in (before, after)]
    for pair in zip(*inner, strict=False):
        yield from differing(*pair)


def place(code):
    return code.co_filename, code.co_firstlineno, code.co_name


def functions_by_place(files):
    """The functions of these files that are alive, by where their code is from."""
    found = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename in files:
            found[place(one.__code__)].append(one)
    return found


class HungError(BaseException):
    """A test takes much longer than it did without the fault."""


def give_up(*_):
    raise HungError


def passes(item, following):
    """Whether a test passes, without a report of how it fails, which takes longer than most tests."""
    passed = True
    try:
        item._initrequest()
        item.ihook.pytest_runtest_setup(item=item)
        item.ihook.pytest_runtest_call(item=item)
    except BaseException:  # noqa: BLE001 - also what ends a test that hangs
        passed = False
    try:
        item.ihook.pytest_runtest_teardown(item=item, nextitem=following)
    except BaseException:  # noqa: BLE001
        passed = False
    return passed


def in_turn(items):
    return zip(items, [*items[1:], None], strict=True)


class Planting:
    """Takes the place of pytest's own loop over the tests."""

    def __init__(self, asked):
        self.asked = asked
        self.paths = [path for one in asked.paths for path in ([one] if one.is_file() else sorted(one.rglob("*.py")))]
        self.files = {str(path) for path in self.paths}
        self.calls, self.seconds = {}, {}

    def pytest_runtestloop(self, session):
        """Run the tests once, then those that call what a fault changes, for each fault."""
        self.run_once([item for item in session.items if not hasattr(getattr(item, "obj", None), "hypothesis")])
        functions = functions_by_place(self.files)
        drawn = [fault for path in self.paths for fault in faults_of(path)]
        random.Random(self.asked.seed).shuffle(drawn)  # noqa: S311 - reproducible on purpose
        planted = noticed = 0
        until = time.monotonic() + self.asked.limit_s
        with self.asked.out.open("w", encoding="utf-8") as out:
            for fault in drawn:
                if planted == self.asked.most or time.monotonic() > until:
                    break
                line = self.plant(fault, functions)
                if line["tests"]:
                    planted += 1
                    noticed += bool(line["noticed"])
                    print(json.dumps(line), file=out, flush=True)
        print(f"\n{noticed} of {planted} faults noticed ({noticed / max(planted, 1):.1%}), by {len(self.calls)} tests")
        return True

    def run_once(self, items):
        """Which functions the tests call that pass and are quick, and how long they take."""
        for item, following in in_turn(items):
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
            if took < SLOW_S and all(report.passed for report in reports):
                self.calls[item], self.seconds[item] = called, took

    def plant(self, fault, functions):
        """The line of a fault: the tests that run into it, and those that notice it."""
        path, number, what, *which = fault
        pairs = [
            pair for pair in differing(original_code(path), faulty_code(path, *which)) if pair[0].co_name != "<module>"
        ]
        places = {place(before) for before, _ in pairs}
        chosen = [item for item in self.calls if places & self.calls[item]]
        line = {"file": os.path.relpath(path), "line": number, "what": what, "tests": len(chosen), "noticed": []}
        if not chosen:
            return line
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with os.fdopen(writing, "w") as out:
                for before, after in pairs:
                    for function in functions[place(before)]:
                        if len(function.__code__.co_freevars) == len(after.co_freevars):
                            function.__code__ = after
                self.tell_noticed(chosen, out)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as found:
            line["noticed"] = found.read().splitlines()
        os.waitpid(child, 0)
        return line

    def tell_noticed(self, chosen, out):
        """Write the names of the tests that fail, up to ENOUGH."""
        signal.signal(signal.SIGALRM, give_up)
        failed = 0
        for item, following in in_turn(chosen):
            signal.alarm(int(10 + 5 * self.seconds[item]))
            passed = passes(item, following)
            signal.alarm(0)
            if not passed:
                print(item.nodeid, file=out, flush=True)
                failed += 1
            if failed == ENOUGH:
                break


def main():
    """Collect the tests, plant the faults, write what was noticed."""
    asked = argparse.ArgumentParser()
    asked.add_argument(
        "paths", type=lambda text: Path(text).resolve(), nargs="+", help="files and folders of the product"
    )
    asked.add_argument("--tests", nargs="+", required=True)
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument(
        "--most", type=int, default=10**9, help="faults, drawn; those that no test runs into do not count"
    )
    asked.add_argument("--limit-s", type=float, default=1e9, help="plant no more after so many seconds")
    given = asked.parse_args()
    ordinary = "not slow and not real and not mindspore"
    words = ["-q", "--assert=plain", "-p", "no:cacheprovider", "-m", ordinary, *given.tests]
    sys.exit(pytest.main(words, plugins=[Planting(given)]))


if __name__ == "__main__":
    main()
