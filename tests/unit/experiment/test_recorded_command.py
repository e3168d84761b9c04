"""The command that a run has recorded: whoever made the run must not choose what is run here."""

import pytest

from pipeprof.errors import UsageError
from pipeprof.experiment.whatif import recorded_command
from pipeprof.record.machine import host_name

COMMAND = ["true", "train.py"]


@pytest.fixture
def recorded(make_run, tmp_path, monkeypatch):
    """`recorded(...)`: a run of this folder and machine, with other fields of its manifest."""
    monkeypatch.chdir(tmp_path)

    def make(command=COMMAND, workdir=None, host=None):
        run = make_run({})
        run.manifest.command, run.manifest.workdir = command, str(tmp_path) if workdir is None else workdir
        run.manifest.fingerprint["host"] = host_name() if host is None else host
        return run

    return make


def test_the_command_of_a_run_is_taken_where_it_was_recorded_alone(recorded):
    assert recorded_command(recorded()) == COMMAND
    for other in ({"workdir": ""}, {"workdir": "."}, {"workdir": "/"}, {"host": "other"}, {"host": ""}):
        with pytest.raises(UsageError, match="was recorded"):
            recorded_command(recorded(**other))


def test_a_command_that_cannot_be_run_again_is_said(recorded):
    for command in ([], ["true", "--token", "***"], ["no-such-program-anywhere"]):
        with pytest.raises(UsageError):
            recorded_command(recorded(command=command))
