"""No error of the probe reaches the training: each call of the standard library in the probe raises once."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import probe_faults

pytestmark = [pytest.mark.mindspore, pytest.mark.slow]
AT_ONCE = 4  # trainings side by side, each of which raises in a quarter of the sites
LEAST = 150  # sites of the probe that a training reaches; fewer would mean that nothing was injected
# Sites that raise in these rounds: an error while hooks are put in ends the recording, and hides what comes behind it.
# Each of those is tried with a stand-in for MindSpore, which starts faster: tests/unit/collect/test_probe_faults.py.
RAISED = 50


@pytest.mark.parametrize("kind", ["graph", "pynative", "processes"])
def test_every_call_that_raises_once_leaves_the_training_as_it_is(pipeprof, tmp_path, kind):
    command = pipeprof.script("faulty.py", kind)

    def start(cwd, variables):
        return pipeprof.plain(command, cwd=cwd, env=pipeprof.environment(**variables))

    plain = pipeprof.plain(command)
    outcomes, reached, raised = probe_faults.all_rounds(start, tmp_path, at_once=AT_ONCE, call=1, later=True)
    assert plain.returncode == 3, plain.stderr
    changed = [
        f"exit code {done.returncode}\n{done.stderr[-3000:]}"
        for done in outcomes
        if (done.returncode, done.stdout) != (3, plain.stdout) or "Traceback" in done.stderr
    ]
    assert not changed, "\n".join(changed)
    assert len(reached) >= LEAST
    assert len(raised) >= RAISED
