"""Every family of input, damaged at random, through the real verbs: no traceback, no hang, no gigabyte, no stray write.

`make mutations` runs thousands of cases; here a few with a fixed seed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutations import FAMILIES, STUCK_S

CASES = int(os.environ.get("PIPEPROF_MUTATIONS", "65")) // len(FAMILIES)
SEED = os.environ.get("PIPEPROF_MUTATIONS_SEED", "1")
SCRIPT = Path(__file__).parent.parent / "mutations.py"


@pytest.mark.parametrize("family", FAMILIES)
def test_damaged_input_is_refused_or_partial(family):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), family, SEED, "0", str(CASES)], capture_output=True, text=True, check=False,
        timeout=CASES * STUCK_S,
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    bad = [one for one in told if one.get("problems")]
    assert not bad, json.dumps(bad, indent=1)
    assert done.returncode == 0, (told[-1:], done.stderr[-3000:])
    assert sum("problems" in one for one in told) == CASES
