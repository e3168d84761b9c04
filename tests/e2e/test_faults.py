"""No error of the probe reaches the training: each call of the standard library in the probe raises once."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
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


def run(pipeprof, site, folder, kind, turn, call):
    """A training in which the sites of a turn raise in one of their calls; with the notes of what was reached."""
    spool, notes = folder / f"spool-{turn}-{call}", folder / f"notes-{turn}-{call}"
    spool.mkdir()
    options = json.dumps(asdict(ProbeOptions(queue_interval_ms=20, run_id="x")))
    faults = probe_faults.environment(site, spool, notes, every=EVERY, turn=turn, call=call, options=options)
    return pipeprof.plain(pipeprof.script("faulty.py", kind), env=pipeprof.environment(**faults)), notes


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_that_raises_once_leaves_the_training_as_it_is(pipeprof, site, tmp_path, kind):
    rounds = [(turn, call) for call in (1, 2) for turn in range(EVERY)]
    with ThreadPoolExecutor(len(rounds) + 1) as pool:
        plain = pool.submit(pipeprof.plain, pipeprof.script("faulty.py", kind))
        started = [pool.submit(run, pipeprof, site, tmp_path, kind, *which) for which in rounds]
        outcomes = [future.result() for future in started]
    expected = (3, plain.result().stdout)
    changed = [
        f"turn {turn}, call {call}: exit code {done.returncode}\n{done.stderr[-3000:]}"
        for (turn, call), (done, _) in zip(rounds, outcomes, strict=True)
        if (done.returncode, done.stdout) != expected or "Traceback" in done.stderr
    ]
    assert plain.result().returncode == 3
    assert not changed, "\n".join(changed)
    reached = set().union(*(probe_faults.sites(notes, "reached") for _, notes in outcomes))
    raised = set().union(*(probe_faults.sites(notes, "raised") for _, notes in outcomes[:EVERY]))
    assert len(reached) >= LEAST
    assert raised == reached, sorted(reached - raised)
