"""Faults that are planted are noticed by the tests that ask for what they change, and by no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PRODUCT = """
def larger(a, b):
    return a if a > b else b


def wide(texts, least=3):
    return [text for text in texts if len(text) >= least and text.strip()]
"""
TESTS = """
from product import larger, wide


def test_larger():
    assert larger(1, 2) == 2 and larger(2, 1) == 2


def test_wide():
    assert wide(["ab", "abc", "   "]) == ["abc"]


def test_of_nothing():
    larger(1, 2)
"""


def planted(folder):
    folder.joinpath("product.py").write_text(PRODUCT, encoding="utf-8")
    folder.joinpath("test_product.py").write_text(TESTS, encoding="utf-8")
    script = Path(__file__).with_name("mutants.py")
    words = [sys.executable, str(script), "product.py", "--tests", "test_product.py", "--out", "found.jsonl"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in folder.joinpath("found.jsonl").read_text(encoding="utf-8").splitlines()]
    return done.stdout, {(line["line"], line["what"]): line for line in lines}


def test_a_fault_is_noticed_by_the_tests_that_ask_for_what_it_changes(tmp_path):
    said, found = planted(tmp_path)
    assert {key: [name.partition("::")[2] for name in line["noticed"]] for key, line in found.items()} == {
        (3, "condition turned"): ["test_larger"],
        (3, "returns None"): ["test_larger"],
        (3, "Gt to GtE"): [],  # which of two equals is the larger makes no difference
        (7, "returns None"): ["test_wide"],
        (0, "filter left out"): ["test_wide"],
        (7, "And to Or"): ["test_wide"],
        (7, "part 0 left out"): ["test_wide"],
        (7, "part 1 left out"): ["test_wide"],
        (7, "GtE to Gt"): ["test_wide"],
    }
    assert found[3, "returns None"]["tests"] == 2
    assert "8 of 9 faults noticed (88.9%), by 3 tests" in said
