"""An iterator that lives for long: what MindSpore remembers of it stays small, and nothing of it is lost."""

import json
from itertools import pairwise

import pytest

pytestmark = pytest.mark.mindspore
INTERVAL_MS = 10
KEPT = 2 * 1024  # batches of which MindSpore may still hold the records: those of one taking, and some more


@pytest.fixture(scope="module")
def run(recorded):
    options = ("--keep-spool", "--queue-interval", str(INTERVAL_MS))
    return recorded("long_iterator.py", options=options)


@pytest.fixture(scope="module")
def told(run):
    return json.loads(run.done.stdout.splitlines()[-1])


def saved(run, name):
    (newest,) = run.path.glob("spool/rep=0/proc-*/tree-0/final-*")
    return (newest / name).read_text().splitlines()


@pytest.mark.slow
def test_a_million_batches_are_taken_from_mindspore_one_by_one(pipeprof):
    """Its memory is written to some thousand times. Unbounded it would grow by 290 MB over the batches compared."""
    batches = 1_000_000
    options = ("--queue-interval", "1", "--ops", "off")
    recording = pipeprof.collect(pipeprof.script("long_iterator.py", str(batches)), *options)
    assert recording.done.returncode == 0, recording.done.stderr
    told = json.loads(recording.done.stdout.splitlines()[-1])
    assert told["batches"] == batches
    assert told["grown"] < 30_000_000
    (row,) = recording.sql('SELECT count(*) AS batches, count(depth) AS depths FROM "fetch"')
    assert row["batches"] == row["depths"] == batches


def test_nothing_in_mindspores_memory_is_changed_where_the_user_forbids_it(pipeprof):
    recording = pipeprof.collect(pipeprof.script("long_iterator.py", "5000"), "--keep-spool", "--no-patches")
    assert recording.done.returncode == 0, recording.done.stderr
    (newest,) = recording.path.glob("spool/rep=0/proc-*/tree-0/final-*")
    assert len((newest / "dataset_iterator_profiling_0.txt").read_text().splitlines()) >= 4 * 5000
    assert "--no-patches" in recording.warned()["service_off"]
    (events,) = recording.path.glob("spool/rep=0/proc-*/events.jsonl")
    told = {json.loads(line)["e"] for line in events.read_text().splitlines()}
    assert "calls" in told  # what Python functions took is measured by the recorder itself
    assert "service" not in told  # that of MindSpore's timing lines


def test_mindspore_holds_the_records_of_few_batches(run, told):
    # Unbounded they take 440 bytes each: 8.8 MB more over the batches that are compared.
    lines = saved(run, "dataset_iterator_profiling_0.txt")
    assert 0 < len(lines) <= 4 * KEPT
    assert told["grown"] < 4_000_000


def test_each_batch_keeps_its_record(run, told):
    (row,) = run.sql(
        "SELECT count(*) AS batches, count(depth) AS depths, min(depth) AS least, max(depth) AS most, min(capacity) AS capacity,"
        ' max(capacity) AS capacities, count(batch_ns) AS times FROM "fetch"'
    )
    assert row["batches"] == row["depths"] == row["times"] == told["batches"]
    assert row["capacity"] == row["capacities"] == 16
    assert 0 <= row["least"] < row["most"] <= row["capacity"]


def test_what_was_taken_fits_what_mindspore_saved_of_the_batches_after_it(run):
    first = int(saved(run, "dataset_iterator_profiling_0.txt")[0].split()[2]) - 1
    (folder,) = run.path.glob("spool/rep=0/proc-*")
    events = [json.loads(line) for line in folder.joinpath("events.jsonl").read_text().splitlines()]
    taken = [event for event in events if event["e"] == "batches"]
    ends = [event["first"] + len(event["depth"]) for event in taken]
    assert [event["first"] for event in taken] == [0, *ends[:-1]]
    assert ends[-1] == first


def test_readings_become_rarer_and_each_stands_for_as_much_time(run):
    (folder,) = run.path.glob("spool/rep=0/proc-*")
    events = [json.loads(line) for line in folder.joinpath("events.jsonl").read_text().splitlines()]
    spacing = [event["ms"] for event in events if event["e"] == "spacing"]
    assert spacing
    assert spacing == [INTERVAL_MS * 2 ** (number + 1) for number in range(len(spacing))]
    read = json.loads("".join(saved(run, "minddata_cpu_utilization_0.json")))["time_stamp"]
    assert len(read) <= 100 * (2 + len(spacing))
    times = [row["t_ns"] for row in run.sql("SELECT DISTINCT t_ns FROM queue ORDER BY t_ns")]
    assert len(times) > 20
    assert min(late - early for early, late in pairwise(times)) >= 0.75 * spacing[-1] * 1_000_000
