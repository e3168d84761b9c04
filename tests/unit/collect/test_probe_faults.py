"""Each call of the standard library in the probe raises once, in a program with a stand-in for MindSpore.

Quick, and so with many more rounds than trainings of MindSpore's allow (`tests/e2e/test_faults.py`).
"""

import os
import re
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
import mindspore_stand_in
import probe_faults

AT_ONCE = 8  # rounds that run side by side, each of which raises in an eighth of the sites
LEAST, LEAST_AT_START = 170, 15  # sites that are reached
SAID = re.compile("pipeprof: cannot write its record .*\\n")  # as on a full disk
PLACE = re.compile(r"  File .*\n(    .*\n)*")  # the line numbers of a traceback, and the frames of hooks


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A folder with the stand-in, and a training in it."""
    folder = tmp_path_factory.mktemp("stand-in")
    for name, text in mindspore_stand_in.FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder


def run(folder, cwd, variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIPEPROF_")}
    # With MindSpore, which has threads of its own, Python 3.12 warns of each os.fork with and without a recorder.
    done = subprocess.run(
        [sys.executable, "-B", "-W", "ignore::DeprecationWarning", str(folder / "train.py")],
        capture_output=True, text=True, check=False, timeout=600, cwd=cwd, env=kept | variables,
    )  # fmt: skip
    return (
        done.returncode,
        done.stdout,
        PLACE.sub("", SAID.sub("", done.stderr)),
        sorted(path.name for path in cwd.iterdir()),
    )


def changes(program, folder, call, *, later, hooks=()):
    """What the program does otherwise than where nothing is recorded; how many sites were reached, and raised."""
    folder.joinpath("plain").mkdir()
    plain = run(program, folder / "plain", {})
    assert plain[0] == 1
    assert "trained" in plain[1]
    start = partial(run, program)
    how = {"at_once": AT_ONCE, "call": call, "later": later, "hooks": hooks}
    outcomes, reached, raised = probe_faults.all_rounds(start, folder, **how)
    return [(outcome, plain) for outcome in outcomes if outcome != plain], len(reached), len(raised)


def test_no_call_that_raises_when_the_probe_starts_is_seen(program, tmp_path):
    changed, reached, raised = changes(program, tmp_path, 1, later=False)
    assert changed == []
    assert reached >= raised >= LEAST_AT_START


@pytest.mark.parametrize("call", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_no_call_that_raises_while_a_program_trains_is_seen(program, tmp_path, call):
    changed, reached, raised = changes(program, tmp_path, call, later=True)
    assert changed == []
    assert reached >= LEAST
    assert call > 1 or raised >= 0.85 * reached  # some are only reached behind an error


def test_no_call_that_raises_behind_a_hook_in_c_is_seen(program, tmp_path):
    if not list(probe_faults.PROBE.glob("_hooks*.so")):
        pytest.skip("no hooks in C: nothing compiled them")
    changed, reached, raised = changes(program, tmp_path, 1, later=True, hooks=["_hooks*.so"])
    assert changed == []
    assert reached >= LEAST
    assert raised >= 0.85 * reached
