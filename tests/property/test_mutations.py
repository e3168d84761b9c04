"""Every family of input, damaged at random, through the real verbs: no traceback, no hang, no gigabyte, no stray write.

`make mutations` runs thousands of cases; here a few with a fixed seed.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from mutations import FAMILIES, STUCK_S, spool

from pipeprof.read.spool import lines as records

pytestmark = pytest.mark.slow  # makes up its input

MUTATIONS = os.environ.get("PIPEPROF_MUTATIONS")
CASES = int(MUTATIONS or 72) // len(FAMILIES)
SEED = os.environ.get("PIPEPROF_MUTATIONS_SEED", "1")
SCRIPT = Path(__file__).parent.parent / "mutations.py"


@cache
def damaged(families):
    """How the process ended in which these were put through the verbs, and what it told."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), families, SEED, "0", str(CASES)], capture_output=True, text=True, check=False,
        timeout=CASES * len(families.split(",")) * STUCK_S,
    )  # fmt: skip
    return done, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("family", FAMILIES)
def test_damaged_input_is_refused_or_partial(family):
    """Few cases share a process, and what they damage is made once."""
    done, lines = damaged(family if MUTATIONS else ",".join(FAMILIES))
    told = [one for one in lines if one["family"] == family]
    bad = [one for one in told if one.get("problems")]
    assert not bad, json.dumps(bad, indent=1)
    assert done.returncode == 0, (lines[-1:], done.stderr[-3000:])
    assert sum("problems" in one for one in told) == CASES


def test_the_family_of_spools_has_a_line_of_every_event(tmp_path):
    spool(tmp_path / "spool")
    lines = [line for path in tmp_path.rglob("events.jsonl") for line in path.read_text(encoding="utf-8").splitlines()]
    assert {json.loads(line)["e"] for line in lines} >= set(records._EVENTS)


def test_what_would_be_written_outside_is_noted_and_not_done(tmp_path):
    """The machine itself must outlive a program that believes every name."""
    program = """
import os, shutil, sys
from pathlib import Path
from mutations import Watch
place = Path(sys.argv[1])
watch = Watch()
watch.allowed = (str(place / "own"),)
watch.on = True
(place / "own" / "new").write_text("x")
inside = place / "outside" / "file"
for act in (lambda: shutil.rmtree(inside.parent, ignore_errors=True), inside.unlink, lambda: inside.write_text("y")):
    try:
        act()
    except PermissionError:
        pass
watch.on = False
print(len(watch.seen), inside.read_text())
"""
    for name in ("own", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "file").write_text("kept")
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, cwd=SCRIPT.parent, check=False
    )
    assert done.returncode == 0, done.stderr
    number, text = done.stdout.split()
    assert int(number) >= 3
    assert text == "kept"
