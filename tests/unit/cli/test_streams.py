"""A closed pipe and a full stdout, with real processes: never exit code 1 (`regressed`), never a traceback."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from copies import copy_tree

from pipeprof.cli import cli
from pipeprof.read.spool.finish import open_run

pytestmark = pytest.mark.slow  # starts each verb beside closed pipes

CAPTURE = Path(__file__).parents[2] / "real" / "captures" / "2.10-graph"
TABLE = """table_id,row_in_table,variant,options,is_baseline,configure_ms,warmup_first_ms,warmup_second_ms,inference_ms
a,1,base,,1,1.0,2.0,2.0,10.0
a,2,fast,--fast,0,1.0,30.0,2.0,5.0
"""
ENDS_LIKE_ITS_COMMAND = "collect"
PRINTS_NOTHING = frozenset(["compact", "push", "import", "timeline", "stacks"])  # on stdout
TAKES_LONG = frozenset(
    ["ab", "bisect", "demo", "headspace", "qualify", "serve", "tune", "whatif"]
)  # prints as the verbs below do
CASES = {
    "report": ["report RUN", "report RUN --full", "report RUN --format json"],
    "runs": ["runs", "runs --format json"],
    "fleet": ["fleet .", "fleet . --format json"],
    "sql": ["sql RUN", "sql RUN --format csv", "sql RUN --format json"],
    "ops": ["ops RUN", "ops RUN --format markdown", "ops RUN --dump-only-opr"],
    "memory": ["memory RUN", "memory RUN --format json"],
    "status": ["status RUN", "status RUN --format json"],
    "top": ["top RUN", "top RUN --format json"],
    "verify": ["verify RUN", "verify RUN --format json"],
    "compare": ["compare RUN OTHER"],
    "baseline": ["baseline list --root kept", "baseline show --root kept", "baseline check --root kept"],
    "history": ["history demo --root kept", "history demo --root kept --format json"],
    "sweep": ["sweep --table table.csv", "sweep --table table.csv --format csv"],
    "render": ["render compare.json --to markdown"],
    "completion": ["completion bash"],
}
EXPECTED = {"compare RUN OTHER": 3}  # graph mode and PyNative are incomparable, whoever reads it
ERRORS = ["report nothing-here", "sql RUN nonsense"]
HELP = ["--help", "--version", *(f"{verb} --help" for verb in sorted(TAKES_LONG))]
WORDS = [*(words for verb in CASES.values() for words in verb), *HELP]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, a baseline, a table of option sets, a saved comparison."""
    found = tmp_path_factory.mktemp("streams")
    copy_tree(CAPTURE, found / "RUN")
    copy_tree(CAPTURE.with_name("2.10-pynative"), found / "OTHER")
    open_run(found / "RUN")
    (found / "table.csv").write_text(TABLE, encoding="utf-8")
    begin(found, "baseline write RUN --workload demo --root kept", stdout=subprocess.PIPE)
    begin(found, "compare RUN OTHER --format json -o compare.json", stdout=subprocess.PIPE)
    return found


def begin(folder, words, **streams):
    command = [sys.executable, "-m", "pipeprof", *words.split()]
    done = subprocess.run(command, cwd=folder, check=False, **{"stderr": subprocess.PIPE, **streams})
    return done.returncode, (done.stderr or b"").decode()


@pytest.fixture
def closed():
    """The end of a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


def test_every_verb_is_tried_or_prints_nothing():
    known = {*CASES, *PRINTS_NOTHING, *TAKES_LONG, ENDS_LIKE_ITS_COMMAND}
    assert set(cli.list_commands(click.Context(cli))) <= known


@pytest.mark.parametrize("words", WORDS)
def test_a_closed_pipe_is_no_error(folder, words, closed):
    assert begin(folder, words, stdout=closed) == (EXPECTED.get(words, 0), "")


@pytest.mark.parametrize("words", WORDS)
def test_a_full_stdout_is_an_error_of_its_own(folder, words):
    with Path("/dev/full").open("wb") as full:
        code, said = begin(folder, words, stdout=full)
    assert (code, said) == (74, "error: cannot write to stdout: No space left on device\n")


@pytest.mark.parametrize("words", ERRORS)
def test_an_error_keeps_its_exit_code_when_nobody_reads_it(folder, words, closed):
    expected, said = begin(folder, words, stdout=subprocess.PIPE)
    assert expected in (2, 3)
    assert said.startswith("error: ")
    assert begin(folder, words, stdout=closed, stderr=closed)[0] == expected


@pytest.mark.parametrize("end", ["| head -n 1 >/dev/null; exit ${PIPESTATUS[0]}", ">&-"])
def test_a_reader_of_one_line_and_a_stdout_that_is_closed_from_the_start_are_no_error(folder, end):
    script = f"{shlex.quote(sys.executable)} -m pipeprof report RUN {end}"
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [("report RUN", 0), ("compare RUN OTHER", 3), ("report nothing-here", 3), ("report --top 0", 2)],
)
def test_a_stderr_that_is_closed_from_the_start_changes_no_exit_code(folder, words, expected):
    script = f"{shlex.quote(sys.executable)} -m pipeprof {words} 2>&-"
    done = subprocess.run(["bash", "-c", script], cwd=folder, stdout=subprocess.PIPE, check=False)
    assert done.returncode == expected


def test_output_in_another_encoding_loses_no_row_and_ends_as_it_should(folder):
    command = [sys.executable, "-m", "pipeprof", "runs"]
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"---" in done.stdout
