"""Every family of input, damaged at random, through the real verbs: no traceback, no hang, no gigabyte, no stray write.

`make mutations` runs thousands of cases; here a few with a fixed seed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from mutations import FAMILIES, STUCK_S

pytestmark = pytest.mark.slow  # makes up its input

MUTATIONS = os.environ.get("PIPEPROF_MUTATIONS")
CASES = int(MUTATIONS or 65) // len(FAMILIES)
SEED = os.environ.get("PIPEPROF_MUTATIONS_SEED", "1")
SCRIPT = Path(__file__).parent.parent / "mutations.py"


@cache
def damaged(families):
    """How the process ended in which these were put through the verbs, and what it told."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), families, SEED, "0", str(CASES)], capture_output=True, text=True, check=False,
        timeout=CASES * len(FAMILIES) * STUCK_S,
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
