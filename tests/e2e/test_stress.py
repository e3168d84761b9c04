"""Recording never makes a training crash that does not crash by itself."""

import pytest

pytestmark = [pytest.mark.mindspore, pytest.mark.slow]

TRAININGS = 50


def blamed(pipeprof, command, recording):
    """What to say of a training that died: how it ends without pipeprof is worth a run of minutes only then."""
    return f"without pipeprof: exit code {pipeprof.plain(command).returncode}\n{recording.done.stderr[-3000:]}"


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_fifty_trainings_in_one_process_end_as_without_pipeprof(pipeprof, seed):
    command = pipeprof.script("many.py", str(TRAININGS), str(seed))
    recording = pipeprof.collect(command, "--queue-interval", "10")
    assert recording.done.returncode == 0, blamed(pipeprof, command, recording)
    assert recording.done.stdout.count("done ") == TRAININGS
    assert recording.manifest.state == "complete", recording.manifest.reason
    assert not [message for code, message in recording.warned().items() if code.startswith("probe_failed")]
    times = [at for kind, _, at in recording.truth() if kind == "train"]
    rows = recording.training()
    assert len(rows) == len(times)
    assert all(row["start_ns"] <= at <= row["end_ns"] for row, at in zip(rows, times, strict=True))


@pytest.mark.parametrize("options", [("--queue-interval", "1", "--ops", "all"), ("--schedule", "active=1,repeat=0")])
def test_hardest_settings_do_not_crash_it_either(pipeprof, options):
    recording = pipeprof.collect(pipeprof.script("many.py", "30", "7"), *options)
    assert recording.done.returncode == 0, recording.done.stderr[-3000:]
    assert recording.manifest.state == "complete", recording.manifest.reason
