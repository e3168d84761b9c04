"""No error of the probe reaches the training: each call of the standard library in the probe raises once."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from pipeprof.collect.launch import ProbeOptions

sys.path.insert(0, str(Path(__file__).parents[1]))
import probe_faults

pytestmark = [pytest.mark.mindspore, pytest.mark.slow]
KINDS = ("graph", "pynative", "processes")
EVERY = (
    3  # so many parts, each of which raises in a training of its own: an early failure must not hide what comes after
)
LEAST = 150  # sites of the probe that a training reaches; fewer would mean that nothing was injected


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return probe_faults.write_copy(tmp_path_factory.mktemp("faulty"))


@pytest.fixture(scope="module")
def expected(pipeprof_in):
    """What each kind of training prints and ends with when nothing is recorded."""
    pipeprof = pipeprof_in("unrecorded")
    known = {}

    def of(kind):
        if kind not in known:
            known[kind] = pipeprof.plain(pipeprof.script("faulty.py", kind))
            assert known[kind].returncode == 3, known[kind].stderr
        return known[kind]

    return of


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_that_raises_once_leaves_the_training_as_it_is(pipeprof, site, expected, tmp_path, kind):
    reached, raised, changed = set(), set(), []
    rounds = [(turn, call) for call in (1, 2) for turn in range(EVERY)]
    for turn, call in rounds:
        spool, notes = tmp_path / f"spool-{turn}-{call}", tmp_path / f"notes-{turn}-{call}"
        spool.mkdir()
        options = json.dumps(asdict(ProbeOptions(queue_interval_ms=20, run_id="x")))
        faults = probe_faults.environment(site, spool, notes, every=EVERY, turn=turn, call=call, options=options)
        done = pipeprof.plain(pipeprof.script("faulty.py", kind), env=pipeprof.environment(**faults))
        same = (done.returncode, done.stdout) == (3, expected(kind).stdout) and "Traceback" not in done.stderr
        changed += [] if same else [f"turn {turn}, call {call}: exit code {done.returncode}\n{done.stderr[-3000:]}"]
        reached |= probe_faults.sites(notes, "reached")
        if call == 1:
            raised |= probe_faults.sites(notes, "raised")
    assert not changed, "\n".join(changed)
    assert len(reached) >= LEAST
    assert raised == reached  # each of them has raised
