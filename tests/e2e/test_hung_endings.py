"""A training that is ended while it hangs: its report names the place, however it was ended."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from conftest import LIMIT_S
from free_port import free_port

from pipeprof.read.spool.finish import open_run
from pipeprof.record.run import load
from pipeprof.report import status
from pipeprof.report.build import build
from pipeprof.verdict.hang import LEAST_S

pytestmark = pytest.mark.mindspore
LONG_S = LEAST_S + 4  # the record of a training whose launcher was killed, too, ends up to some seconds before it


def waited(launcher, pipeprof, out, holds):
    """Wait until every rank has been in one place long enough, as `status` says; the ranks, by number."""
    while launcher.poll() is None:
        rows = status.build(load(out))["ranks"] if out.joinpath("run.json").exists() else []
        if rows and holds(rows) and all((row["for_s"] or 0.0) > LONG_S for row in rows):
            return {row["rank"]: row for row in rows}
        time.sleep(0.2)
    raise AssertionError(launcher.communicate())


@pytest.fixture
def hung(pipeprof):
    """`hung(command, holds, number, whom)`: the report of a training that got a signal while it hung."""
    started = []

    def end(command, holds, number, whom):
        launcher, out = pipeprof.start(command, start_new_session=True)
        started.append(launcher)
        whom(launcher, waited(launcher, pipeprof, out, holds), number)
        launcher.communicate(timeout=LIMIT_S)
        return build(open_run(out))

    yield end
    for launcher in started:
        with suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)


def training(_launcher, ranks, number):
    os.kill(ranks[0]["pid"], number)


def everything(launcher, _ranks, number):
    """Also the launcher: nobody sees how the training ends."""
    children = psutil.Process(launcher.pid).children(recursive=True)
    os.killpg(launcher.pid, number)
    psutil.wait_procs(children, timeout=LIMIT_S)


@pytest.mark.parametrize(
    ("number", "whom"),
    [(signal.SIGTERM, training), (signal.SIGKILL, everything)],
    ids=["SIGTERM to the training", "SIGKILL to all"],
)
def test_a_lock_is_named(pipeprof, hung, number, whom):
    pipeprof.folder.joinpath("process").touch()
    for place in ("first", "compile", "script"):
        pipeprof.folder.joinpath(place).touch()
    in_lock = lambda rows: "lock" in (rows[0]["function"] or "")  # noqa: E731
    content = hung(pipeprof.script("hangs.py", str(pipeprof.folder)), in_lock, number, whom)
    screen = content["first_screen"]
    assert "holding_a_lock" in screen["cause"]
    assert screen["place"].endswith("lock.acquire()")
    assert content["hang"]["for_s"] >= LEAST_S
    assert screen["extra"][-1].endswith("holding_a_lock")


@pytest.mark.parametrize("whom", [training, everything])
def test_a_call_that_keeps_the_interpreters_lock_is_named_and_what_may_be_missing(pipeprof, hung, whom):
    silent = lambda rows: rows[0]["code"] == "silent"  # noqa: E731
    content = hung(pipeprof.script("endings.py", "interpreter", "60"), silent, signal.SIGKILL, whom)
    screen = content["first_screen"]
    assert content["hang"]["ranks"][0]["code"] == "silent"
    assert "interpreter's lock" in screen["cause"]
    assert "may be missing" in screen["sentence"]
    assert 50 <= sum(row["steps"] for row in content["steps"]["summary"]) <= 60
    # The place is where it was last seen: within a second of the call.
    assert screen["place"].partition(":")[0].endswith(("endings.py", "parts.py"))


def test_a_worker_process_is_named_with_its_operator_and_its_line(pipeprof, hung):
    stuck = lambda rows: any(one["pid"] for one in rows[0]["stuck"])  # noqa: E731
    content = hung(pipeprof.script("hangs.py", str(pipeprof.folder)), stuck, signal.SIGKILL, training)
    screen = content["first_screen"]
    assert "of MapOp stuck_in_process" in screen["cause"]
    assert "hangs.py" in screen["place"]


def test_the_rank_that_did_not_come_to_a_collective_is_named(pipeprof, hung):
    words = ["--worker_num=2", "--local_worker_num=2", f"--master_port={free_port()}", "--join=True"]
    command = [str(Path(pipeprof.python).with_name("msrun")), *words, f"--log_dir={pipeprof.folder / 'logs'}"]
    command += pipeprof.script("late_rank.py", str(pipeprof.folder))[1:]
    both = lambda rows: [row["code"] for row in rows] == ["collective", "script"]  # noqa: E731
    content = hung(command, both, signal.SIGKILL, everything)
    first, other = content["hang"]["ranks"]
    assert (first["rank"], first["code"], other["code"]) == (1, "script", "collective")
    assert "come_late" in content["first_screen"]["cause"]
