"""Ctrl-C while DuckDB works is an interruption, not a defect."""

from __future__ import annotations

import signal
import subprocess
import sys

QUERY = """
import os, signal, sys, threading, click
from pipeprof import cli

@click.command()
def long_query():
    import duckdb
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    duckdb.connect().execute("SELECT sum(hash(a.range + b.range)) FROM range(10000000) a, range(10000000) b").fetchall()

cli.cli.add_command(long_query, "long-query")
sys.argv = ["pipeprof", "long-query"]
cli._run()
"""


def test_ctrl_c_during_a_query_ends_with_130_and_without_a_traceback():
    done = subprocess.run([sys.executable, "-c", QUERY], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "")
