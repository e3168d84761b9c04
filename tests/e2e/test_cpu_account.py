"""A process beside the training that takes its CPU is named, with the line that started it; dataset workers are not."""

import json
from pathlib import Path

import pytest

WORKLOAD = Path(__file__).parent / "workloads" / "beside.py"
pytestmark = [pytest.mark.mindspore, pytest.mark.alone]


def line_of(text):
    lines = WORKLOAD.read_text(encoding="utf-8").splitlines()
    return f"{WORKLOAD}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


@pytest.fixture
def reported(recorded, pipeprof):
    def report(who):
        run = recorded("beside.py", who, options=("--host-interval", "0.2"))
        done = pipeprof.run("report", str(run.path), "--format", "json")
        return run, json.loads(done.stdout)

    return report


def steady(content, *parts):
    rows = [row for row in content["cpu_account"]["parts"] if row["phase"] == "steady" and row["part"] in parts]
    return sum(row["job_share"] or 0.0 for row in rows)


@pytest.mark.parametrize(
    ("who", "what", "origin"),
    [
        ("summary", "WriterPool", "# the summary's origin"),
        ("poll", "poll", "writer.start()  # the origin"),
        ("program", "", "subprocess.Popen("),
    ],
)
def test_a_process_that_takes_the_cpu_is_named_in_the_first_sentence(reported, pipeprof, who, what, origin):
    run, content = reported(who)
    found = content["cpu_account"]["contention"]
    assert (found["kind"], found["what"], found["site"]) == ("cpu_contention", what, line_of(origin))
    assert found["available_cores"] == 1
    assert content["diagnosis"]["kind"] == "cpu_contention"
    first = pipeprof.run("report", str(run.path)).stdout.partition("\n\n")[0].replace("\n", "")
    assert first.startswith("Short of CPU: ")
    assert line_of(origin) in first.replace(" ", "")
    assert f"process `{what or 'python -c while True'}" in first


def test_a_python_thread_that_takes_the_interpreters_lock_is_named(reported):
    """As the cause, or, where the limiting stage may wait for what it makes, as a doubt."""
    _, content = reported("thread")
    found = content["cpu_account"]["contention"]
    assert (found["kind"], found["what"], found["site"]) == ("lock_contention", "count", line_of("# the thread"))
    doubts = [doubt["code"] for doubt in content["diagnosis"]["doubt_facts"]]
    assert content["verdict"]["causes"][0]["code"] == "thread" or "lock_contention" in doubts


def test_mindsporess_summary_is_told_as_what_made_it_and_how_to_do_without(reported):
    _, content = reported("summary")
    assert "mindspore/train/summary/" in content["diagnosis"]["process"]["library"]
    assert "SummaryCollector" in content["first_screen"]["action"]


def test_a_training_alone_is_short_of_nothing_that_it_starts_itself(reported):
    _, content = reported("none")
    assert content["cpu_account"]["contention"] is None
    assert content["diagnosis"]["kind"] != "cpu_contention"
    assert steady(content, "main", "mindspore_thread", "dataset_thread") > 0.8


def test_dataset_workers_are_the_trainings_own(reported):
    _, content = reported("workers")
    assert steady(content, "worker") > 0.2
    assert steady(content, "child", "launcher") < 0.05
    assert content["cpu_account"]["contention"] is None


def test_a_process_that_makes_the_rows_takes_cpu_and_the_source_waits_for_it(reported):
    _, content = reported("feeder")
    assert (content["diagnosis"]["op_name"], content["diagnosis"]["kind"]) == ("Received", "wait")
    assert content["cpu_account"]["contention"]["what"] == "feed"
    screen = content["first_screen"]
    assert f"perhaps for the process `feed` (started at {line_of('feeder.start()')})" in screen["cause"]
    assert screen["action"].startswith("If the source `Received` gets its rows from the process `feed`: make what")


def test_the_account_adds_up_to_what_the_kernel_counted_for_the_job(pipeprof):
    run = pipeprof.collect(pipeprof.script("beside.py", "workers"), "--host-interval", "0.2", "--keep-spool")
    spool = run.path / "spool" / "rep=0"
    launched, ended = (json.loads((spool / name).read_text(encoding="utf-8")) for name in ("launch.json", "exit.json"))
    samples = [json.loads(line)["t"] for line in (spool / "host.jsonl").read_text(encoding="utf-8").splitlines()]
    (found,) = run.sql("SELECT sum(cpu_ns) / 1e9 AS cpu_s FROM cpu_use WHERE part NOT IN ('profiler', 'neighbour')")
    outside_s = (samples[0] - launched["monotonic"] + ended["monotonic"] - samples[-1]) / 1e9  # on one core at the end
    ticks_s = 0.1  # the kernel rounds each process down to its ticks
    left_s = ended["cpu_s"] - found["cpu_s"]
    assert -ticks_s <= left_s <= outside_s + ticks_s
    assert outside_s < (ended["monotonic"] - launched["monotonic"]) / 2e9
    lines = [line for path in spool.glob("proc-*/events.jsonl") for line in path.read_text("utf-8").splitlines()]
    (plan,) = (event for event in map(json.loads, lines) if event["e"] == "plan")
    assert (plan["epochs"], plan["batches"]) == (1, 1200)
