"""Predictions are measured on real trainings; the bound of headspace keeps the training as it was."""

import json
import signal
import subprocess
import time

import pytest
from conftest import LIMIT_S

pytestmark = [pytest.mark.mindspore, pytest.mark.slow]


@pytest.fixture(scope="session")
def bound(pipeprof_in):
    """`bound("loop", 16)`: one profiled run for each workload of `bound.py`, and a folder to work in."""
    home = pipeprof_in("bound")
    known = {}

    def record(*args):
        if args not in known:
            known[args] = home.collect(home.script("bound.py", *map(str, args)), "-q")
        assert known[args].done.returncode == 0, known[args].done.stderr
        return home, known[args].path

    return record


def whatif(home, run, *words, command=()):
    out = home.out()
    end = ["--", *command] if command else []
    done = home.run("whatif", str(run), *words, "--max-pairs", "1", "-o", str(out), "--format", "json", *end)
    return done, out


def headspace(home, *args, options=(), most=1):
    out = home.out()
    command = home.script("bound.py", *map(str, args))
    done = home.run("headspace", *options, "--max-pairs", str(most), "-o", str(out), "--format", "json", "--", *command)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), out


def usual_wait(home, run):
    """Median time, in ns, that a training step waited for its batch."""
    text = "SELECT median(fetch_wait_ns) AS wait_ns FROM step WHERE kind = 'train'"
    return json.loads(home.run("sql", str(run), text, "--format", "json").stdout)[0]["wait_ns"]


def epochs(home, run):
    """(kind, epoch, steps) of a run; warm-up steps count as training."""
    text = (
        "SELECT CASE WHEN kind = 'eval' THEN 'eval' ELSE 'train' END AS side, epoch, count(*) AS steps "
        "FROM step GROUP BY ALL ORDER BY ALL"
    )
    done = home.run("sql", str(run), text, "--format", "json")
    return json.loads(done.stdout)


@pytest.mark.measures
def test_a_second_worker_doubles_a_waiting_map(bound):
    """Rows wait 60 ms, which takes no CPU: beside other programs every row takes as much longer on both sides."""
    home, run = bound("loop", 16)
    done, out = whatif(home, run, "--op", "wait_60_ms", "--workers", "2")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == json.loads((out / "whatif.json").read_text())
    assert found["change"] == {"workers": [1, 2]}
    assert found["measured"]["ratio"] > 1.3
    assert found["measured"]["verdict"] == "undecided"  # one pair never decides
    assert [entry["name"] for entry in found["runs"]] == ["a0", "b0"]
    predicted = found["prediction"]["ratio"]
    assert predicted is None or 1.3 < predicted < 2.3, found["prediction"]  # None: the machine is busy
    assert "predicted" in done.stderr
    assert home.run("report", str(out / "b0")).returncode == 0


@pytest.mark.measures
@pytest.mark.parametrize("options", [("--cache",), ("--cache", "--workers", "2")])
def test_a_cache_is_measured_from_the_second_epoch_on(bound, options):
    """Rows that wait 60 ms are handed out from memory then."""
    home, run = bound("loop", 12, 2)
    done, out = whatif(home, run, "--op", "wait_60_ms", *options)
    if len(options) > 1:
        assert (done.returncode, "--cache is tried alone" in done.stderr) == (2, True)
        return
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["change"] == {"cache": [None, 1 << 31]}
    assert "rows kept in memory" in done.stderr
    assert all(5 <= one["timed_steps"] <= 12 for one in found["runs"])
    assert found["measured"]["ratio"] > 3
    assert found["prediction"]["high"] is None or found["prediction"]["high"] > 3
    assert epochs(home, out / "a0") == epochs(home, out / "b0")


@pytest.mark.measures
@pytest.mark.parametrize("kind", ["loop", "model"])
def test_headspace_is_large_for_a_data_bound_loop_and_keeps_its_steps(bound, kind):
    """Each batch of the unchanged side waits for 240 ms of sleep; the other side never does."""
    home, _ = bound("loop", 16)
    found, out = headspace(home, kind, 12, 2)
    assert found["measured"]["ratio"] > 1.3
    assert epochs(home, out / "a0") == epochs(home, out / "b0")
    assert 4 * usual_wait(home, out / "b0") < usual_wait(home, out / "a0")
    truths = [
        [kind_epoch[:2] for kind_epoch in json.loads(line.removeprefix("truth "))]
        for side in ("a0", "b0")
        for line in (out / f"{side}.log").read_text().splitlines()
        if line.startswith("truth ")
    ]
    assert len(truths) == 2
    assert truths[0] == truths[1]


@pytest.mark.measures
def test_pairs_are_added_until_the_bound_is_decided(bound):
    """Of a training of 40 steps each run ends after 12. One pair never decides; the first ones that agree do. On a machine that is very busy six may not be enough."""
    home, _ = bound("loop", 16)
    found, out = headspace(home, "loop", 40, options=("--steps", "12"), most=6)
    measured = found["measured"]
    answer = (measured["verdict"], measured["decided"], measured["stopped"])
    assert answer in (("faster", "above", "decided"), ("undecided", None, "pairs"))
    assert 2 <= measured["pairs"] <= 6
    assert measured["decided"] or measured["pairs"] == 6
    assert {entry["training_steps"] for entry in found["runs"]} == {12}
    made = [f"{side}{number // 2}" for number, side in enumerate("abba" * 3)]
    assert [entry["name"] for entry in found["runs"]] == made[: 2 * measured["pairs"]]
    assert all((out / entry["path"] / "run.json").exists() for entry in found["runs"])


@pytest.mark.measures
@pytest.mark.parametrize(("kind", "option"), [("loop", "--op"), ("model", "--op"), ("loop", "--up-to")])
def test_headspace_of_the_operator_that_waits(pipeprof_in, kind, option):
    """240 ms of waiting for each step are gone, whatever the machine does; the steps stay what they were."""
    found, out = headspace(pipeprof_in("part"), kind, 12, 2, options=(option, "wait_60_ms"))
    part = found["part"]
    assert (part["op"]["name"], part["mode"]) == ("wait_60_ms", "up_to" if option == "--up-to" else "alone")
    assert 3 <= part["outputs_per_step"] <= 5
    assert found["measured"]["ratio"] > 1.3
    assert pipeline_epochs(out / "a0") == pipeline_epochs(out / "b0")


def pipeline_epochs(run):
    """What the script itself said of its steps: (kind, epoch) of each."""
    log = run.with_suffix(".log").read_text()
    line = next(line for line in log.splitlines() if line.startswith("truth "))
    return [kind_epoch[:2] for kind_epoch in json.loads(line.removeprefix("truth "))]


def test_headspace_of_an_operator_of_a_recorded_run(bound):
    """The number is that of the run's table, the command its command; only the pipeline that trained is changed."""
    home, run = bound("loop", 16)
    table = json.loads(
        home.run("sql", str(run), "SELECT DISTINCT op_id, name FROM pipeline_op", "--format", "json").stdout
    )
    number = next(str(row["op_id"]) for row in table if row["name"] == "wait_60_ms")
    out = home.out()
    done = home.run(
        "headspace", "--run", str(run), "--op", number, "--max-pairs", "1", "-o", str(out), "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["part"]["op"]["name"] == "wait_60_ms"
    assert found == json.loads((out / "headspace.json").read_text())


def test_headspace_of_an_operator_that_there_is_not(bound):
    home, run = bound("loop", 16)
    for words, text in (
        (("--op", "wait_61_ms"), "wait_60_ms"),
        (("--op", "Batch"), "no function"),
        (("--op", "1", "--up-to", "1"), "exclude each other"),
    ):
        out = home.out()
        done = home.run("headspace", "--run", str(run), *words, "-o", str(out))
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert text in done.stderr
        assert not out.exists()


def test_processes_and_prefetch_reach_the_executed_copy(bound):
    home, run = bound("loop", 16)
    command = home.script("bound.py", "loop", "8")
    done, out = whatif(home, run, "--op", "1", "--workers", "2", "--processes", "--prefetch", "4", command=command)
    assert done.returncode == 0, done.stderr
    sides = {side: json.loads((out / side / "run.json").read_text())["options"] for side in ("a0", "b0")}
    assert sides["a0"]["override"] is None
    after = sides["b0"]["override_applied"][0]["after"]
    assert {"workers": 2, "processes": True, "prefetch": 4}.items() <= after.items()


def test_errors_name_what_is_wrong(bound):
    home, run = bound("loop", 16)
    for words, code, text in (
        (("--op", "wait_61_ms", "--workers", "2"), 2, "wait_60_ms"),
        (("--op", "wait_60_ms", "--workers", "4096"), 2, "--workers 4096"),
        (("--op", "wait_60_ms", "--workers", "1"), 2, "already"),
        (
            ("--op", "wait_60_ms", "--prefetch", "1"),
            2,
            "already has these settings (num_parallel_workers 1, prefetch size 1)",
        ),
    ):
        done, out = whatif(home, run, *words)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert text in done.stderr
        assert "Traceback" not in done.stderr
        assert not out.exists()


def test_a_command_that_fails_is_exit_5(bound):
    home, run = bound("loop", 16)
    done, _ = whatif(
        home, run, "--op", "wait_60_ms", "--workers", "2", command=[home.python, "-c", "raise SystemExit(7)"]
    )
    assert done.returncode == 5
    assert "exit code 7" in done.stderr


def test_a_change_that_was_not_applied_is_no_result(bound):
    """Another script than the one that was recorded: its pipeline is made elsewhere."""
    home, run = bound("loop", 16)
    command = home.script("loops.py", "pynative_loop")
    done, out = whatif(home, run, "--op", "wait_60_ms", "--workers", "2", command=command)
    assert done.returncode == 3, done.stderr
    assert "not applied" in done.stderr
    assert not (out / "whatif.json").exists()


def test_headspace_without_an_iterator_refuses(pipeprof):
    done = pipeprof.run("headspace", "--", *pipeprof.script("loops.py", "fixed_tensors"))
    assert done.returncode == 3, done.stderr
    assert "dataset iterator" in done.stderr or "too few" in done.stderr


def test_an_interrupt_ends_the_experiment(bound):
    home, run = bound("loop", 16)
    out = home.out()
    words = [home.python, "-m", "pipeprof", "whatif", str(run), "--op", "1", "--workers", "2", "-o", str(out)]
    started = subprocess.Popen(
        words, env=home.environment(), cwd=home.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    while started.poll() is None and not any(out.glob("a0/spool/rep=0/proc-*")):
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    stdout, stderr = started.communicate(timeout=LIMIT_S)
    assert started.returncode == 130, stderr
    assert stdout == b""
    assert b"Traceback" not in stderr
    assert not (out / "whatif.json").exists()
