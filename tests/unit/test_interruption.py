"""Ctrl-C while DuckDB works is an interruption, not a defect."""

import signal
import subprocess
import sys

import pytest

QUERY = """
import os, signal, sys, threading, click
from pipeprof import cli

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it, and these tests with them

@click.command()
def long_query():
    from pipeprof.query.engine import Engine
    with Engine.of_tables({}) as engine:
        engine.sql("SELECT 1")  # what DuckDB imports for its first statement it imports now
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        engine.sql("SELECT sum(hash(a.range + b.range)) FROM range(10000000) a, range(10000000) b")

cli.cli.add_command(long_query, "long-query")
sys.argv = ["pipeprof", "long-query"]
cli._run()
"""


@pytest.mark.parametrize("_time", range(5))
def test_ctrl_c_during_a_query_ends_with_130_and_without_a_traceback(_time):
    """Five times: DuckDB alone hears of it only between two pieces of its work, which one of three queries never reached."""
    done = subprocess.run([sys.executable, "-c", QUERY], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.strip()) == (128 + signal.SIGINT, "")
